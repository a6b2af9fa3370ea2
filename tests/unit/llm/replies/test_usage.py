"""What counts of tokens are believed, and where a failed call's are found."""

from typing import Any

import pytest

from app.domain.providers.model import Usage
from app.llm.replies.usage import billed_usage, read_usage

COUNTS: dict[str, Any] = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
MOST = 2**31 - 1


class TestReadUsage:
    def test_believes_ordinary_counts(self) -> None:
        assert read_usage(COUNTS, 20) == Usage(12, 5)

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, 0),
            ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, 15),
            ({"prompt_tokens": 0}, 15),
            ({"completion_tokens": 0, "total_tokens": 12}, 1),
            ({"completion_tokens": 1, "total_tokens": 13}, 2_000),
            ({"completion_tokens": 20, "total_tokens": 32}, 2_000),
            ({"completion_tokens": -5}, 15),
            ({"prompt_tokens": -1}, 15),
            ({"completion_tokens": "5"}, 15),
            ({"prompt_tokens": 1.5}, 15),
            ({"prompt_tokens": True}, 15),
            ({"total_tokens": "17"}, 15),
            ({"total_tokens": -17}, 15),
            ({"total_tokens": 2**31}, 15),
            ({"prompt_tokens": 2**31}, 15),
            ({"prompt_tokens": MOST, "completion_tokens": MOST}, 15),
            ({"prompt_tokens": MOST}, 15),
            ({"completion_tokens_details": {"reasoning_tokens": 6}}, 15),
            ({"completion_tokens_details": {"reasoning_tokens": -1}}, 15),
            ({"output_tokens_details": {"reasoning_tokens": 600}}, 15),
            ({"prompt_tokens_details": {"cached_tokens": 13}}, 15),
            ({"cached_tokens": "12"}, 15),
            ({"prompt_cache_hit_tokens": 13}, 15),
            ({"prompt_tokens": None}, 15),
        ],
    )
    def test_does_not_believe_what_cannot_be(self, changed: dict[str, Any], said: int) -> None:
        assert read_usage(COUNTS | changed, said) is None

    def test_counts_anthropics_cache_within_the_input(self) -> None:
        counts = {
            "input_tokens": 4,
            "cache_read_input_tokens": 16,
            "cache_creation_input_tokens": 3,
            "output_tokens": 5,
        }
        assert read_usage(counts) == Usage(23, 5, 16, 3)

    def test_believes_few_tokens_of_spaces(self) -> None:
        assert read_usage(COUNTS | {"completion_tokens": 1, "total_tokens": 13}, 70) == Usage(12, 1)


class TestBilledUsage:
    @pytest.mark.parametrize(
        "body",
        [
            {"error": {"message": "no"}, "usage": COUNTS},
            {"error": {"message": "no", "usage": COUNTS}},
            {"error": {"metadata": {"raw": {"usage": COUNTS}}}},
            {"choices": [{"error": {"code": 502}, "message": {"content": "I am"}, "usage": COUNTS}]},
            {"choices": [{"message": {"content": "I am"}}], "usage": None, "x_groq": {"usage": COUNTS}},
            [
                {
                    "error": {"code": 400},
                    "usageMetadata": {
                        "promptTokenCount": 12,
                        "totalTokenCount": 17,
                        "candidatesTokenCount": 5,
                    },
                }
            ],
            {"usage": {"prompt_tokens": 0, "completion_tokens": 0}, "error": {"usage": COUNTS}},
            {
                "type": "error",
                "error": {"type": "x"},
                "message": {"usage": {"input_tokens": 12, "output_tokens": 5}},
            },
        ],
    )
    def test_is_found_wherever_it_stands(self, body: object) -> None:
        assert billed_usage([body]) == Usage(12, 5)

    def test_is_put_together_from_the_events_of_a_stream(self) -> None:
        events = [
            {"type": "message_start", "message": {"usage": {"input_tokens": 12, "output_tokens": 1}}},
            {"type": "message_delta", "usage": {"output_tokens": 5}},
            {"type": "error", "error": {"type": "overloaded_error"}},
        ]
        assert billed_usage(events) == Usage(12, 5)

    @pytest.mark.parametrize(
        "body",
        [
            "a page",
            {"error": {"message": "no"}},
            {"usage": [12, 5]},
            {"usage": {}},
            {"usage": {"prompt_tokens": 0, "completion_tokens": 0}},
            {"usage": COUNTS, "choices": [{"message": {"content": "x" * 1_000}}]},
        ],
    )
    def test_is_unknown_where_none_is_believed(self, body: object) -> None:
        assert billed_usage([body]) is None
