"""The console: every page in a real browser, before a real service."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from embedded.valkey import EmbeddedValkey
from tests.browser.watching import Watcher, barriers, overflow, unreached
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import Json, Stack, running_stack
from tests.unit.reports.hostile import HOSTILE

SMALL: Json = {
    "name": "A small one",
    "personas": ["E-high"],
    "tasks": ["essay"],
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1],
    "iterations": 2,
}
TWO_BY_TWO: Json = SMALL | {
    "name": "Two by two",
    "personas": ["E-high", "N-low"],
    "tasks": ["essay", "social_media_post"],
    "models": ["simulated/sim-faithful", "simulated/sim-drifting"],
    "judges": ["simulated/sim-judge", "simulated/sim-judge-noisy"],
    "iterations": 3,
}
SLOW = {"latency_ms": 700, "jitter_ms": 700}
"""Some replies come at once, some take their time: a job is seen at work, with results."""
QUICK = {"latency_ms": 1, "jitter_ms": 0}
NARROW: ViewportSize = {"width": 380, "height": 800}


@pytest.fixture(scope="module")
def stack(
    chromium: str, databases: Databases, template_database: str, valkey: EmbeddedValkey
) -> Iterator[Stack]:
    """A running service that knows no job yet."""
    with (
        databases.new("console", template=template_database) as url,
        scratch_directory() as directory,
        running_stack(directory, database_url=url, redis_url=valkey.url()) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def finished(stack: Stack) -> str:
    """The id of a job of two models, two personas, two tasks, two judges and three runs, completed."""
    job = stack.submit(TWO_BY_TWO)
    assert stack.ended(job)["status"] == "completed"
    return job


class TestJobs:
    def test_one_appears_moves_and_ends_without_a_reload(self, page: Page, stack: Stack) -> None:
        page.goto("/")
        expect(page.get_by_text("No jobs yet.")).to_be_visible()
        page.evaluate("window.here = true")
        stack.simulate(**SLOW)
        job = stack.submit(SMALL)
        shown = page.get_by_role("listitem").filter(has_text="A small one")
        expect(shown.get_by_text("running")).to_be_visible()
        expect(shown.get_by_text("simulated", exact=True)).to_be_visible()
        stack.simulate(**QUICK)
        expect(shown.get_by_text("completed")).to_be_visible()
        (score,) = stack.ended(job)["scores"]
        expect(shown).to_contain_text(f"{score['value']:.2f} simulated/sim-faithful ACCatom, n = 1")
        assert page.evaluate("window.here")
        assert barriers(page) == []
        assert overflow(page) == 0

    def test_a_name_from_outside_stays_text_and_in_its_place(self, page: Page, stack: Stack) -> None:
        name = "<script>alert(1)</script> \u202e" + "x" * 250
        stack.submit(SMALL | {"name": name})
        page.set_viewport_size(NARROW)
        page.goto("/")
        expect(page.get_by_role("link", name="<script>alert(1)</script>")).to_have_text(
            name.replace("\u202e", "\ufffd")
        )
        assert overflow(page) == 0

    def test_one_is_renamed_tagged_found_archived_and_deleted(self, page: Page, stack: Stack) -> None:
        job = stack.submit(SMALL | {"name": "To be renamed", "iterations": 1})
        stack.ended(job)
        page.goto(f"/jobs/{job}")
        page.get_by_text("Edit name, tags and notes").click()
        for label, text in (
            ("Name", "Renamed"),
            ("Tags, separated", "kept, odd tag"),
            ("Notes", "why\nand when"),
        ):
            page.get_by_label(label).fill(text)
        assert barriers(page) == []
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("heading", name="Renamed")).to_be_visible()
        page.get_by_role("link", name="odd tag").click()
        expect(page).to_have_url("/?tag=odd+tag")
        page.get_by_role("link", name="Score", exact=True).click()
        expect(page.get_by_role("link", name="Score, descending")).to_be_visible()
        page.set_viewport_size(NARROW)
        assert (barriers(page), overflow(page)) == ([], 0)
        page.get_by_label("Choose Renamed").check()
        page.get_by_role("button", name="Archive selected").click()
        expect(page.get_by_text("No jobs match this filter.")).to_be_visible()
        page.get_by_label("Archive").select_option("archived")
        page.get_by_role("button", name="Show").click()
        page.get_by_role("link", name="Renamed").click()
        page.get_by_text("Delete …").click()
        expect(page.get_by_role("listitem").get_by_text("1 response", exact=True)).to_be_visible()
        assert (barriers(page), overflow(page)) == ([], 0)
        page.get_by_role("button", name="Delete this job").click()
        expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
        assert stack.api.get(f"/v1/jobs/{job}").status_code == 404

    def test_pages_and_states_are_in_the_address(self, page: Page, stack: Stack) -> None:
        for number in range(21):
            stack.submit(SMALL | {"name": f"Number {number}", "iterations": 1})
        page.goto("/")
        expect(page.get_by_role("link", name="Number 1", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name="Number 0", exact=True)).to_have_count(0)
        page.get_by_role("link", name="Older").click()
        expect(page.get_by_role("link", name="Number 0", exact=True)).to_be_visible()
        page.get_by_role("link", name="completed").click()
        expect(page).to_have_url("/?status=completed")
        page.get_by_role("link", name="cancelled").click()
        expect(page.get_by_text("No jobs match this filter.")).to_be_visible()


class TestJob:
    def test_goes_on_before_ones_eyes_with_its_results(self, page: Page, stack: Stack) -> None:
        stack.simulate(**SLOW)
        job = stack.submit(SMALL | {"iterations": 20})
        page.goto(f"/jobs/{job}")
        page.evaluate("window.here = true")
        state, results = page.locator("#state"), page.locator("#results")
        expect(state.get_by_role("img", name=re.compile("judging: [1-9]"))).to_be_visible()
        expect(results.get_by_text("n = 1 cell").first).to_be_visible()
        expect(state.locator(".status")).to_have_text("completed")
        expect(results.get_by_role("heading", name="Results", exact=True)).to_be_visible()
        expect(page.get_by_role("status")).to_have_text("completed")
        units = stack.results(job)["cells"][0]["units"]
        row = results.get_by_role("row", name="simulated/sim-faithful")
        expect(row).to_contain_text(f"{units['scored']}of {units['total']}")
        expect(state.get_by_role("button")).to_have_count(0)
        assert page.evaluate("window.here")

    def test_does_what_it_is_told(self, page: Page, stack: Stack) -> None:
        stack.simulate(latency_ms=60_000, jitter_ms=0)
        job = stack.submit(SMALL)
        page.goto(f"/jobs/{job}")
        state = page.locator("#state")
        # A resumed job stays queued while calls from before its pause are on the wire.
        for button, status in (("Pause", "paused"), ("Resume", "queued|running"), ("Cancel", "cancelled")):
            state.get_by_role("button", name=button).click()
            expect(state.locator(".status")).to_have_text(re.compile(status))
            assert barriers(page) == []
        assert stack.job(job)["status_reason"] == "cancelled_by_user"
        stack.simulate(**QUICK)

    def test_leads_to_its_report_and_to_the_responses_that_break_it(
        self, page: Page, stack: Stack, finished: str
    ) -> None:
        page.goto(f"/jobs/{finished}")
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV").click()
        assert download.value.suggested_filename == f"{finished}.csv"
        worst = min(stack.results(finished)["cells"], key=lambda cell: cell["metrics"]["acc_atom"]["value"])
        page.get_by_role("list").filter(has_text=worst["persona"]).get_by_role("link").first.click()
        for field in ("model", "persona", "task"):
            expect(page.get_by_role("combobox", name=field)).to_have_value(worst[field])
        expect(page.get_by_role("checkbox", name="out of character")).to_be_checked()
        page.go_back()
        page.get_by_role("link", name="Report").click()
        expect(page).to_have_title(re.compile("Two by two"))


class TestResponses:
    def test_sentences_carry_the_marks_that_their_scores_call_for(
        self, page: Page, stack: Stack, finished: str
    ) -> None:
        page.goto(f"/jobs/{finished}/responses")
        page.locator(".card").first.wait_for()
        found = stack.api.get(f"/v1/jobs/{finished}/responses", params={"limit": 20}).json()["data"]
        units = [unit for response in found for unit in response["units"]]
        shown = [
            (mark, text)
            for mark, text in page.locator(".card .s").evaluate_all(
                "all => all.map(s => [s.classList[1], s.querySelector('span').textContent])"
            )
        ]
        assert shown == [(self.side(unit), unit["text"]) for unit in units]
        assert {"in", "below", "above", "none"} & {mark for mark, _ in shown} >= {"in", "none"}

    @staticmethod
    def side(unit: Json) -> str:
        """Where a sentence stands to E-high (4 and 5 of 5) or N-low (1 and 2), whoever judges it worst."""
        scored = [verdict for verdict in unit["verdicts"] if verdict["score"] is not None]
        outside = [verdict for verdict in scored if not verdict["in_character"]]
        if not outside:
            return "in" if scored else "none"
        return "below" if outside[0]["dimension"] == "E" else "above"

    def test_a_judges_own_words_show_where_one_stops(self, page: Page, stack: Stack, finished: str) -> None:
        page.goto(f"/jobs/{finished}/responses")
        sentence = page.locator(".card .s[data-verdicts]").first
        sentence.focus()
        words = sentence.evaluate("s => getComputedStyle(s, '::after').content")
        found = stack.api.get(f"/v1/jobs/{finished}/responses", params={"limit": 1}).json()["data"][0]
        for verdict in found["units"][0]["verdicts"]:
            assert verdict["judge"] in words
            assert verdict["raw"][:20] in words.replace("\\a ", "\n")

    def test_filters_choose_what_the_api_chooses_and_stand_in_the_address(
        self, page: Page, stack: Stack, finished: str
    ) -> None:
        page.goto(f"/jobs/{finished}/responses")
        page.get_by_role("combobox", name="Model").select_option("simulated/sim-drifting")
        page.get_by_role("combobox", name="Task").select_option("essay")
        page.get_by_role("checkbox", name="judges disagree").check()
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**/responses?**judges_disagree=true**")
        chosen = {"model": "simulated/sim-drifting", "task": "essay", "judges_disagree": "true"}
        found = stack.api.get(f"/v1/jobs/{finished}/responses", params=chosen).json()["data"]
        assert 0 < len(found) <= 6
        assert self.texts(page) == ["".join(u["text"] for u in each["units"]) for each in found]
        page.get_by_role("link", name="Clear filters").click()
        expect(page.locator(".card")).to_have_count(20)

    def test_pages_follow_each_other_to_the_last_response(
        self, page: Page, stack: Stack, finished: str
    ) -> None:
        page.goto(f"/jobs/{finished}/responses")
        seen = self.texts(page)
        page.get_by_role("link", name="Next").click()
        page.wait_for_url("**after=**")
        seen += self.texts(page)
        expect(page.get_by_role("link", name="Next")).to_have_count(0)
        everything = ["".join(u["text"] for u in each["units"]) for each in stack.responses(finished)]
        assert seen == everything

    @staticmethod
    def texts(page: Page) -> list[str]:
        """The cards' sentences, joined."""
        script = "all => all.map(c => [...c.querySelectorAll('.s > span')].map(s => s.textContent).join(''))"
        found: list[str] = page.locator(".card").evaluate_all(script)
        return found

    def test_hostile_texts_stay_text_and_in_their_place(self, page: Page, stack: Stack) -> None:
        texts = [
            HOSTILE[-1],
            *(text for text in HOSTILE[:-1] if text.strip()),
        ]  # the longest on the first page
        label = "<img src=x onerror=alert(1)>\u202e"
        body = {name: SMALL[name] for name in ("personas", "judges")} | {"tasks": ["social_media_post"]}
        responses = [
            {"persona": "E-high", "task": "social_media_post", "model": label, "text": text} for text in texts
        ]
        job = stack.submit(body | {"responses": responses})
        stack.ended(job)
        page.set_viewport_size(NARROW)
        for path in (f"/jobs/{job}", f"/jobs/{job}/responses", f"/compare?a={job}"):
            page.goto(path)
            assert overflow(page) == 0, path
        page.goto(f"/jobs/{job}/responses?model={label}")
        expect(page.locator("main script, main img")).to_have_count(0)
        shown = "".join(page.locator(".card .text").all_text_contents())
        for hostile in (
            "<script>alert(1)</script>",
            "=cmd|' /C calc'!A1",
            "{{ 7*7 }}",
            "\ufffdright to left",
        ):
            assert hostile in shown
        expect(page.get_by_text("more characters").first).to_be_visible()


class TestCompare:
    def test_says_in_a_sentence_what_a_difference_is_worth(
        self, page: Page, stack: Stack, finished: str
    ) -> None:
        page.goto("/compare")
        for side, model in (("a", "simulated/sim-faithful"), ("b", "simulated/sim-drifting")):
            page.get_by_role("combobox", name=f"Model {side.upper()}", exact=True).select_option(
                f"{finished}:{model}"
            )
        page.get_by_role("button", name="Compare").click()
        # Two personas give no interval.
        expect(page.locator(".verdict")).to_contain_text("Too few personas to compare")
        found = stack.api.post(
            "/v1/comparisons",
            json={
                side: {"job": finished, "model": f"simulated/{model}"}
                for side, model in (("a", "sim-faithful"), ("b", "sim-drifting"))
            },
        ).json()
        rows = page.get_by_role("table").locator("tbody tr")
        expect(rows).to_have_count(len(found["differences"]))
        first = found["differences"][0]
        expect(rows.first).to_contain_text(f"{first['a']:.2f}{first['b']:.2f}")

    def test_published_figures_differ_for_sure(self, page: Page) -> None:
        page.goto("/compare?a=baseline:GPT-4o&b=baseline:Mistral-7B")
        expect(page.locator(".verdict strong")).to_be_visible()
        assert barriers(page) == []

    def test_of_several_models_draws_each_difference_from_the_highest(self, page: Page) -> None:
        page.goto("/compare")
        page.get_by_text("Compare several models").click()
        for model in ("GPT-4o", "Claude-3-haiku", "Mistral-7B"):
            page.get_by_role("checkbox", name=model, exact=True).check()
        page.get_by_role("button", name="Compare these").click()
        expect(page.locator(".verdict")).to_contain_text(re.compile("each of the other 2 models|told apart"))
        expect(page.locator(".ranking").get_by_role("img")).to_have_count(3)
        page.get_by_text("All 3 pairs by").click()
        expect(page.get_by_role("group", name="All pairs").locator("tbody tr")).to_have_count(3)
        assert barriers(page) == []

    def test_jobs_are_chosen_from_their_list(self, page: Page, finished: str) -> None:
        page.goto("/")
        page.locator(f"#choose-{finished}").check()
        page.get_by_role("button", name="Compare models of selected jobs").click()
        expect(page).to_have_url(re.compile(rf"/compare\?model={finished}$"))
        expect(page.locator(".ranking").first).to_contain_text("sim-drifting")
        assert barriers(page) == []

    def test_tells_at_the_side_what_cannot_be_compared(self, page: Page, watcher: Watcher) -> None:
        page.goto("/compare?a=baseline:nobody&b=baseline:GPT-4o")
        expect(page.get_by_role("alert")).to_contain_text("you have no baseline of that name")
        expect(page.get_by_role("combobox", name="Model A", exact=True)).to_have_attribute(
            "aria-invalid", "true"
        )
        watcher.expect("422")


class TestNewJob:
    def fill(self, page: Page, **typed: str) -> None:
        for label, text in typed.items():
            page.get_by_label("Model as" if label == "Model" else label).first.fill(text)

    def test_tells_what_is_wrong_where_it_was_typed_and_forgets_nothing(
        self, page: Page, watcher: Watcher
    ) -> None:
        page.goto("/new")
        self.fill(page, Name="Wrong", Model="simulated/none", Temperature="warm", Iterations="0")
        page.get_by_role("checkbox", name="Essay").uncheck()
        page.get_by_role("button", name="Estimate").click()
        expect(page.get_by_role("alert")).to_be_focused()
        watcher.expect("422")
        for label, reason in (
            ("Temperature", "must be a number"),
            ("Iterations", "greater than or equal to 1"),
        ):
            field = page.get_by_label(label).first
            expect(field).to_have_attribute("aria-invalid", "true")
            expect(page.locator(f"#{field.get_attribute('aria-describedby')}")).to_contain_text(reason)
        assert barriers(page) == []
        self.fill(page, Temperature="1", Iterations="1")
        page.get_by_role("button", name="Estimate").click()
        expect(page.get_by_role("alert")).to_contain_text("does not allow the model 'none'")
        watcher.expect("422")
        expect(page.get_by_role("textbox", name="Name")).to_have_value("Wrong")
        expect(page.get_by_role("checkbox", name="Essay")).not_to_be_checked()

    def test_every_field_has_help_beside_it(self, page: Page) -> None:
        page.goto("/new")
        without = page.locator("form.build :is(input:not([type=hidden]), select, textarea)").evaluate_all(
            "all => all.filter(e => !e.closest('label').querySelector('small') && !e.closest('.levels'))"
            ".filter(e => e.type !== 'checkbox').map(e => e.name)"
        )
        assert without == []
        assert (
            page.locator("[name=task]").evaluate_all(
                "all => all.filter(e => !e.closest('label').querySelector('small')).map(e => e.value)"
            )
            == []
        )

    def test_fills_in_a_size_that_finds_a_difference(self, page: Page) -> None:
        page.goto("/new")
        self.fill(page, Model="simulated/sim-faithful", Judge="simulated/sim-judge")
        page.get_by_text("How many do I need?").click()
        self.fill(page, Difference="0.1", Iterations="3")
        page.get_by_label("Difference").press("Enter")
        sizes = page.get_by_role("group", name="Sizes that find the difference")
        expect(sizes.get_by_role("row", name="This job")).to_contain_text("6 × 3")
        assert barriers(page) == []
        page.set_viewport_size(NARROW)
        assert overflow(page) == 0
        sizes.get_by_role("button", name="Use 6 instructions and 1 iteration").click()
        expect(sizes.get_by_role("row", name="This job")).to_contain_text("6 × 1")
        expect(page.locator("#iterations")).to_have_value("1")

    def test_submits_what_was_planned_and_only_that(self, page: Page, stack: Stack) -> None:
        page.goto("/new")
        self.fill(page, Name="Planned", Model="simulated/sim-faithful", Judge="simulated/sim-judge")
        for ticked in ("big-five, 15", "Interview with questionnaire", "Social media post"):
            page.get_by_role("checkbox", name=ticked).uncheck()
        page.get_by_text("Custom personas").click()
        self.fill(page, ID="blunt", Description="a blunt critic")
        page.get_by_label("agreeableness").first.select_option("low (disagreeable)")
        page.get_by_label("emotional stability").first.select_option(value="N high")
        page.get_by_role("button", name="Estimate").click()
        plan = page.get_by_role("complementary", name="Estimate")
        # An essay for each of two traits, under each of six instructions.
        expect(plan).to_contain_text("for 12 responses in 2 cells")
        expect(plan).not_to_contain_text("$")
        assert barriers(page) == []
        self.fill(page, Iterations="2")
        page.get_by_role("button", name="Submit job").click()
        expect(plan).to_contain_text("for 24 responses in 2 cells")
        page.get_by_role("button", name="Submit job").click()
        page.wait_for_url("**/jobs/job_*")
        spec = stack.ended(page.url.rpartition("/")[2])["spec"]
        assert spec == {
            "name": "Planned",
            "personas": [
                {"id": "blunt", "description": "a blunt critic", "traits": {"A": "low", "N": "high"}}
            ],
            "tasks": ["essay"],
            "models": ["simulated/sim-faithful"],
            "judges": ["simulated/sim-judge"],
            "iterations": 2,
        }


class TestEveryPage:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_can_be_read_by_everybody_in_any_window(
        self, page: Page, finished: str, scheme: str, watcher: Watcher
    ) -> None:
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        of_job = [f"/jobs/{finished}{rest}" for rest in ("", "/responses", "/labels")]
        paths = ["/", "/new", "/compare", *of_job]
        for path in [*paths, "/nowhere"]:
            page.goto(path)
            assert barriers(page) == [], path
            page.set_viewport_size(NARROW)
            assert overflow(page) == 0, path
            page.set_viewport_size({"width": 1280, "height": 900})
        watcher.expect("404")

    def test_everything_is_reached_by_the_keyboard(self, page: Page, finished: str, watcher: Watcher) -> None:
        # What is put in the place of a part that has changed would not have been counted.
        page.route("**/console.js", lambda route: route.fulfill(content_type="text/javascript", body=""))
        of_job = [f"/jobs/{finished}{rest}" for rest in ("", "/responses", "/labels")]
        for path in ["/", "/new", "/compare", *of_job, "/nowhere"]:
            page.goto(path)
            assert unreached(page) == [], path
        watcher.expect("404")
