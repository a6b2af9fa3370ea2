"""What a notebook shows of answers by itself: results as a table, figures inline, a waiting job's progress."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import Any

from persona_assay.calls import Answer
from persona_assay.frames import Engine, Rows, to_dataframe

Json = Mapping[str, Any]

SHOWN_TOTALS = 50
"""Of more totals a table shows the first."""


class ResultsDocument(dict[str, Any]):
    """Results as they came, which a notebook shows as a table."""

    def to_dataframe(self, rows: Rows = "cells", engine: Engine = "pandas") -> Any:
        """See `persona_assay.frames.to_dataframe`."""
        return to_dataframe(self, rows, engine)

    def _repr_html_(self) -> str:
        heading = f"{self.get('name') or self['job']}: {self['completeness']} results"
        if self["simulated"]:
            heading += ", simulated"
        totals = [total for total in self["totals"] if total["by"] == ["model"]] or self["totals"]
        names = list(dict.fromkeys(name for total in totals for name in total["metrics"]))
        names = [name for name in names if not name.endswith("_corrected")]
        head = _row("th", ["model", *names])
        rows = [_row("td", [total["model"], *_figures(total, names)]) for total in totals[:SHOWN_TOTALS]]
        left_out = len(totals) - len(rows)
        more = f"<p>{left_out} more in <code>results['totals']</code></p>" if left_out > 0 else ""
        return f"<p><b>{escape(heading)}</b></p><table>{head}{''.join(rows)}</table>{more}"


class FigureFile(bytes):
    """A figure as its file's bytes, which a notebook shows as the picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str | None:
        return None if self.startswith(b"\x89PNG") else self.decode()

    def _repr_png_(self) -> bytes | None:
        return bytes(self) if self.startswith(b"\x89PNG") else None


def read_results(answer: Answer) -> Any:
    """Reads an answer that is results."""
    return ResultsDocument(answer.json())


def read_figure(answer: Answer) -> bytes:
    """Reads an answer that is a figure."""
    return FigureFile(answer.content)


@contextmanager
def progress_shown() -> Iterator[Callable[[Json], None]]:
    """Shows each state of a job that it is given: in a notebook in place, on a terminal live, elsewhere line by line."""
    from persona_assay.terminal.consoles import err  # noqa: PLC0415 - only whoever waits needs it
    from persona_assay.terminal.progress import JobProgress, shown  # noqa: PLC0415

    console = err()
    if not console.is_jupyter:
        with shown(console) as show_in_terminal:
            yield show_in_terminal
        return
    display = import_module("IPython.display")
    handle = display.display(display.HTML(""), display_id=True)
    made: list[JobProgress] = []

    def show(job: Json) -> None:
        if not made:
            made.append(JobProgress(job))
        made[0].update(job)
        handle.update(display.HTML(_progress(made[0])))

    yield show


def _progress(progress: Any) -> str:
    bars = "".join(
        f"<tr><td>{escape(stage.name)}</td><td><progress value='{stage.done}' max='{stage.total}'></progress></td>"
        f"<td>{escape(stage.of_total)}</td></tr>"
        for stage in progress.stages
    )
    return f"<table>{bars}</table><p>{escape(progress.figures())}</p>"


def _figures(total: Json, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        metric = total["metrics"].get(name) or {}
        if metric.get("value") is None:
            yield f"– ({metric.get('reason') or 'none'})"
            continue
        ends = metric.get("ci95")
        interval = f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""
        yield f"{metric['value']:.3f}{interval} n = {metric['n']:,}"


def _row(kind: str, texts: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{kind}>{escape(text)}</{kind}>' for text in texts)}</tr>"
