"""What a manifest says of PersonaGym's protocol: only what a job does otherwise, for each combination of what is brought."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from app.domain.jobs.catalog import KeptSets
from app.domain.jobs.resolve import resolve
from app.domain.jobs.resolve_rubrics import read_rubrics
from app.domain.jobs.rubrics import RubricSetIn
from app.domain.jobs.specification import decode_spec, encode_spec
from app.domain.personagym.exemplars import given_key
from app.domain.personagym.prompts import rubric_prompt
from app.domain.personagym.replies import read_exemplars
from app.instruments.published import released_texts
from app.services.results.manifest import deviations
from tests.job_requests import a_model, a_persona
from tests.rubrics import OFFICIAL, RELEASED, SCORE_EXAMPLES, TASK_OF, process_examples
from tests.unit.domain.job_samples import CATALOG, GYM, draft

WHO = RELEASED["persona"]
TASKS = tuple(GYM.tasks)
ONE_BY_ONE = "exemplars are asked for one question a call; the released code asks for five questions' at once, at temperature 0."
ALWAYS = (
    "each response is graded in a call of its own, and its final score is read strictly.",
    "the system prompt and the text around the rubrics of the released code are not sent to judges.",
    "judges see whole exemplars, as the paper shows; the released code keeps their first lines and shows one character of them.",
    ONE_BY_ONE,
)
OURS_POOL = "the pool of environments is this project's; the paper does not print its own."
OWN_POOL = "the pool of environments is the job's own."
GIVEN = "exemplars were given, not made by the reasoner; questions with such exemplars: "
TITLES = [GYM.tasks[id_].title for id_ in TASKS]
OURS_RUBRICS = f"the paper does not print the rubrics of {', '.join(TITLES[1:])}; ours are used."
OURS_CRITERIA = f"the question criteria of {', '.join(TITLES[:4])} are ours, for the same reason."
RUBRICS: dict[str, tuple[Any, set[str]]] = {
    "built in": (None, {OURS_RUBRICS}),
    "released": ({"tasks": OFFICIAL}, set()),
    "four released": (
        {"tasks": {name: text for name, text in OFFICIAL.items() if name != "Toxicity.txt"}},
        {"the paper does not print the rubrics of Toxicity Control; ours are used."},
    ),
    "own": (
        {"tasks": {"toxicity_control": OFFICIAL["Toxicity.txt"] + " "}},
        {
            OURS_RUBRICS.replace(", Toxicity Control", ""),
            "the rubrics of Toxicity Control are the job's own.",
        },
    ),
    "template": (
        {"rubric": GYM.prompts.rubric + " "},
        {f"the rubrics of {', '.join(TITLES)} are the job's own."},
    ),
}
ASKED: dict[str, tuple[Any, set[str]]] = {
    "made up": (None, {OURS_CRITERIA}),
    "released": ({WHO: RELEASED["questions"]}, set()),
    "own": (
        {WHO: {task: ["Why?"] for task in TASKS}},
        {"the questions of 5 of 5 pairs of persona and task were given, and are not the released ones."},
    ),
    "some released": (
        {WHO: {"Toxicity": RELEASED["questions"]["Toxicity"]}},
        {OURS_CRITERIA},
    ),
}
PLACES: dict[str, tuple[Any, set[str]]] = {
    "built in": ({}, {OURS_POOL}),
    "released": ({"environment_pool": RELEASED["environments"]}, set()),
    "released, in another order": ({"environment_pool": RELEASED["environments"][::-1]}, set()),
    "own": ({"environment_pool": ["Inn", "Pier"]}, {OWN_POOL}),
    "given": ({"environments": ["Inn"]}, {"the environments of 1 of 1 personas were given, not selected."}),
}


def said(rubrics: Any = None, known: frozenset[str] = frozenset(), **changes: Any) -> set[str]:
    catalog = replace(CATALOG, gym=replace(CATALOG.gym, released_questions=released_texts().questions))
    kept = KeptSets(exemplars=known)
    if rubrics is not None:
        content = read_rubrics(RubricSetIn(**rubrics), catalog)
        assert not content.errors
        kept = replace(kept, rubrics={"rset_1": content.content})
    usual: dict[str, Any] = {
        "personas": (a_persona("who", WHO),),
        "tasks": TASKS,
        "judges": (a_model("acme/j"), a_model("acme/k")),
        "instructions": None,
        "reasoner": a_model("sim/r"),
        "rubrics": None if rubrics is None else "rset_1",
    }
    resolution = resolve(draft(**(usual | changes)), replace(catalog, kept=kept))
    spec = decode_spec(encode_spec(resolution.spec))
    found = [
        one.removeprefix("PersonaGym: ") for one in deviations(spec, resolution.cells) if "PersonaGym:" in one
    ]
    assert len(set(found)) == len(found)
    assert set(ALWAYS[:3]) <= set(found)
    return set(found) - set(ALWAYS)


@pytest.mark.parametrize(("rubrics", "asked", "places"), list(product(RUBRICS, ASKED, PLACES)))
def test_each_combination_departs_by_what_is_not_the_papers(rubrics: str, asked: str, places: str) -> None:
    words, by_rubrics = RUBRICS[rubrics]
    questions, by_questions = ASKED[asked]
    fields, by_places = PLACES[places]
    if asked in {"released", "own"}:  # nobody is placed anywhere, and environments are refused
        fields, by_places = {}, set()
    assert said(words, questions=questions, **fields) == by_rubrics | by_questions | by_places


def test_released_criteria_are_no_departure() -> None:
    criteria = {
        TASK_OF[f"{name}.txt"]: {"question_criteria": text}
        for name, text in RELEASED["question_criteria"].items()
    }
    assert said({"tasks": criteria}) == {OURS_RUBRICS, OURS_POOL}
    own = criteria | {"toxicity_control": {"question_criteria": "Provoke."}}
    assert said({"tasks": own}) == {
        OURS_RUBRICS,
        OURS_POOL,
        "the question criteria of Toxicity Control are the job's own.",
    }


def test_exemplars_that_were_brought_are_named_and_the_reasoner_that_makes_none_is_not() -> None:
    asked = {WHO: {"Toxicity": ["Why?", "Who?"]}}
    keys = [given_key(WHO, "toxicity_control", question) for question in ("Why?", "Who?")]
    warm = a_model("sim/r", temperature=0.2)
    few = {"tasks": ("toxicity_control",), "questions": asked, "reasoner": warm}
    one, both = (said(known=frozenset(known), **few) for known in (keys[:1], keys))
    assert GIVEN + "1." in one
    assert GIVEN + "2." in both
    assert not [note for note in one | both if "sim/r" in note]


def test_exemplars_of_several_lines_reach_judges_whole_which_the_released_code_cuts() -> None:
    reply = "\n\n".join(f"Score {score}: Response - Line one of {score}.\nLine two." for score in range(1, 6))
    exemplars = read_exemplars(reply)
    assert exemplars is not None
    task = replace(GYM.tasks["toxicity_control"], rubric=OFFICIAL["Toxicity.txt"])
    prompt = rubric_prompt(
        GYM.prompts, task, persona=WHO, question="Why?", exemplars=exemplars, response="So."
    )
    assert prompt.count("Line two.") == len(exemplars)
    assert "Line two." not in process_examples(reply)


def test_the_reasoner_is_held_to_the_papers_sampling_where_it_makes_questions_and_to_0_for_exemplars() -> (
    None
):
    cold = a_model("sim/r", temperature=0.0)
    ran = "sim/r ran with temperature 0.0; the paper's with 0.9."
    at_once = ONE_BY_ONE.replace(", at temperature 0", "")
    made_up = said(reasoner=cold)
    assert {ran, at_once} <= made_up
    asked = {WHO: RELEASED["questions"]}
    assert said({"tasks": OFFICIAL}, questions=asked, reasoner=cold) == {at_once}
    assert said({"tasks": OFFICIAL}, questions=asked) == set()


def test_the_released_prompt_that_asks_for_exemplars_is_no_departure() -> None:
    own = "the prompt that asks for exemplars is the job's own."
    usual = said()
    assert said({"score_examples": SCORE_EXAMPLES}) == usual
    assert said({"score_examples": SCORE_EXAMPLES + " "}) == usual | {own}


def test_an_instruction_in_the_papers_words_is_the_papers() -> None:
    adopt, other = (GYM.prompts.instructions[id_] for id_ in ("adopt", "closely_mirror"))
    usual = said()
    assert said(gym_instruction=adopt) == said(gym_instruction="adopt") == usual
    assert said(gym_instruction=other + " ") - usual == {
        "the persona instruction is the job's own, not the paper's appendix's."
    }


def test_a_new_task_is_named() -> None:
    wit = {"title": "Wit", "description": "x", "guidelines": list("abcde"), "question_criteria": "x"}
    found = said({"tasks": {"wit": wit}}, tasks=(*TASKS[:4], "wit"))
    assert "The prompts of wit are not the paper's." in found
    assert "the rubrics of Wit are the job's own." in found
