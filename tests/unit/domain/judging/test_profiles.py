"""Profiles of judge models. The prompts of the golden file are read by the models, so a change is a new version."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.judging.order_check import Order, asked
from app.domain.judging.profiles import JudgeProfile, check_profiles
from app.domain.judging.verdict import VerdictStatus
from app.instruments.profiles_loader import load_profiles
from tests.job_requests import a_dimension, a_model, a_persona
from tests.unit.domain.job_samples import CATALOG, draft, wrong

GOLDEN: Mapping[str, str] = yaml.safe_load(
    (Path(__file__).parents[3] / "golden" / "profile_prompts.yaml").read_text("utf-8")
)
PROFILES = load_profiles("v1")
EXTRAVERSION = CATALOG.dimensions["E"]
CATALOG_WITH_PROFILES = replace(CATALOG, profiles=PROFILES)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
class TestPrompts:
    def test_about_a_sentence(self, profile: JudgeProfile) -> None:
        prompt = profile.about_trait(EXTRAVERSION, "Write a post.", "I {love} parties.")
        assert prompt == GOLDEN[profile.id]

    def test_an_order_check_reverses_the_rubric(self, profile: JudgeProfile) -> None:
        shown = asked(EXTRAVERSION, Order.REVERSED).dimension
        prompt = profile.about_trait(shown, "Write a post.", "I love parties.")
        assert prompt.index("Score 5: Very extroverted") < prompt.index("Score 1: Very introverted")


@pytest.mark.parametrize(
    ("profile", "reply", "score"),
    [
        ("prometheus-2", "Feedback: Score 2 fits in part. So the overall score is 4. [RESULT] 4", 4),
        ("prometheus-2", "It is friendly. [RESULT] (3)", 3),
        ("prometheus-2", "It is friendly. [RESULT] 4/5", 4),
        ("prometheus-2", "It is friendly. [RESULT] 5</s>", 5),
        ("prometheus-2", "It is friendly. [RESULT] 4.5", None),
        ("prometheus-2", "It is friendly. [RESULT] 10", None),
        ("prometheus-2", "It is friendly. [RESULT] 9", None),
        ("prometheus-2", "It is friendly. [RESULT] 5 No: [RESULT] 3", None),
        ("prometheus-2", "It is friendly. [RESULT] 4. Hmm, that is too generous.", None),
        ("prometheus-2", "It is friendly, and", None),
        ("m-prometheus", "Feedback: 文章は2に近い。 [RESULT] 2", 2),
        ("selene", "**Reasoning:** Near 2.\n\n**Result:** 4", 4),
        ("selene", "**Reasoning:** Near 2.\n\n**Result**: 4", 4),
        ("selene", "**Reasoning:** Near 2.\n\n**Result:** 9", None),
        ("flow-judge", "<feedback>\nNear 2.\n</feedback>\n<score>\n4\n</score>", 4),
        ("flow-judge", "<feedback>Near 2.</feedback><score>6</score>", None),
        ("flow-judge", "4", 4),
        ("flow-judge", "9", None),
    ],
)
def test_reads_its_native_reply(profile: str, reply: str, score: int | None) -> None:
    found = PROFILES[profile].read(reply)
    assert (found.status, found.score) == (
        (VerdictStatus.UNPARSED, None) if score is None else (VerdictStatus.SCORED, score)
    )


def test_a_reply_that_was_cut_off_states_no_score() -> None:
    assert PROFILES["prometheus-2"].read("It is friendly. [RESULT] 4", cut_off=True).score is None


class TestCheckProfiles:
    @pytest.mark.parametrize(
        ("changes", "pointer", "problem"),
        [
            (
                {"judges": (a_model("acme/j", profile="prometheus-3"),)},
                "/judges/0/profile",
                "known: prometheus-2",
            ),
            ({"models": (a_model("acme/m", profile="selene"),)}, "/models/0/profile", "only for judges"),
            ({"protocol": "hardened"}, "/judges/0/profile", "protocol 'paper'"),
            ({"judging": {"sentences_per_call": 4}}, "/judges/0/profile", "one sentence per call"),
            ({"judging": {"reply": "choice"}}, "/judges/0/profile", "in its own form"),
            (
                {
                    "personas": (a_persona("left", "a leftist", {"p": "low"}),),
                    "tasks": ("social_media_post",),
                    "dimensions": (
                        a_dimension("p", "politics", "1) Left. 2) Mid. 3) Right. 9) None.", (1, 3, 9)),
                    ),
                },
                "/judges/0/profile",
                "not dimension p",
            ),
        ],
    )
    def test_says_what_does_not_go_together(
        self, changes: dict[str, object], pointer: str, problem: str
    ) -> None:
        usual = {"judges": (a_model("acme/j", profile="selene"),)}
        found = wrong(draft(**(usual | changes)), CATALOG_WITH_PROFILES)
        assert problem in found[pointer]

    def test_a_rubric_that_is_a_whole_text_is_refused(self) -> None:
        found: list[str] = []
        check_profiles(
            {1: PROFILES["selene"]},
            [Dimension("E", "e", Scale(), EXTRAVERSION.options)],
            ["diary"],
            lambda field, problem: found.append(f"{field}: {problem}"),
            grouped=False,
            hardened=False,
            constrained=False,
        )
        assert found == ["/judges/1/profile: selene can't use a rubric that is a whole text: task diary"]
