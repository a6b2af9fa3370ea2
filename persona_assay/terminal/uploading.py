"""Sends a file before a job is submitted on its texts."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from click.exceptions import Exit
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from persona_assay import ProblemError, ProblemField
from persona_assay.terminal.consoles import err, printable
from persona_assay.terminal.outcome import INTERRUPTED, CommandError, say
from persona_assay.terminal.progress import LINE_SECONDS
from persona_assay.terminal.quantities import counted, duration
from persona_assay.types import Upload

if TYPE_CHECKING:
    from persona_assay import AssayClient

POINTERS = ("/responses/upload/lines/", "/responses/upload/rows/")


def sent(client: "AssayClient", file: Path, *, purpose: str | None = None) -> Upload:
    """A file, sent as far as it has not been sent before.

    Args:
        client: The client.
        file: The file.
        purpose: What it is for, as the client's `upload` is told.

    Raises:
        CommandError: The file can't be read or has errors.
    """
    try:
        with shown(err()) as show:
            upload = client.upload(file, purpose=purpose, on_progress=show)
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror or error}") from error
    except KeyboardInterrupt:
        say("What has arrived is kept; the same command sends the rest.")
        raise Exit(INTERRUPTED) from None
    if upload["status"] != "ready":
        client.delete_upload(upload["id"])  # nothing of it is kept but its errors, which are told here
        raise CommandError(_errors(file, upload))
    return upload


@contextmanager
def places(file: Path, upload: Upload) -> Iterator[None]:
    """Names the lines, or rows, of the file where the service finds something wrong with its records."""
    try:
        yield
    except ProblemError as error:
        fields = [ProblemField(_placed(file, upload, field.pointer), field.message) for field in error.fields]
        raise ProblemError(error.status, error.detail, error.code, fields, error.request_id) from error


@contextmanager
def shown(console: Console) -> Iterator[Callable[[Upload], None]]:
    """What shows an upload's states: as a bar on a terminal, elsewhere as a line now and then.

    Args:
        console: Where to.
    """
    if not console.is_terminal:
        yield _Lines(console).show
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[records]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("upload", total=None, records="")

        def show(upload: Upload) -> None:
            name = printable(upload["name"] or upload["id"])
            records = counted(upload["records"], "record")
            at, size = upload["received"], upload["size"]
            progress.update(bar, description=name, completed=at, total=size, records=records)

        yield show


class _Lines:
    """An upload's states in lines of plain text."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed = float("-inf")
        self._began: tuple[float, int] | None = None

    def show(self, upload: Upload) -> None:
        now, at, size = time.monotonic(), upload["received"], upload["size"]
        began, first = self._began = self._began or (now, at)
        if upload["status"] in {"receiving", "reading"} and now - self._printed < LINE_SECONDS:
            return
        self._printed = now
        words = [f"upload {decimal(at)} of {decimal(size)}", counted(upload["records"], "record")]
        if first < at < size:
            words.append(f"ETA {duration((size - at) * (now - began) / (at - first))}")
        self._console.print(" · ".join(words), soft_wrap=True)


def _errors(file: Path, upload: Upload) -> str:
    told = [
        f"  {_place(upload, error['line'], error['field'])}: {printable(error['message'])}"
        for error in upload["errors"]
    ]
    more = upload["error_count"] - len(told)
    if more:
        told.append(f"  and {more:,} more")
    if upload["received"] < upload["size"]:
        rest = decimal(upload["size"] - upload["received"])
        told.append(f"  The last {rest} were not sent.")
    return "\n".join([f"{file} has {counted(upload['error_count'], 'error')}; nothing was stored", *told])


def _placed(file: Path, upload: Upload, pointer: str) -> str:
    place = next((each for each in POINTERS if pointer.startswith(each)), None)
    if place is None:
        return pointer
    line, slash, field = pointer.removeprefix(place).partition("/")
    return f"{file}, {_place(upload, int(line), slash + field)}"


def _place(upload: Upload, line: int, field: str) -> str:
    """Such as ``line 3, /run``; of the whole file and of whole lines only what there is."""
    unit = "row" if upload["format"] == "parquet" else "line"
    return ", ".join(filter(None, (f"{unit} {line:,}" if line else "", printable(field)))) or "the file"
