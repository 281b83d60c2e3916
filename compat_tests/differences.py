"""A count of what was compared, and what differed; a test shows the first few."""

from collections.abc import Container


class Differences:
    """Compares on after the first difference, so that a failure shows its kind.

    `known` names cases, by the first word of where, that must differ: one that does not is found.
    """

    def __init__(self, known: Container[object] = ()) -> None:
        self.compared = 0
        self.found: list[str] = []
        self._known = known

    def expect(self, ours: object, kafkas: object, *where: object) -> None:
        self.compared += 1
        if (ours != kafkas) == (where[0] in self._known):
            return
        place = " ".join(map(str, where))[:2000]
        self.found.append(f"{place}\n  ours:  {str(ours)[:1500]}\n  Kafka: {str(kafkas)[:1500]}")

    def must_be_none(self) -> None:
        shown = "\n".join(self.found[:10])
        assert not self.found, f"{len(self.found)} of {self.compared} differ\n{shown}"
