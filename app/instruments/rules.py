"""The rules that come with the package. A released version never changes: a change is a further line, and the last line is what new jobs get."""

from functools import partial

from app.domain.instruments.rules import RuleBook, Versions
from app.domain.instruments.segmentation import Segmenter
from app.domain.judging.prompt_injection import addresses_judge
from app.instruments.loader import load_atomic, load_punkt


def _punkt(name: str) -> Segmenter:
    from app.domain.instruments.punkt import PunktSegmenter  # noqa: PLC0415 - importing NLTK takes a third of a second

    return PunktSegmenter(load_punkt(name))


def _wide_punkt(name: str) -> Segmenter:
    from app.domain.instruments.punkt import WidePunktSegmenter  # noqa: PLC0415 - see above

    return WidePunktSegmenter(load_punkt("punkt-en-v1"), name)


RULES = RuleBook(
    segmenter=Versions(
        "segmenter",
        {
            # Not the last: only jobs that name it have it.
            "punkt-en-wide-v1": partial(_wide_punkt, "punkt-en-wide-v1"),
            "punkt-en-v1": partial(_punkt, "punkt-en-v1"),
        },
    ),
    refusals=Versions("version of the refusal rules", {"refusals-en-v1": lambda: load_atomic("v1").refusal}),
    injections=Versions("version of the injection patterns", {"injections-v1": lambda: addresses_judge}),
)
