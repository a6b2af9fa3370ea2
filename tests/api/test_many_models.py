"""Many models compared at a time: no two that are equal are said to differ because they are many."""

import random
import re
from html import unescape
from itertools import combinations, product
from urllib.parse import urlencode

import pytest

from simulator.bank import load_bank
from tests.api.service import Json, Service, job_body
from tests.api.test_decisions import NO_JOB, pointers
from tests.api.test_pages import look

PERSONAS = tuple(product(("O", "C", "E", "A"), ("low", "neutral", "high")))
IN_LEVEL, OUTSIDE = {"low": 1, "neutral": 3, "high": 5}, {"low": 5, "neutral": 1, "high": 1}
WORDINGS, SENTENCES = 6, 3
EQUAL, FAMILIES = 6, 3
CHANCE, BETTER = 0.5, 0.85


def model(name: str, chance: float, personas: tuple[tuple[str, str], ...] = PERSONAS) -> list[Json]:
    """A model's texts, each sentence of which is in character with this chance."""
    draws = random.Random(name)

    def text(dimension: str, level: str) -> str:
        scores = [(IN_LEVEL if draws.random() < chance else OUTSIDE)[level] for _ in range(SENTENCES)]
        return " ".join(draws.choice(load_bank().trait[dimension, score])[0] for score in scores)

    return [
        {
            "persona": f"{dimension}-{level}",
            "task": "social_media_post",
            "model": name,
            "instruction": wording,
            "run": wording,
            "text": text(dimension, level),
        }
        for dimension, level in personas
        for wording in range(WORDINGS)
    ]


def judged(stack: Service, given: list[Json]) -> str:
    body = {
        "personas": sorted({response["persona"] for response in given}),
        "tasks": ["social_media_post"],
        "responses": given,
        "judges": ["simulated/sim-judge"],
    }
    return str(stack.wait(stack.submit(body)["id"], "completed")["id"])


@pytest.fixture(scope="module")
def job(stack: Service) -> str:
    """Families of equal models, and one that is better."""
    models = [model(f"like {family} {n}", CHANCE) for family, n in product(range(FAMILIES), range(EQUAL))]
    return judged(stack, [each for one in [*models, model("better", BETTER)] for each in one])


def compared(stack: Service, models: list[Json]) -> Json:
    found: Json = stack.post("/v1/comparisons", {"models": models}).json()
    return found


def of_family(job: str, family: int) -> list[Json]:
    return [{"job": job, "model": f"like {family} {n}"} for n in range(EQUAL)]


def apart(ranking: Json) -> set[frozenset[str]]:
    """The pairs that are said to differ."""
    corrected = {frozenset((d["a"], d["b"])): d["p_value_corrected"] for d in ranking["differences"]}
    return {pair for pair, p in corrected.items() if p is not None and p <= 0.05}


class TestManyModels:
    def test_equal_ones_are_not_told_apart_because_there_are_many_pairs(
        self, stack: Service, job: str
    ) -> None:
        alone = 0
        for family in range(FAMILIES):
            found = compared(stack, of_family(job, family))
            ranking = found["rankings"][0]
            assert (ranking["metric"], ranking["exploratory"]) == (found["primary"], False)
            assert len(ranking["differences"]) == 15
            assert apart(ranking) == set()
            assert {tuple(each["rank"]) for each in ranking["models"]} == {(1, EQUAL)}
            assert not any(apart(each) for each in found["rankings"][1:])
            alone += sum(each["p_value"] <= 0.05 for each in ranking["differences"])
        assert alone > 0  # each pair by itself, of 45, would have been

    def test_one_that_is_better_is_the_first_and_the_others_stay_together(
        self, stack: Service, job: str
    ) -> None:
        found = compared(stack, [*of_family(job, 0), {"job": job, "model": "better"}])
        ranking = found["rankings"][0]
        first, *others = ranking["models"]
        assert (first["name"], first["rank"]) == ("better", [1, 1])
        assert all(each["rank"] == [2, 7] for each in others)
        assert apart(ranking) == {frozenset(("better", each["name"])) for each in others}
        assert ranking["population"] == "personas like these, wordings like these"
        assert (ranking["values"], ranking["personas"]) == (12, 12)
        for each in ranking["differences"]:
            low, high = each["ci95"]
            assert low <= each["difference"] <= high
            assert (low > 0) == ("better" in {each["a"], each["b"]})
            assert each["p_value"] <= each["p_value_corrected"]
        assert 0 < ranking["smallest_detectable"] < 1
        values = [each["value"] for each in ranking["models"]]
        assert values == sorted(values, reverse=True)

    def test_the_primary_metric_is_not_corrected_for_the_others(self, stack: Service, job: str) -> None:
        found = compared(stack, of_family(job, 1)[:2])
        primary, *others = (
            (ranking["differences"][0]["p_value"], ranking["differences"][0]["p_value_corrected"])
            for ranking in found["rankings"]
            if ranking["differences"][0]["p_value"] is not None
        )
        assert primary[1] == pytest.approx(primary[0], abs=0.03)  # a single pair
        for alone, corrected in others:
            assert corrected == pytest.approx(min(1, len(others) * alone), abs=0.2)
            assert corrected > alone or alone == 1
        assert any("Intervals and p-values speak of" in note for note in found["notes"])

    def test_a_job_stands_for_all_of_its_models(self, stack: Service, job: str) -> None:
        found = compared(stack, [{"job": job}])
        assert len(found["models"]) == FAMILIES * EQUAL + 1
        assert found["object"] == "comparison_of_models"
        assert found["rankings"][0]["models"][0]["name"] == "better"
        assert len(found["rankings"][0]["differences"]) == 19 * 18 / 2
        assert len(found["personas"]) == len(PERSONAS)
        assert all(each["description"] and each["traits"][0]["words"] for each in found["personas"])

    def test_jobs_and_published_models_are_compared_over_what_all_have(
        self, stack: Service, job: str
    ) -> None:
        other = judged(stack, model("better", BETTER, PERSONAS[:7]) + model("lone", CHANCE, PERSONAS[:7]))
        published = {"baseline": "GPT-4o"}
        found = compared(stack, [{"job": other}, {"job": job, "model": "better"}, published])
        names = [each["name"] for each in found["models"]]
        assert names == [f"better ({other})", "lone", f"better ({job})", "GPT-4o"]
        ranking = found["rankings"][0]
        assert ranking["values"] == 7
        assert {each["name"]: each["left_out"] for each in found["models"]}[names[2]] == 5
        # Published figures do not tell how they vary with wordings.
        assert ranking["population"] == "personas like these, these wordings"
        assert any("GPT-4o: Published results" in note for note in found["notes"])

    def test_few_personas_say_which_p_they_cannot_reach(self, stack: Service) -> None:
        lonely = (*PERSONAS[:4], PERSONAS[5], PERSONAS[8])  # one persona is neutral, two are low
        given = [each for n in range(4) for each in model(f"m{n}", 0.25 * n, tuple(lonely))]
        found = compared(stack, [{"job": judged(stack, given)}])
        ranking = found["rankings"][0]
        assert ranking["smallest_p_value"] == 2**-5
        assert apart(ranking) == set()
        assert {each["ci95_reason"].partition(":")[0] for each in ranking["differences"]} == {
            "one_persona_on_a_level"
        }
        assert found["notes"][-1] == (
            "6 personas cannot give a p-value below 0.031, or below 0.19 corrected for 6 pairs."
        )


class TestBadRequests:
    def test_name_the_model_and_the_reason(self, stack: Service, job: str) -> None:
        one, other = of_family(job, 0)[:2]
        bodies: list[tuple[Json, str]] = [
            ({"models": []}, "/models"),
            ({"models": [one]}, "/models"),
            ({"models": [{"job": job}, *of_family(job, 0)]}, "/models"),
            ({"models": [one, one]}, "/models/1"),
            ({"models": [one, {"job": job, "model": "nobody"}]}, "/models/1/model"),
            ({"models": [one, {"baseline": "GPT-9"}]}, "/models/1/baseline"),
            ({"models": [one, {}]}, "/models/1"),
            ({"models": [one, 3]}, "/models/1"),
            ({"models": one}, "/models"),
            ({"models": None}, "/models"),
            ({"models": [one, other], "pairing": "runs"}, "/pairing"),
            ({"models": [one, {"baseline": "GPT-4o"}], "pairing": "items"}, "/models/1/baseline"),
            ({"models": [one, other], "a": one}, "/a"),
            ({"models": [one] * 21}, "/models"),
        ]
        for body, pointer in bodies:
            assert pointers(stack.post("/v1/comparisons", body)) == [pointer], body
        (error,) = stack.post("/v1/comparisons", {"models": [one]}).json()["errors"]
        assert error["message"] == "must be 2 to 20 models; these are 1"

    def test_two_sides_are_still_asked_for_by_their_names(self, stack: Service, job: str) -> None:
        one = of_family(job, 0)[0]
        assert pointers(stack.post("/v1/comparisons", {"a": one})) == ["/b"]
        assert pointers(stack.post("/v1/comparisons", {})) == ["/a", "/b"]
        (error,) = stack.post("/v1/comparisons", {"a": one, "b": one, "model": []}).json()["errors"]
        assert error["pointer"] == "/model"

    def test_models_with_nothing_in_common_are_told(self, stack: Service, job: str) -> None:
        other = judged(stack, model("elsewhere", CHANCE, (("N", "low"),)))
        found = stack.post("/v1/comparisons", {"models": [of_family(job, 0)[0], {"job": other}]})
        assert pointers(found) == ["/models"]

    def test_jobs_that_are_not_there_or_not_over_are_refused(self, api: Service) -> None:
        queued = api.submit(job_body())["id"]
        for wanted, status in ((NO_JOB, 404), ("nonsense", 404), (queued, 409)):
            body = {"models": [{"job": wanted}, {"baseline": "GPT-4o"}]}
            assert api.post("/v1/comparisons", body).status_code == status


class TestPage:
    def test_says_whether_the_highest_can_be_told_apart_and_draws_each_difference(
        self, stack: Service, job: str
    ) -> None:
        models = [f"{job}:like 0 {n}" for n in range(EQUAL)]
        page = look(stack, f"/compare?{urlencode({'model': models}, doseq=True)}")
        assert page.status_code == 200
        text = " ".join(unescape(re.sub("<[^>]*>", "", page.text)).split())
        assert re.search(r"like 0 \d has the highest ACCatom, but can’t be told apart from like 0 \d, ", text)
        assert re.search(r"like 0 \d, like 0 \d, like 0 \d and 2 more\.", text)
        assert page.text.count('<svg class="span"') == EQUAL
        assert page.text.count('class="ends"') == EQUAL - 1
        assert "All 15 pairs by" in text

        query = urlencode({"model": [*models[:3], f"{job}:better"]}, doseq=True)
        text = unescape(re.sub("<[^>]*>", "", look(stack, f"/compare?{query}").text))
        assert "better stays in character in more sentences than each of the other 3 models." in text

    def test_of_a_jobs_address_has_all_of_its_models(self, stack: Service, job: str) -> None:
        page = look(stack, f"/compare?model={job}")
        assert page.text.count('<svg class="span"') == FAMILIES * EQUAL + 1
        assert f'value="{job}" checked>' in page.text
        # The list of jobs offers it, and so does the job's page.
        assert f'name="model" value="{job}"' in look(stack, "/").text
        assert f'href="/compare?model={job}"' in look(stack, f"/jobs/{job}").text

    @pytest.mark.parametrize(
        ("query", "status", "said"),
        [
            ("model=baseline:GPT-4o", 422, "These models: <bdi>must be 2 to 20 models; these are 1</bdi>"),
            (
                "model=baseline:GPT-4o&model=baseline:GPT-4o",
                422,
                "baseline:GPT-4o: <bdi>repeats a model",
            ),
            (
                "model=baseline:GPT-4o&model=baseline:<b>",
                422,
                "baseline:&lt;b&gt;: <bdi>you have no baseline of that name",
            ),
            ("model=baseline:GPT-4o&model=none", 404, "not found"),
            ("&".join(["model=baseline:GPT-4o"] * 21), 422, ""),
        ],
    )
    def test_names_what_cannot_be_compared(self, stack: Service, query: str, status: int, said: str) -> None:
        page = look(stack, f"/compare?{query}")
        assert page.status_code == status
        assert said in page.text


def test_no_two_pairs_are_the_same(stack: Service, job: str) -> None:
    ranking = compared(stack, of_family(job, 2))["rankings"][0]
    names = [each["name"] for each in ranking["models"]]
    assert [(each["a"], each["b"]) for each in ranking["differences"]] == list(combinations(names, 2))
