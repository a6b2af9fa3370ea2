"""What every process does first: logging, the operator's file; and what it does late, because it takes long."""

import contextlib
import functools
import gc
import importlib
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator

import structlog

from app.domain.segmentation import PunktRules, Segmenter, Unit
from app.llm.connections import Connections, ConnectionsError, load_connections
from app.settings import Settings, StartError, environment
from app.telemetry.redaction import redact_logging, redacted
from app.vault.keyring import KeyRing, parse_keys

_QUOTING = frozenset({"psycopg", "sqlalchemy"})
"""Packages whose exceptions quote what they were given."""


@contextlib.contextmanager
def told_start() -> Iterator[None]:
    """Ends a process that can't start with the reason, and without a traceback: it is nothing that our code could do better."""
    try:
        yield
    except StartError as error:
        raise SystemExit(f"Error: {error}") from error


def configure_logging(settings: Settings) -> None:
    """Structured lines on standard error: for people on a terminal, as JSON elsewhere, unless the settings say which."""
    level = settings.log_level
    readable = sys.stderr.isatty() if settings.log_format == "auto" else settings.log_format == "text"
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _show_error,
    ]
    processors.append(
        _redacting(structlog.dev.ConsoleRenderer() if readable else structlog.processors.JSONRenderer())
    )
    redact_logging()
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def _show_error(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Shows where an exception came from, but not the words of a database's error: those quote rows, and rows are texts."""
    given = event.pop("exc_info", None)
    error = sys.exc_info()[1] if given is True else given
    if isinstance(error, BaseException):
        event["exception"] = "\n".join(reversed(list(_shown(error))))
    return event


def _redacting(render: structlog.typing.Processor) -> structlog.typing.Processor:
    """The last of all processors: whatever it would write, it writes without keys."""

    def rendered(logger: object, method: str, event: structlog.typing.EventDict) -> str:
        return redacted(str(render(logger, method, event)))

    return rendered


def _shown(error: BaseException | None) -> Iterator[str]:
    """An exception and what led to it, the last first."""
    while error is not None:
        kind = type(error)
        words = "" if kind.__module__.partition(".")[0] in _QUOTING else f": {error}"
        yield f"{''.join(traceback.format_tb(error.__traceback__))}{kind.__module__}.{kind.__qualname__}{words}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


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


def load_key_ring(settings: Settings) -> KeyRing:
    """What the keys of connections are encrypted with.

    Raises:
        StartError: If their file can't be read, or a key is none.
    """
    try:
        return KeyRing(parse_keys(settings.read_encryption_keys()))
    except ValueError as error:
        raise StartError(f"ASSAY_ENCRYPTION_KEYS: {error}") from error


class LateSegmenter:
    """The segmenter, loaded when first used: importing NLTK takes a third of a second."""

    def __init__(self, rules: PunktRules) -> None:
        self.name = rules.name
        self._rules = rules

    def segment(self, text: str) -> tuple[Unit, ...]:
        """The units of a text; see :class:`app.domain.segmentation.Segmenter`."""
        return self._loaded.segment(text)

    @functools.cached_property
    def _loaded(self) -> Segmenter:
        from app.domain.punkt import PunktSegmenter  # noqa: PLC0415

        return PunktSegmenter(self._rules)


def import_in_background(*modules: str, after: float = 0.0, then: Callable[[], None] | None = None) -> None:
    """Imports modules on a thread, one after the other; whoever needs one meanwhile waits for what is left of it.

    Args:
        modules: Their names.
        after: Seconds to wait first.
        then: Called on the thread when all are there, or one could not be imported.
    """

    def work() -> None:
        time.sleep(after)
        try:
            for module in modules:
                importlib.import_module(module)
        finally:
            if then is not None:
                then()

    threading.Thread(target=work, name="imports", daemon=True).start()


def keep_what_is_imported() -> None:
    """Spares looks for garbage what there is by now: to walk through it would hold up everybody for a third of a second."""
    gc.collect()
    gc.freeze()
