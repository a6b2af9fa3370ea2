"""What every process does first: logging, the operator's file; and what it does late, because it takes long."""

import functools
import importlib
import logging
import sys
import threading

import structlog

from app.domain.segmentation import PunktRules, Segmenter, Unit
from app.llm.connections import Connections, load_connections
from app.settings import Settings, environment


def configure_logging(level: str) -> None:
    """Structured lines on standard error: for people on a terminal, as JSON elsewhere."""
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    if sys.stderr.isatty():
        processors = [
            *processors[:-1],
            structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
        ]
    else:
        processors.append(structlog.processors.JSONRenderer())
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def load_operator_connections(settings: Settings) -> Connections:
    """The connections of the operator's file and of the environment.

    Raises:
        OSError: If the file can't be read.
        ConnectionsError: If it, or a variable, is unusable.
    """
    text = settings.config.read_text(encoding="utf-8") if settings.config is not None else None
    return load_connections(text, environment(), settings.simulator_url)


class LateSegmenter:
    """The segmenter, loaded when first used: importing NLTK, which brings scipy, takes two seconds."""

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


def import_in_background(*modules: str) -> None:
    """Imports modules on a thread, one after the other; whoever needs one meanwhile waits for what is left of it."""

    def work() -> None:
        for module in modules:
            importlib.import_module(module)

    threading.Thread(target=work, name="imports", daemon=True).start()
