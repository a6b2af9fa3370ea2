from app.domain.jobs.remedy import remedy


class TestRemedy:
    def test_is_that_of_the_code_before_that_of_the_status(self) -> None:
        assert remedy("insufficient_quota", 429) == remedy("credit_balance_too_low", 400)
        assert "parameter" in remedy("unsupported_value", 400)

    def test_is_that_of_the_status_where_the_code_is_not_known(self) -> None:
        assert remedy("NotFoundError", 404) == remedy("http_404", 404) == remedy("model_not_found")

    def test_points_to_the_answer_where_nothing_is_known(self) -> None:
        assert remedy("odd", 418) == remedy("odd") == "Change what the provider's message names."
