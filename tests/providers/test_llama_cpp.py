"""Jobs on a small real model. Its words differ between machines, so the tests check invariants, never words."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import httpx2
import pytest

from tests.e2e.stack import Json, Stack
from tests.faults.trial import report
from tests.providers.servers import Server

WRITER: Json = {"model": "llama/smollm2", "max_tokens": 40}
JUDGE: Json = {"model": "llama/smollm2", "max_tokens": 16}
READ = {"scored", "not_applicable"}
MOST_TOKENS = 6_000
OPTIONS = {
    "very introverted": 1,
    "moderately introverted": 2,
    "moderately extroverted": 4,
    "very extroverted": 5,
}


def verdicts(stack: Stack, job_id: str) -> Iterator[Json]:
    """Every verdict of a job, one per sentence and judge."""
    for response in stack.responses(job_id):
        for unit in response["units"]:
            yield from unit["verdicts"]


def predicted_tokens(server: Server) -> int:
    """Tokens that the server has generated since its start, by its own count."""
    text = httpx2.get(f"{server.url}/metrics").text
    found = re.search(r"^llamacpp:tokens_predicted_total (\d+)", text, re.MULTILINE)
    assert found is not None, text
    return int(found[1])


def labelled(raw: str) -> set[int]:
    """Scores of the options that a reply names in words."""
    words = " ".join(raw.lower().split())
    return {score for label, score in OPTIONS.items() if label in words}


@pytest.fixture(scope="module")
def atomic_job(with_smollm2: Stack, smollm2: Server) -> Json:
    """A job during which the model server is killed and started again."""
    job_id = with_smollm2.submit(
        {
            "personas": ["E-high"],
            "tasks": ["social_media_post"],
            "models": [WRITER],
            "judges": [JUDGE],
            "instructions": [1],
            "iterations": 3,
        }
    )
    with_smollm2.until(job_id, lambda job: job["progress"]["generation"]["succeeded"] >= 1)
    smollm2.kill()
    smollm2.start()
    return with_smollm2.ended(job_id)


class TestAtomicJob:
    def test_has_all_its_texts_although_the_server_was_killed(
        self, with_smollm2: Stack, atomic_job: Json
    ) -> None:
        responses = list(with_smollm2.responses(atomic_job["id"]))
        assert len(responses) == 3
        assert {response["finish_reason"] for response in responses} <= {"length", "stop"}
        assert all(response["text"] for response in responses)

    def test_has_a_verdict_on_every_sentence(self, with_smollm2: Stack, atomic_job: Json) -> None:
        units = [unit for response in with_smollm2.responses(atomic_job["id"]) for unit in response["units"]]
        assert [len(unit["verdicts"]) for unit in units] == [1] * len(units)
        assert units
        found = list(verdicts(with_smollm2, atomic_job["id"]))
        assert all(verdict["raw"] for verdict in found)
        assert all((verdict["score"] is not None) is (verdict["status"] == "scored") for verdict in found)
        any_read = any(verdict["status"] in READ for verdict in found)
        assert atomic_job["status"] == ("completed" if any_read else "failed")

    def test_its_texts_can_be_judged_again(self, with_smollm2: Stack, atomic_job: Json) -> None:
        again = with_smollm2.ended(
            with_smollm2.submit({"responses": {"job": atomic_job["id"]}, "judges": [JUDGE]})
        )
        assert again["status"] in {"completed", "failed"}  # the latter if no reply can be read
        texts = [
            sorted(
                unit["text"] for response in with_smollm2.responses(job["id"]) for unit in response["units"]
            )
            for job in (atomic_job, again)
        ]
        assert texts[0] == texts[1]
        found = list(verdicts(with_smollm2, again["id"]))
        assert len(found) == len(texts[0])
        assert all(verdict["raw"] for verdict in found)


SENTENCES = (
    "I love parties and talk to everybody there.",
    "I hate parties and hide from everybody.",
    "The bus leaves at nine.",
    "We danced until four in the morning.",
    "My friends call me the quiet one.",
    "It rained all day.",
    "Nothing makes me happier than a full room.",
    "Small talk with strangers exhausts me.",
    "Water boils at a hundred degrees.",
    "I gave a speech and enjoyed every second.",
    "I would rather read than meet anyone.",
    "The shop closes on Sundays.",
    "Strangers become friends within minutes.",
    "I left the wedding before the dance.",
    "My street has twelve houses.",
    "I sing on stage every Friday.",
    "Phone calls make me nervous.",
    "The soup needs more salt.",
    "I invited the whole office.",
    "I never speak in meetings.",
)
"""Enough of them for the checks of judges, which need 20."""


def judging(sentences: Sequence[str]) -> Json:
    """A job that judges one text of these sentences."""
    text = {"persona": "E-high", "task": "social_media_post", "model": "ours", "text": " ".join(sentences)}
    return {
        "personas": ["E-high"],
        "tasks": ["social_media_post"],
        "responses": [text],
        "judges": [JUDGE],
    }


@pytest.fixture(scope="module")
def judged_job(with_smollm2: Stack, smollm2: Server) -> Json:
    """A job that judges known sentences, and the number of tokens that the server generated during it."""
    before = predicted_tokens(smollm2)
    job_id = with_smollm2.submit(judging(SENTENCES))
    job = with_smollm2.ended(job_id)
    return job | {"predicted_tokens": predicted_tokens(smollm2) - before}


class TestJudge:
    def test_no_reply_that_names_another_option_is_scored(
        self, with_smollm2: Stack, judged_job: Json
    ) -> None:
        found = list(verdicts(with_smollm2, judged_job["id"]))
        assert len(found) == len(SENTENCES)
        for verdict in found:
            if verdict["status"] == "scored":
                assert labelled(verdict["raw"]) <= {verdict["score"]}, verdict["raw"]

    def test_the_first_line_says_that_the_judge_cannot_be_trusted(
        self, with_smollm2: Stack, judged_job: Json
    ) -> None:
        job, results = with_smollm2.job(judged_job["id"]), with_smollm2.results(judged_job["id"])
        codes = {warning["code"] for warning in results["warnings"]}
        assert codes & {"one_score", "contradicting_replies"}
        assert [each["message"] for each in job["warnings"]] == [
            each["message"] for each in results["warnings"]
        ]
        assert results["headline"] == "The judge llama/smollm2 cannot be trusted."
        page = with_smollm2.api.get(f"/v1/jobs/{judged_job['id']}/report", params={"format": "html"}).text
        told = page.index(results["headline"], page.index("<body"))
        assert told < page.index(results["warnings"][0]["message"].partition(" ")[2], told)
        assert told < page.index("ACC", page.index("<body"))

    def test_a_judge_that_gives_one_score_is_called_out(self, with_smollm2: Stack, judged_job: Json) -> None:
        scores = Counter(each["score"] for each in verdicts(with_smollm2, judged_job["id"]) if each["score"])
        warned = {each["code"] for each in with_smollm2.results(judged_job["id"])["warnings"]}
        constant = scores.total() >= 20 and max(scores.values()) >= 0.9 * scores.total()
        assert ("one_score" in warned) is constant

    def test_an_unread_reply_is_followed_up_once_and_counted(
        self, with_smollm2: Stack, judged_job: Json, request: pytest.FixtureRequest
    ) -> None:
        found = list(verdicts(with_smollm2, judged_job["id"]))
        unread = [verdict for verdict in found if verdict["unread"] is not None]
        unparsed = sum(verdict["status"] == "unparsed" for verdict in unread)
        repairs = with_smollm2.results(judged_job["id"])["repairs_total"]
        assert repairs == {
            "unread": len(unread),
            "repaired": len(unread) - unparsed,
            "unparsed": unparsed,
            "failed": 0,
        }
        calls = sum(row["calls"] for row in judged_job["usage"]["by_model"])
        assert calls == len(found) + len(unread)
        report("SmolLM2's repaired replies", seed=0, n=len(unread) - unparsed, of=len(unread))
        request.config.get_terminal_writer().line(
            f" {len(unread) - unparsed} of {len(unread)} unreadable replies (of {len(found)}) repaired "
        )

    def test_its_replies_read_again_say_the_same(self, with_smollm2: Stack, judged_job: Json) -> None:
        found = with_smollm2.api.post(f"/v1/jobs/{judged_job['id']}/reread", json={}).json()
        assert (found["replies"], found["changed"]) == (len(SENTENCES), 0)

    def test_output_tokens_are_those_that_the_server_counts(self, judged_job: Json) -> None:
        assert judged_job["usage"]["output_tokens"] == judged_job["predicted_tokens"] > 0


class TestConstrainedReplies:
    @pytest.mark.parametrize("reply", ["choice", "json_schema"])
    def test_each_sentence_gets_an_option_at_once(self, with_smollm2: Stack, reply: str) -> None:
        sentences = SENTENCES[:6]
        job_id = with_smollm2.submit(judging(sentences) | {"judging": {"reply": reply}})
        job = with_smollm2.ended(job_id)
        found = list(verdicts(with_smollm2, job_id))
        assert len(found) == len(sentences)
        assert {verdict["status"] for verdict in found} <= READ
        assert {row["stage"]: row["calls"] for row in job["usage"]["by_model"]} == {"judging": len(sentences)}

    def test_are_found_by_a_check(self, with_smollm2: Stack) -> None:
        answer = with_smollm2.api.post("/v1/models/check", json={"model": JUDGE["model"], "role": "judge"})
        assert answer.json()["reply_forms"] == ["text", "choice", "json_schema"]


class TestPreparation:
    def test_that_fails_names_the_reasoner(self, with_smollm2: Stack) -> None:
        job_id = with_smollm2.submit(
            {
                "personas": ["gym-01"],
                "tasks": [{"task": "expected_action", "questions": 1}],
                "models": ["simulated/sim-faithful"],
                "judges": ["simulated/sim-judge"],
                "reasoner": {"model": "llama/smollm2", "max_tokens": 12},
            }
        )
        job = with_smollm2.ended(job_id)
        assert (job["status"], job["error"]["code"]) == ("failed", "preparation_failed")
        assert job["error"]["model"] == "llama/smollm2"
        assert job["error"]["stage"] in {"environments", "questions", "exemplars"}


def test_all_jobs_together_take_few_tokens(with_smollm2: Stack, request: pytest.FixtureRequest) -> None:
    jobs = with_smollm2.api.get("/v1/jobs", params={"limit": 100}).json()["data"]
    usage = [row for job in jobs for row in with_smollm2.job(job["id"])["usage"]["by_model"]]
    tokens = sum(row["output_tokens"] for row in usage if row["model"].startswith("llama/"))
    report("real model", seed=0, n=len(jobs), of=len(jobs), output_tokens=tokens)
    request.config.get_terminal_writer().line(f" {tokens:,} output tokens (limit: {MOST_TOKENS:,}) ")
    assert 0 < tokens <= MOST_TOKENS
