import json
from collections import Counter
from collections.abc import Callable, Iterator

import anthropic
import openai
import pytest
from openai.types.chat import ChatCompletion

from simulator.bank import load_bank
from simulator.profiles import MODELS
from tests.integration.simulator.conftest import RunningSimulator
from tests.unit.simulator.gym_prompts import (
    PERSONA as NURSE,
)
from tests.unit.simulator.gym_prompts import (
    QUESTION,
    consistency_score,
    environments_prompt,
    exemplars_prompt,
    personas_prompt,
    questions_prompt,
    rubric,
)
from tests.unit.simulator.prompts import OPTIONS, POST, QUESTIONNAIRE, essay_score

PERSONA = "You are a neurotic person."


@pytest.fixture
def gpt(simulator: RunningSimulator) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{simulator.url}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(simulator: RunningSimulator) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=simulator.url, api_key="any", max_retries=0) as client:
        yield client


def complete(
    client: openai.OpenAI, prompt: str, *, model: str = "sim-faithful", request_id: str = "job_1/g/3/7/2/a1"
) -> ChatCompletion:
    return client.chat.completions.create(
        model=model,
        messages=[{"role": "system", "content": PERSONA}, {"role": "user", "content": prompt}],
        temperature=1,
        extra_headers={"X-Client-Request-Id": request_id},
    )


def message(
    client: anthropic.Anthropic,
    prompt: str,
    *,
    model: str = "sim-faithful",
    request_id: str = "job_1/g/3/7/2/a1",
) -> anthropic.types.Message:
    return client.messages.create(
        model=model,
        system=PERSONA,
        messages=[{"role": "user", "content": prompt}],
        max_tokens=1024,
        extra_headers={"X-Client-Request-Id": request_id},
    )


class TestOpenAI:
    def test_a_completion_is_complete(self, gpt: openai.OpenAI) -> None:
        raw = gpt.chat.completions.with_raw_response.create(
            model="sim-faithful",
            messages=[{"role": "system", "content": PERSONA}, {"role": "user", "content": POST}],
        )
        completion = raw.parse()
        choice, usage = completion.choices[0], completion.usage
        assert raw.headers["x-request-id"] == completion._request_id
        assert raw.headers["openai-processing-ms"] == "0"
        assert completion.model == "sim-faithful"
        assert completion.system_fingerprint == "fp_simulator"
        assert choice.finish_reason == "stop"
        assert choice.message.refusal is None
        assert choice.message.content
        assert usage is not None
        # four characters a token, rounded up
        assert usage.prompt_tokens == (len(PERSONA) + len(POST) + 3) // 4
        assert usage.completion_tokens == (len(choice.message.content) + 3) // 4
        assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens

    def test_a_judge_replies_with_the_true_score(self, gpt: openai.OpenAI) -> None:
        prompt = essay_score("I get irritated quicker than most people around me.", OPTIONS["N"])
        assert complete(gpt, prompt, model="sim-judge").choices[0].message.content == "2"

    def test_models_are_listed_and_described(self, gpt: openai.OpenAI) -> None:
        assert [model.id for model in gpt.models.list()] == list(MODELS)
        assert gpt.models.retrieve("sim-judge").owned_by == "simulator"

    def test_an_unknown_model_is_not_found(self, gpt: openai.OpenAI) -> None:
        with pytest.raises(openai.NotFoundError) as caught:
            complete(gpt, POST, model="gpt-4o")
        assert (caught.value.code, caught.value.type) == ("model_not_found", "invalid_request_error")

    def test_refusals_come_in_the_providers_three_forms(self, gpt: openai.OpenAI) -> None:
        replies = [
            complete(gpt, QUESTIONNAIRE, model="sim-refusing", request_id=f"j/{run}/a1").choices[0]
            for run in range(60)
        ]
        forms = Counter(
            (reply.finish_reason, reply.message.content is None, reply.message.refusal is None)
            for reply in replies
        )
        assert set(forms) == {("stop", False, True), ("stop", True, False), ("content_filter", True, False)}
        assert all(
            reply.message.refusal in load_bank().refusals for reply in replies if reply.message.refusal
        )

    def test_max_tokens_is_respected(self, gpt: openai.OpenAI) -> None:
        completion = gpt.chat.completions.create(
            model="sim-faithful", messages=[{"role": "user", "content": POST}], max_completion_tokens=50
        )
        assert completion.choices[0].finish_reason == "length"
        assert completion.usage is not None
        assert completion.usage.completion_tokens <= 50


class TestAnthropic:
    def test_a_message_is_complete(self, claude: anthropic.Anthropic) -> None:
        reply = message(claude, POST)
        block = reply.content[0]
        assert block.type == "text"
        assert (reply.stop_reason, reply.model, reply.role) == ("end_turn", "sim-faithful", "assistant")
        assert reply._request_id is not None
        assert reply.usage.input_tokens == (len(PERSONA) + len(POST) + 3) // 4
        assert reply.usage.output_tokens == (len(block.text) + 3) // 4

    def test_the_same_request_in_both_formats_has_the_same_text(
        self, gpt: openai.OpenAI, claude: anthropic.Anthropic
    ) -> None:
        block = message(claude, POST).content[0]
        assert block.type == "text"
        assert block.text == complete(gpt, POST).choices[0].message.content

    def test_models_are_listed_and_described(self, claude: anthropic.Anthropic) -> None:
        assert [model.id for model in claude.models.list()] == list(MODELS)
        assert claude.models.retrieve("sim-judge").display_name == "sim-judge (simulated)"

    def test_an_unknown_model_is_not_found(self, claude: anthropic.Anthropic) -> None:
        with pytest.raises(anthropic.NotFoundError, match="not_found_error"):
            message(claude, POST, model="claude-3-haiku-20240307")

    def test_refusals_have_their_stop_reason(self, claude: anthropic.Anthropic) -> None:
        replies = [
            message(claude, QUESTIONNAIRE, model="sim-refusing", request_id=f"j/{run}/a1")
            for run in range(60)
        ]
        refused = [reply for reply in replies if reply.stop_reason == "refusal"]
        assert refused
        assert all(reply.content == [] and reply.stop_details is not None for reply in refused)


class TestDeterminism:
    def test_another_job_and_another_attempt_get_the_same_text(self, gpt: openai.OpenAI) -> None:
        requests = ("job_1/g/3/7/2/a1", "job_1/g/3/7/2/a2", "job_2/g/3/7/2/a1")
        texts = {complete(gpt, POST, request_id=one).choices[0].message.content for one in requests}
        assert len(texts) == 1

    def test_another_run_gets_another_text(self, gpt: openai.OpenAI) -> None:
        requests = ("job_1/g/3/7/2/a1", "job_1/g/3/8/2/a1", "job_1/g/3/7/3/a1", "no identity", "no identity")
        assert len({complete(gpt, POST, request_id=one).choices[0].message.content for one in requests}) == 5

    def test_another_process_with_the_same_seed_says_the_same(
        self, start: Callable[..., RunningSimulator]
    ) -> None:
        def text(*options: str) -> str | None:
            with openai.OpenAI(base_url=f"{start(*options).url}/v1", api_key="any", max_retries=0) as client:
                return complete(client, POST).choices[0].message.content

        assert text("--seed", "5") == text("--seed", "5", "--latency-ms", "20") != text("--seed", "6")


class TestPersonaGym:
    PROMPTS = (
        ("environments", "sim-reasoner", environments_prompt()),
        ("questions", "sim-reasoner", questions_prompt()),
        ("exemplars", "sim-reasoner", exemplars_prompt()),
        ("personas", "sim-reasoner", personas_prompt()),
        ("generation", "sim-drifting", QUESTION),
        ("grade", "sim-judge-harsh", rubric("I stay calm.")),
        ("judge", "sim-judge", consistency_score("I recognise a lot of my own life in what you ask.")),
    )

    def test_every_part_speaks_both_formats_and_is_counted_and_recorded_by_its_kind(
        self, simulator: RunningSimulator, gpt: openai.OpenAI, claude: anthropic.Anthropic
    ) -> None:
        for kind, model, prompt in self.PROMPTS:
            block = message(claude, prompt, model=model).content[0]
            assert block.type == "text"
            assert block.text == complete(gpt, prompt, model=model).choices[0].message.content
            for path in ("/v1/chat/completions", "/v1/messages"):
                assert simulator.counts()[path, model, kind, 200] == (1, 1)
        assert [line["kind"] for line in simulator.ledger()] == [
            kind for kind, _, _ in self.PROMPTS for _ in range(2)
        ]

    def test_a_grade_of_an_answer_is_its_true_one_for_every_judge(
        self, simulator: RunningSimulator, gpt: openai.OpenAI
    ) -> None:
        for run in range(20):
            answer = (
                complete(gpt, QUESTION, model="sim-erratic", request_id=f"j/{run}/a1")
                .choices[0]
                .message.content
            )
            for judge in ("sim-judge", "sim-judge-lenient", "sim-judge-harsh"):
                complete(gpt, rubric(answer or "", persona=NURSE), model=judge)
        lines = simulator.ledger()
        truth = {line["text"]: int(str(line["grade"])) for line in lines if line["kind"] == "generation"}
        assert len(set(truth.values())) > 2
        for line in lines:
            if line["kind"] != "grade":
                continue
            true = truth[line["response"]]
            bias = {"sim-judge": 0, "sim-judge-lenient": 1, "sim-judge-harsh": -1}[str(line["model"])]
            assert (line["truth"], line["given"]) == (true, min(max(true + bias, 1), 5))
            assert (line["persona"], line["question"]) == (NURSE, QUESTION)
            assert str(line["reply"]).endswith(f"Therefore, the final score is {line['given']}.")

    def test_a_sloppy_reasoner_is_cut_and_refuses_in_the_providers_forms(
        self, gpt: openai.OpenAI, claude: anthropic.Anthropic
    ) -> None:
        requests = [f"j/q/a{attempt}" for attempt in range(150)]
        choices = [
            complete(gpt, questions_prompt(), model="sim-reasoner-sloppy", request_id=one).choices[0]
            for one in requests
        ]
        assert {choice.finish_reason for choice in choices} == {"stop", "length"}
        assert [choice.message.refusal for choice in choices if choice.message.content is None]
        stops = {
            message(claude, questions_prompt(), model="sim-reasoner-sloppy", request_id=one).stop_reason
            for one in requests
        }
        assert stops == {"end_turn", "max_tokens", "refusal"}

    def test_another_attempt_of_a_clean_reasoner_is_the_same(self, gpt: openai.OpenAI) -> None:
        def questions(request_id: str) -> str | None:
            reply = complete(gpt, questions_prompt(), model="sim-reasoner", request_id=request_id)
            return reply.choices[0].message.content

        first = questions("job_1/q/3/a1")
        assert len(json.loads(first or "")) == 10
        assert questions("job_2/q/3/a2") == first != questions("job_1/q/4/a1")


class TestRateLimit:
    def test_a_client_over_the_limit_is_told_when_to_come_back(
        self, simulator: RunningSimulator, gpt: openai.OpenAI, claude: anthropic.Anthropic
    ) -> None:
        simulator.configure(requests_per_minute=6, burst=2)
        ok = gpt.chat.completions.with_raw_response.create(
            model="sim-faithful", messages=[{"role": "user", "content": "Hello"}]
        )
        assert ok.headers["x-ratelimit-limit-requests"] == "6"
        assert ok.headers["x-ratelimit-remaining-requests"] == "1"
        message(claude, "Hello")
        with pytest.raises(openai.RateLimitError) as caught:
            complete(gpt, "Hello")
        # six a minute: the next permit is there after ten seconds
        assert caught.value.response.headers["retry-after"] == "10"
        assert caught.value.response.headers["x-ratelimit-remaining-requests"] == "0"
        assert caught.value.code == "rate_limit_exceeded"
        with pytest.raises(anthropic.RateLimitError) as refused:
            message(claude, "Hello")
        assert refused.value.response.headers["retry-after"] == "10"
        assert refused.value.response.headers["anthropic-ratelimit-requests-remaining"] == "0"
        complete(gpt, "Hello", model="sim-drifting")

    def test_the_limit_can_be_lifted(self, simulator: RunningSimulator, gpt: openai.OpenAI) -> None:
        simulator.configure(requests_per_minute=1)
        complete(gpt, "Hello")
        with pytest.raises(openai.RateLimitError):
            complete(gpt, "Hello")
        simulator.configure(requests_per_minute=0)
        complete(gpt, "Hello")


class TestErrors:
    def test_failures_are_as_frequent_as_asked_and_the_same_for_the_same_seed(
        self, start: Callable[..., RunningSimulator]
    ) -> None:
        def statuses() -> list[int]:
            found = []
            options = ("--error-rate", "0.3", "--seed", "1")
            with openai.OpenAI(base_url=f"{start(*options).url}/v1", api_key="any", max_retries=0) as client:
                for _ in range(100):
                    try:
                        complete(client, "Hello")
                        found.append(200)
                    except openai.InternalServerError as error:
                        found.append(error.status_code)
            return found

        first = statuses()
        # 30 expected, standard deviation sqrt(100 * 0.3 * 0.7) = 4.6
        assert 100 - 53 < first.count(200) < 100 - 7
        assert set(first) == {200, 500, 503}
        assert statuses() == first

    def test_an_overloaded_anthropic_says_529(
        self, simulator: RunningSimulator, claude: anthropic.Anthropic
    ) -> None:
        simulator.configure(error_rate=1)
        statuses = set()
        for _ in range(20):
            with pytest.raises(anthropic.APIStatusError) as caught:
                message(claude, "Hello")
            statuses.add(caught.value.status_code)
        assert statuses == {500, 529}


class TestQuota:
    def test_is_used_up_after_so_many_requests_and_each_format_says_so_in_its_own_words(
        self, simulator: RunningSimulator, gpt: openai.OpenAI, claude: anthropic.Anthropic
    ) -> None:
        simulator.configure(quota=2)
        complete(gpt, "Hello")
        message(claude, "Hello")
        with pytest.raises(openai.RateLimitError) as caught:
            complete(gpt, "Hello")
        assert caught.value.code == "insufficient_quota"
        with pytest.raises(anthropic.BadRequestError, match="Your credit balance is too low"):
            message(claude, "Hello")
        simulator.configure(quota=0)
        complete(gpt, "Hello")


class TestCompletions:
    def test_a_base_model_goes_on_from_who_it_is(self, gpt: openai.OpenAI) -> None:
        asked = gpt.completions.create(
            model="sim-faithful", prompt=f"{PERSONA}\n\n{POST}\n\n", max_tokens=400
        )
        chat = complete(gpt, POST).choices[0].message.content
        sentences = {sentence.strip() for sentence in asked.choices[0].text.split(".") if sentence.strip()}
        assert len(sentences) > 1
        assert chat is not None
        assert asked.object == "text_completion"

    def test_a_judge_is_asked_as_in_a_chat(self, gpt: openai.OpenAI) -> None:
        prompt = QUESTIONNAIRE.format(sentence="I worry.") if "{sentence}" in QUESTIONNAIRE else QUESTIONNAIRE
        asked = gpt.completions.create(model="sim-judge", prompt=prompt, max_tokens=400)
        assert asked.choices[0].text

    def test_without_a_limit_it_stops_soon(self, gpt: openai.OpenAI) -> None:
        asked = gpt.completions.create(model="sim-faithful", prompt=f"{PERSONA}\n\n{POST}\n\n")
        assert asked.choices[0].finish_reason == "length"

    def test_without_a_prompt_it_is_refused(self, gpt: openai.OpenAI) -> None:
        with pytest.raises(openai.BadRequestError, match="prompt: Field required"):
            gpt.completions.create(model="sim-faithful", prompt="")
