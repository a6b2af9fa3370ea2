"""The rules that come with the package. A released version never changes: a change is a further line, and the last line is the default of new jobs."""

from functools import partial

from app.domain.instruments.punkt import PunktSegmenter, WidePunktSegmenter
from app.domain.instruments.roleplay import RoleplaySegmenter
from app.domain.instruments.rules import RuleBook, Versions
from app.domain.judging.prompt_injection import addresses_judge
from app.instruments.loader import load_atomic, load_punkt

_ENGLISH = partial(load_punkt, "punkt-en-v1")

RULES = RuleBook(
    segmenter=Versions(
        "segmenter",
        {
            # Not the last: only jobs that name them have them.
            "roleplay-en-v1": lambda: RoleplaySegmenter(_ENGLISH(), "roleplay-en-v1"),
            "punkt-en-wide-v2": lambda: WidePunktSegmenter(_ENGLISH(), "punkt-en-wide-v2"),
            "punkt-en-v1": lambda: PunktSegmenter(_ENGLISH()),
        },
    ),
    refusals=Versions("version of the refusal rules", {"refusals-v2": lambda: load_atomic("v1").refusal}),
    injections=Versions("version of the injection patterns", {"injections-v1": lambda: addresses_judge}),
)
