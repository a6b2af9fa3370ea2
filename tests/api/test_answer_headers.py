"""What each answer says to a browser."""

import pytest

from tests.api.service import Json, Service

ANSWERS = [
    "/v1/jobs",
    "/v1/jobs/job_none",
    "/v1/personas",
    "/docs",
    "/swagger/swagger-ui.css",
    "/openapi.json",
    "/",
    "/nothing",
]


class TestHeaders:
    @pytest.mark.parametrize("path", ANSWERS)
    def test_no_answer_is_framed_guessed_at_or_kept(self, running_api: Service, path: str) -> None:
        headers = running_api.get(path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"

    @pytest.mark.parametrize(
        "what", ["report?format=html", "report?format=csv", "results", "figures/models.svg"]
    )
    def test_nor_is_a_job_s(self, stack: Service, finished: Json, what: str) -> None:
        headers = stack.get(f"/v1/jobs/{finished['id']}/{what}").headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
