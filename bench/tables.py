"""Tables of measurements, and which of their goals were missed.

Knows nothing of what is measured. A cell with a goal is marked where it misses it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True, frozen=True)
class Goal:
    """A ratio or time that must stay at or below a limit, or strictly below it."""

    limit: float
    strictly: bool = False

    def is_met(self, value: float) -> bool:
        return value < self.limit if self.strictly else value <= self.limit

    def __str__(self) -> str:
        return f"{'<' if self.strictly else '<='} {self.limit:g}"


@dataclass(slots=True, frozen=True)
class Cell:
    value: float | None  # None where there is nothing to compare with
    goal: Goal | None = None

    @property
    def is_missed(self) -> bool:
        return self.value is not None and self.goal is not None and not self.goal.is_met(self.value)

    def __str__(self) -> str:
        if self.value is None:
            return "-"
        return f"{self.value:.2f}{' !' if self.is_missed else ''}"


@dataclass(slots=True)
class Table:
    """Rows of a name and cells; the first column is as wide as it must be."""

    title: str
    columns: Sequence[str]
    rows: list[tuple[str, Sequence[Cell]]] = field(default_factory=list)

    def add(self, name: str, *cells: Cell) -> None:
        self.rows.append((name, cells))

    def missed(self) -> list[str]:
        return [
            f"{self.title}: {name}: {column}: {cell.value:.2f}"
            for name, cells in self.rows
            for column, cell in zip(self.columns[1:], cells, strict=True)
            if cell.is_missed
        ]

    def __str__(self) -> str:
        """Markdown that is also readable as it is."""
        lines = [list(self.columns), *([name, *map(str, cells)] for name, cells in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
        return "\n".join(
            "| " + " | ".join([line[0].ljust(widths[0]), *self._right(line, widths)]) + " |"
            for line in (lines[0], rule, *lines[1:])
        )

    def _right(self, line: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True)]
