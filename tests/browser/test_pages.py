"""The console's pages of what jobs name, in a real browser: read, filled in, and reached by keys."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from embedded.valkey import EmbeddedValkey
from tests.browser.test_console import SMALL
from tests.browser.watching import Watcher, barriers, looks_right, overflow
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import Stack, running_stack
from tests.rubrics import OFFICIAL


@pytest.fixture(scope="module")
def stack(
    chromium: str, databases: Databases, template_database: str, valkey: EmbeddedValkey
) -> Iterator[Stack]:
    """A running service that knows nothing yet."""
    with (
        databases.new("pages", template=template_database) as url,
        scratch_directory() as directory,
        running_stack(directory, database_url=url, redis_url=valkey.url()) as running,
    ):
        yield running


class TestSets:
    def test_personas_are_pasted_mended_and_kept(self, page: Page, watcher: Watcher) -> None:
        page.goto("/")
        page.get_by_role("link", name="Sets").click()
        looks_right(page)
        page.get_by_label("Name").fill("critics")
        page.get_by_label("Personas").fill("a blunt critic; A low\na nurse; N")
        page.get_by_role("button", name="Keep as a set").click()
        expect(page.get_by_role("alert")).to_contain_text("must map dimensions to levels")
        watcher.expect("422")
        assert barriers(page) == []
        personas = page.get_by_label("Personas")
        personas.fill(personas.input_value() + " low")
        page.get_by_role("button", name="Keep as a set").click()
        expect(page.get_by_role("heading", name="critics")).to_be_visible()
        expect(page.get_by_text("low in emotional stability (neurotic)")).to_be_visible()
        looks_right(page)
        page.get_by_role("link", name="New job with these personas").click()
        expect(page.get_by_role("checkbox", name=re.compile("^critics, 2"))).to_be_checked()

    def test_questions_are_pasted_and_read(self, page: Page) -> None:
        page.goto("/question-sets")
        expect(page.get_by_text("No question sets yet.")).to_be_visible()
        page.get_by_label("Questions").fill(
            "persona,task,question\na cowboy,expected_action,A storm comes up. What now?"
        )
        page.get_by_role("button", name="Keep as a set").click()
        expect(page.get_by_text("A storm comes up. What now?")).to_be_visible()
        looks_right(page)
        page.get_by_role("link", name="Question sets").click()
        looks_right(page)

    def test_rubrics_are_pasted_mended_and_read(self, page: Page, watcher: Watcher) -> None:
        page.goto("/rubric-sets")
        looks_right(page)
        page.get_by_label("Name").fill("released")
        page.get_by_label("Tasks").fill(json.dumps({"Toxicity": "Grade {response}"}))
        page.get_by_role("button", name="Keep as a set").click()
        expect(page.get_by_role("alert")).to_contain_text("must contain {persona}")
        watcher.expect("422")
        assert barriers(page) == []
        page.get_by_label("Tasks").fill(json.dumps(OFFICIAL))
        page.get_by_role("button", name="Keep as a set").click()
        expect(page.get_by_role("heading", name="released")).to_be_visible()
        page.get_by_text("Toxicity Control").click()
        expect(page.get_by_text("containing clear insults")).to_be_visible()
        looks_right(page)
        page.get_by_role("link", name="Rubric sets").click()
        looks_right(page)


class TestConnections:
    def test_each_key_is_checked_and_a_model_called(self, page: Page, stack: Stack) -> None:
        simulator = str(stack._simulator.base_url).rstrip("/")
        for name, key in (("good", "any"), ("bad", "wrong")):
            body = {"name": name, "kind": "openai", "base_url": f"{simulator}/v1", "api_key": key}
            assert stack.api.post("/v1/connections", json=body).status_code == 201
        page.goto("/")
        page.get_by_role("link", name="Settings").click()
        page.get_by_role("button", name="Check all keys").click()
        good = page.get_by_role("listitem").filter(has=page.get_by_text("good", exact=True))
        bad = page.get_by_role("listitem").filter(has=page.get_by_text("bad", exact=True))
        expect(good.get_by_role("status")).to_have_text("Key accepted.")
        expect(bad.get_by_role("status")).to_contain_text(
            "Bad rejected the key. Give the connection bad a new key."
        )
        good.get_by_role("textbox", name="Model of good").fill("sim-faithful")
        good.get_by_role("button", name="Test a model of good").click()
        expect(good.get_by_role("status")).to_contain_text("It answered")
        expect(good.get_by_role("textbox", name="Model of good")).to_have_value("sim-faithful")
        page.goto("/connections")
        looks_right(page)


class TestWebhooks:
    def test_one_is_made_and_its_messages_are_seen(self, page: Page) -> None:
        page.goto("/webhooks")
        looks_right(page)
        page.get_by_label("URL").fill("http://127.0.0.1:9/hook")
        page.get_by_role("button", name="Create webhook").click()
        expect(page.locator("#made")).to_contain_text("whsec_")
        assert barriers(page) == []
        page.get_by_role("button", name="Send a test").click()
        expect(page.get_by_role("listitem").filter(has_text="webhook.test")).to_be_visible()
        page.reload()
        looks_right(page)
        page.get_by_text("Delete …").click()
        page.get_by_role("button", name="Delete this webhook").click()
        expect(page.get_by_text("No webhooks yet.")).to_be_visible()


class TestSharing:
    def test_a_link_is_made_followed_and_revoked(self, page: Page, stack: Stack, watcher: Watcher) -> None:
        job = stack.submit(SMALL)
        stack.ended(job)
        page.goto(f"/jobs/{job}")
        page.get_by_role("link", name="Share").click()
        page.get_by_label("Whom it is for").fill("reviewers")
        page.get_by_role("button", name="Create link").click()
        link = page.locator("#made code").inner_text()
        assert barriers(page) == []
        page.goto(f"/jobs/{job}/share")
        looks_right(page)
        page.goto(link)
        expect(page.get_by_role("heading", name="A small one")).to_be_visible()
        assert page.get_by_role("link", name="Jobs").count() == 0
        looks_right(page)
        page.get_by_role("link", name="Report").click()
        expect(page).to_have_title(re.compile("A small one"))
        page.goto(f"/jobs/{job}/share")
        page.get_by_text("Revoke …").first.click()
        page.get_by_role("button", name="Revoke this link").first.click()
        expect(page.get_by_text("revoked", exact=True)).to_be_visible()
        page.goto(link)
        expect(page.get_by_role("heading")).to_contain_text("does not exist")
        watcher.expect("404")


class TestImport:
    def test_a_file_is_read_mapped_and_becomes_a_job(
        self, page: Page, watcher: Watcher, stack: Stack
    ) -> None:
        before = stack.api.get("/v1/jobs").json()["data"]
        rows = "".join(
            f'{{"persona": "a clown", "response": "Ha {n}.", "rating": {n}}}\n' for n in (0, 9, 10)
        )
        file = {"name": "rows.jsonl", "mimeType": "", "buffer": (rows + "5\n").encode()}
        page.goto("/new")
        page.get_by_role("link", name="Import a file of another tool").click()
        looks_right(page)
        page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
        page.get_by_role("button", name="Read the file").click()
        expect(page.get_by_text("3 of 4 records can be imported, 1 refused.")).to_be_visible()
        assert (barriers(page), overflow(page)) == ([], 0)
        page.get_by_role("combobox", name="Score").select_option("rating")
        page.get_by_role("combobox", name="extraversion").select_option("high (extraverted)")
        page.get_by_role("button", name="Read again").click()
        expect(page.get_by_role("alert")).to_contain_text("go from 0 to 10")
        watcher.expect("422")
        assert barriers(page) == []
        page.get_by_label("Its scale").fill("0-10")
        assert stack.api.get("/v1/jobs").json()["data"] == before, "nothing is stored before it is asked for"
        page.get_by_role("button", name="Estimate a job").click()
        expect(page.get_by_text("the nearest of 0 → 1")).to_be_visible()
        assert (barriers(page), overflow(page)) == ([], 0)
        page.get_by_role("button", name="Submit job").click()
        expect(page).to_have_url(re.compile("/jobs/job_"))

    def test_a_file_that_is_too_large_is_told_of_and_another_may_be_chosen(self, page: Page) -> None:
        page.goto("/import")
        chosen, read = page.locator("input[type=file]"), page.get_by_role("button", name="Read the file")
        text = b'{"persona": "a clown", "response": "Ha."}\n'
        chosen.set_input_files({"name": "a.jsonl", "mimeType": "", "buffer": text * 2**18})
        expect(page.get_by_role("alert")).to_contain_text("too large for this page, which takes 7.94 MiB")
        expect(read).to_be_disabled()
        assert (barriers(page), overflow(page)) == ([], 0)
        chosen.set_input_files({"name": "b.jsonl", "mimeType": "", "buffer": text})
        expect(page.get_by_role("alert")).to_have_count(0)
        read.click()
        expect(page.get_by_text("1 of 1 record can be imported.")).to_be_visible()
        page.locator("input[type=file]").set_input_files(
            {"name": "c.jsonl", "mimeType": "", "buffer": text * 2}
        )
        page.get_by_role("button", name="Read again").click()
        expect(page.get_by_text("2 of 2 records can be imported.")).to_be_visible()
