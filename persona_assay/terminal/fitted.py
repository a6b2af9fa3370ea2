"""Tables that a narrow terminal shows row by row instead of truncating them."""

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement, measure_renderables
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

INDENT = 4
ANY_WIDTH = 10_000


class Fitted:
    """A table if it fits, else its rows one below the other.

    Args:
        table: The table.
        heads: How many first columns form a row's heading.
    """

    def __init__(self, table: Table, heads: int = 1) -> None:
        self._table, self._heads = table, heads

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render whichever fits."""
        if _needed(self._table, console, options) <= options.max_width:
            yield self._table
        else:
            yield from self._rows()

    def _rows(self) -> Iterator[RenderableType]:
        heads, others = self._table.columns[: self._heads], self._table.columns[self._heads :]
        for cells in zip(*(column.cells for column in self._table.columns), strict=True):
            named = [pair for pair in zip(others, cells[len(heads) :], strict=True) if str(pair[1])]
            yield Text("  ").join(_text(cell) for cell in cells[: len(heads)] if str(cell))
            yield Padding(
                Text(" · ").join(_named(column, cell) for column, cell in named),
                (0, 0, 0, INDENT),
                expand=False,
            )


def _needed(table: Table, console: Console, options: ConsoleOptions) -> int:
    """The smallest width at which no word is truncated."""
    wide = options.update_width(ANY_WIDTH)
    columns = [
        measure_renderables(console, wide, [_text(column.header), *column.cells]) for column in table.columns
    ]
    spared = sum(
        measured.maximum - measured.minimum
        for column, measured in zip(table.columns, columns, strict=True)
        if not column.no_wrap
    )
    return Measurement.get(console, wide, table).maximum - spared


def _named(column: Column, cell: RenderableType) -> Text:
    """A number with its name; text stands alone."""
    name = f"{column.header} " if column.justify == "right" else ""
    return Text.assemble((name, "hint"), _text(cell))


def _text(cell: RenderableType) -> Text:
    return cell.copy() if isinstance(cell, Text) else Text(str(cell))
