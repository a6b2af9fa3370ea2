"""What every process does first: logging, the operator's file."""

import logging
import sys

import structlog

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
