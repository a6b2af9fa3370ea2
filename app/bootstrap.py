"""What every process does first: logging, the operator's file; and what it does late, because it takes long."""

import contextlib
import ctypes
import gc
import importlib
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TextIO, cast

import structlog

from app import clock
from app.llm.connections.connections import Connections, ConnectionsError, load_connections
from app.settings import Settings, StartError, environment
from app.telemetry.redaction import redact_logging, redacted, shown_error
from app.vault.secret_cipher import SecretCipher, parse_keys

SWITCH_SECONDS = 0.0005
"""How long a thread that computes results, encodes an export or splits a long text keeps others waiting. At Python's own 5 ms a
request's few steps, each of which may have to wait for it, took up to a tenth of a second."""

LARGE_ANSWER_ENDED = threading.Event()
"""Set it to return memory to the system soon."""
MEMORY_SECONDS = 5.0
"""Pause before memory is returned to the system, so that many answers cost one trim."""
HELD_UP = 200
"""The pause between looks for unreachable cycles is at least so many times as long as the last look."""
HEAPS = 2
"""Heaps of all threads together."""
_M_ARENA_MAX = -8
"""The option's number in glibc's `malloc.h`."""

log = structlog.get_logger(__name__)


@contextlib.contextmanager
def told_start() -> Iterator[None]:
    """Ends a process that can't start with the reason, and without a traceback: it is nothing that our code could do better.

    The reason is a line of the log; text on a terminal, also where it keeps the settings from being read that say which form the log has.
    """
    try:
        yield
    except StartError as error:
        if not structlog.is_configured():
            _log_to_standard_error("INFO", readable=sys.stderr.isatty())
        log.critical("the process can't start", reason=str(error))
        raise SystemExit(1) from error


def configure_logging(settings: Settings) -> None:
    """Structured lines on standard error: for people on a terminal, as JSON elsewhere, unless the settings say which.

    What libraries log has the same form: the server's lines, Celery's, the database driver's, Python's warnings, and the error that ends
    a process or a thread.
    """
    readable = sys.stderr.isatty() if settings.log_format == "auto" else settings.log_format == "text"
    _log_to_standard_error(settings.log_level, readable=readable)


def _log_to_standard_error(level: str, *, readable: bool) -> None:
    redact_logging()
    stream = cast("TextIO", _UnfailingStream(sys.stderr))
    first: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _show_error,
    ]
    render = _redacting(structlog.dev.ConsoleRenderer() if readable else structlog.processors.JSONRenderer())
    structlog.configure(
        processors=[*first, render],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(stream),  # a line by one write: threads don't mix theirs
        cache_logger_on_first_use=True,
    )
    handler = _LibrariesHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *first],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
        )
    )
    root = logging.getLogger()
    root.handlers = [each for each in root.handlers if not isinstance(each, _LibrariesHandler)] + [handler]
    for server in ("uvicorn", "uvicorn.access"):  # which has given them handlers of its own by now
        named = logging.getLogger(server)
        if named.handlers:
            named.handlers.clear()
            named.propagate = True
    logging.captureWarnings(capture=True)
    sys.excepthook = lambda _kind, error, _trace: _log_uncaught(error)
    threading.excepthook = lambda args: _log_uncaught(args.exc_value)


class _UnfailingStream:
    """A stream whose writes never raise: a full disk or a closed terminal must not fail the caller of a log line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


class _LibrariesHandler(logging.StreamHandler[TextIO]):
    """Writes what libraries log."""


def _log_uncaught(error: BaseException | None) -> None:
    """Logs the error that ends a process or a thread."""
    if error is not None and not isinstance(error, KeyboardInterrupt | SystemExit):
        log.critical("uncaught error", exc_info=error)


def _show_error(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Shows where an exception came from, but not the words of a database's error: those quote rows, and rows are texts."""
    given = event.pop("exc_info", None)
    error = sys.exc_info()[1] if given is True else given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        event["exception"] = shown_error(error)
    return event


def _redacting(render: structlog.typing.Processor) -> structlog.typing.Processor:
    """The last of all processors: whatever it would write, it writes without keys."""

    def rendered(logger: object, method: str, event: structlog.typing.EventDict) -> str:
        name = event.get("event")
        try:
            return redacted(str(render(logger, method, event)))
        except Exception as error:  # noqa: BLE001 - a line that cannot be shown must not fail its caller
            return json.dumps(
                {"event": redacted(str(name)), "level": method, "unreadable": type(error).__name__}
            )

    return rendered


def load_operator_connections(settings: Settings) -> Connections:
    """The connections of the operator's file and of the environment.

    Raises:
        StartError: If the file can't be read, or it or a variable is unusable.
    """
    try:
        return load_connections(settings.read_config(), environment(), settings.simulator_url)
    except ConnectionsError as error:
        where = "the environment" if settings.config is None else f"ASSAY_CONFIG ({settings.config})"
        raise StartError(f"{where}: {error}") from error


def load_key_ring(settings: Settings) -> SecretCipher:
    """What the keys of connections are encrypted with.

    Raises:
        StartError: If their file can't be read, or a key is none.
    """
    try:
        return SecretCipher(parse_keys(settings.read_encryption_keys()))
    except ValueError as error:
        raise StartError(f"ASSAY_ENCRYPTION_KEYS: {error}") from error


def import_in_background(*modules: str, after: float = 0.0, then: Callable[[], None] | None = None) -> None:
    """Imports modules on a thread, one after the other; whoever needs one meanwhile waits for what is left of it.

    Args:
        modules: Their names.
        after: Seconds to wait first.
        then: Called on the thread when all are there, or one could not be imported.
    """

    def work() -> None:
        clock.sleep(after)
        try:
            for module in modules:
                importlib.import_module(module)
        finally:
            if then is not None:
                then()

    threading.Thread(target=work, name="imports", daemon=True).start()


def give_memory_back() -> None:
    """Spares what is imported by now, then returns memory to the system after large answers.

    Python looks for cycles rarely (see :mod:`app`), and the C library keeps what is freed in the middle of its heap.
    """
    keep_what_is_imported()
    threading.Thread(target=_give_memory_back, name="memory", daemon=True).start()


def _give_memory_back() -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    pause_ends = 0.0
    while True:
        LARGE_ANSWER_ENDED.wait()
        clock.sleep(MEMORY_SECONDS)
        begun = clock.monotonic()
        if begun >= pause_ends:
            LARGE_ANSWER_ENDED.clear()
            gc.collect()  # which holds up all other threads
            pause_ends = clock.monotonic() + HELD_UP * (clock.monotonic() - begun)
        pool = getattr(
            sys.modules.get("pyarrow"), "default_memory_pool", None
        )  # another thread may just import it
        if pool is not None:
            pool().release_unused()
        if trim is not None:
            trim(0)


def share_heaps() -> None:
    """Let threads share few heaps, each of which keeps what is freed in its middle; called before any thread starts.

    With unread answers of all kinds, the API and its children took 747 MB without this, and 626 MB with it.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's
    if set_option is not None:
        set_option(_M_ARENA_MAX, HEAPS)
    os.putenv("ARROW_DEFAULT_MEMORY_POOL", "system")  # Arrow's own allocator has a heap for each thread


def let_threads_give_way() -> None:
    """Lets the event loop run soon while a thread of its process computes."""
    sys.setswitchinterval(SWITCH_SECONDS)


def keep_what_is_imported() -> None:
    """Spares looks for garbage what there is by now: to walk through it would hold up everybody for a third of a second."""
    gc.collect()
    gc.freeze()
