import pytest
from sqlalchemy.exc import OperationalError

from app.llm.replies.transport_reply import LostConnectionError
from app.services.errors import internal_cause


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (LostConnectionError("secret text"), "a connection was lost"),
        (TimeoutError(), "a step took too long"),
        (MemoryError(), "the process ran out of memory"),
        (OSError(28, "No space left on device"), "the operating system reported: No space left on device"),
        (
            OperationalError("SELECT", {}, ConnectionError("connection lost")),
            "the database failed: the connection was lost",
        ),
        (KeyError("secret text"), "an unexpected error occurred"),
    ],
)
def test_an_internal_error_is_described_without_its_class_and_text(error: Exception, words: str) -> None:
    assert internal_cause(error) == words
