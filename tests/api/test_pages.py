"""Pages as answers: what confines them, what they load, and who may not change anything."""

import re

import httpx2
import pytest

from tests.api.service import Service, job_body

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def look(service: Service, path: str) -> httpx2.Response:
    """What a browser gets; the service's own client holds errors to the API's form."""
    return httpx2.get(f"{service.url}{path}", headers=BROWSER, timeout=30, trust_env=False)


class TestPages:
    def test_run_nothing_but_the_consoles_own_scripts(self, running_api: Service) -> None:
        answer = look(running_api, "/")
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert re.findall(r"<style|<script(?![^>]* src=)|\son\w+=|\sstyle=|javascript:", answer.text) == []

    def test_load_files_that_a_browser_may_keep_since_a_new_version_has_another_address(
        self, running_api: Service
    ) -> None:
        addresses = re.findall(r'(?:href|src)="(/static/[^"]+)"', look(running_api, "/").text)
        assert {address.rpartition(".")[2] for address in addresses} == {"css", "js"}
        for address in addresses:
            answer = look(running_api, address)
            assert answer.status_code == 200
            assert "immutable" in answer.headers["cache-control"]
            former = re.sub(r"/static/\w+/", "/static/0000/", address)
            assert look(running_api, former).headers["cache-control"] == "no-store"
        assert look(running_api, "/static/0000/none.js").status_code == 404

    def test_tell_problems_in_pages_and_the_api_its_own_in_json(self, running_api: Service) -> None:
        for path, status in (
            ("/nowhere", 404),
            ("/?status=odd", 422),
            ("/?after=odd", 422),
            ("/?odd=1", 422),
        ):
            answer = look(running_api, path)
            assert answer.status_code == status
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert answer.headers["x-request-id"] in answer.text
        assert look(running_api, "/v1/jobs/none").headers["content-type"] == "application/problem+json"
        assert running_api.get("/nowhere").headers["content-type"] == "application/problem+json"


class TestForeignPages:
    @pytest.mark.parametrize(
        "headers",
        [
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://127.0.0.1:1"},
        ],
    )
    def test_change_nothing(self, api: Service, headers: dict[str, str]) -> None:
        job = api.submit(job_body())
        for path in ("/v1/jobs", f"/v1/jobs/{job['id']}/cancel"):
            answer = api.post(path, job_body(), headers=headers)
            assert answer.status_code == 403
            assert answer.json()["code"] == "foreign_origin"
        assert api.http.delete(f"/v1/jobs/{job['id']}", headers=headers).status_code == 403
        assert api.job(job["id"])["status"] == "queued"

    def test_our_own_and_programs_do(self, api: Service) -> None:
        for headers in (
            {},
            {"Sec-Fetch-Site": "same-origin", "Origin": "https://behind-a-proxy.example"},
            {"Sec-Fetch-Site": "none"},
            {"Origin": api.url},
        ):
            assert api.post("/v1/jobs", job_body(), headers=headers).status_code == 202
