"""A count of what was compared, and what differed; a test shows the first few."""

import json


class Differences:
    """Compares on after the first difference, so that a failure shows its kind."""

    def __init__(self) -> None:
        self.compared = 0
        self.found: list[str] = []

    def expect(self, ours: object, kafkas: object, *where: object) -> None:
        self.compared += 1
        if ours != kafkas:
            place = " ".join(map(str, where))[:2000]
            self.found.append(
                f"{place}\n  ours:  {str(ours)[:1500]}\n  Kafka: {str(kafkas)[:1500]}"
            )

    def must_be_none(self) -> None:
        shown = "\n".join(self.found[:10])
        assert not self.found, f"{len(self.found)} of {self.compared} differ\n{shown}"


def canonical(value: object) -> str:
    """JSON as text, so that 1, 1.0 and true differ, and -0.0 from 0.0."""
    return json.dumps(value, sort_keys=True)
