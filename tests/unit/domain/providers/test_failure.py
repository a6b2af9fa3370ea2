import pytest

from app.domain.providers.failure import cause, may_pass, remedy


class TestCause:
    @pytest.mark.parametrize(
        ("code", "status", "model", "told"),
        [
            ("invalid_api_key", 401, "openai/gpt", "OpenAI rejected the key"),
            ("http_401", 401, "lab/a/b", "lab rejected the key"),
            ("insufficient_quota", 429, "anthropic/c", "the account at Anthropic has no credit left"),
            ("model_not_found", 404, "lab@v1/a/b", "lab has no model a/b, or the key may not use it"),
            ("odd", 429, "lab/m", "the rate limit of lab is used up"),
            ("odd", 503, "lab/m", "m at lab is down or overloaded"),
        ],
    )
    def test_names_the_provider_in_plain_words(self, code: str, status: int, model: str, told: str) -> None:
        assert cause(code, status, model, "HTTP: their words") == told

    def test_is_the_words_where_nothing_plainer_is_known(self) -> None:
        words = "api.openai.com can't be {resolved}"
        assert cause("connection_failed", None, "openai/gpt", words) == words
        assert cause("budget_exhausted", None, "openai/gpt") == "budget exhausted"


class TestRemedy:
    def test_names_where_the_key_is_set(self) -> None:
        told = {model: remedy("invalid_api_key", 401, model) for model in ("openai/a", "lab/a", "own@v2/a")}
        assert told == {
            "openai/a": "Set OPENAI_API_KEY and restart the service.",
            "lab/a": "Set the key variable of lab and restart the service.",
            "own@v2/a": "Give the connection own a new key.",
        }

    def test_is_that_of_the_code_before_that_of_the_status(self) -> None:
        assert remedy("insufficient_quota", 429) == remedy("credit_balance_too_low", 400)
        assert "parameter" in remedy("unsupported_value", 400)

    def test_is_that_of_the_status_where_the_code_is_not_known(self) -> None:
        assert remedy("NotFoundError", 404) == remedy("http_404", 404) == remedy("model_not_found")

    def test_points_to_the_answer_where_nothing_is_known(self) -> None:
        assert remedy("odd", 418) == remedy("odd") == "Change what the provider's message names."


class TestMayPass:
    @pytest.mark.parametrize(
        ("status", "expected"),
        [(None, True), (500, True), (429, True), (408, True), (400, False), (401, False)],
    )
    def test_is_what_is_tried_again(self, status: int | None, expected: bool) -> None:
        assert may_pass(status) is expected
