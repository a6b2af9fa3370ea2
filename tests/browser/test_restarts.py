"""A page of the console stays alive while its API is started again behind nginx, as docs/examples sets it up."""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Response, expect

from app.domain.keys.api_key import Scope
from embedded.supervisor import free_port
from tests.api.keys import KeyMaker, bearer, guarded
from tests.api.service import job_body
from tests.api.test_proxies import SEARCHED, proxied
from tests.browser.conftest import PATIENCE_MILLISECONDS
from tests.browser.watching import Watcher

pytestmark = pytest.mark.skipif(shutil.which("nginx", path=SEARCHED) is None, reason="needs nginx")
CANCELLED = re.compile("cancel", re.IGNORECASE)


def refused_stream(response: Response) -> bool:
    return response.status == 502 and "/live/jobs/" in response.url


def test_a_jobs_page_goes_on_by_itself_after_the_proxys_502s(
    browser: Browser, scratch: Path, database_url: str, redis_url: str
) -> None:
    port = free_port("127.0.0.1", 0)
    key = KeyMaker(database_url).make(Scope.SUBMIT)
    with proxied("nginx", scratch, port) as client:
        origin = str(client.base_url).rstrip("/")
        context = browser.new_context(base_url=origin, ignore_https_errors=True)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        page, watcher = context.new_page(), Watcher(origin)
        watcher.watch(context, page)
        with guarded(scratch, database_url, redis_url, port=port):
            job = client.post("/v1/jobs", json=job_body(), headers=bearer(key)).json()["id"]
            page.goto(f"/sign-in?next=/jobs/{job}")
            page.get_by_label("Your API key").fill(key["key"])
            # Once it is live: a page whose script the API's end cut off stays as it is.
            with page.expect_response(lambda response: "/live/jobs/" in response.url):
                page.keyboard.press("Enter")
            expect(page).to_have_url(f"{origin}/jobs/{job}")
            page.evaluate("window.stayed = true")
            status = page.locator("#state .status")
            expect(status).not_to_contain_text(CANCELLED)
        for _ in range(2):  # so it tries again also after a 502, where a browser by itself does not
            page.wait_for_event("response", refused_stream)
        with guarded(scratch, database_url, redis_url, port=port):
            assert client.post(f"/v1/jobs/{job}/cancel", headers=bearer(key)).status_code == 200
            expect(status).to_contain_text(CANCELLED)
            assert page.evaluate("window.stayed") is True
            context.close()
    watcher.expect("/live/jobs/")  # broken off, and refused
    assert watcher.complaints == []
