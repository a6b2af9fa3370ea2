import io

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from persona_assay.terminal.fitted import Fitted


def shown(width: int) -> list[str]:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("job", no_wrap=True)
    table.add_column("name", overflow="fold")
    table.add_column("calls", justify="right", no_wrap=True)
    table.add_row("job_123456789", "a long name", "1,200")
    table.add_row("job_2", "", "7")
    stream = io.StringIO()
    Console(file=stream, width=width).print(Fitted(table))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


class TestFitted:
    def test_is_a_table_where_no_word_is_cut(self) -> None:
        # 13 for the id, 4 for the longest word of a name, 5 for the calls; 2 around each, 2 between, 2 at the edges
        assert [line.split() for line in shown(32) if line] == [
            ["job", "name", "calls"],
            ["─" * 30],
            ["job_123456789", "a", "1,200"],
            ["long"],
            ["name"],
            ["job_2", "7"],
        ]

    def test_is_row_by_row_where_one_would_be(self) -> None:
        assert shown(31) == [
            "job_123456789",
            "    a long name · calls 1,200",
            "job_2",
            "    calls 7",
        ]
