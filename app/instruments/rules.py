"""The rules that come with the package. A released version never changes: a change is a further line, and the last line is the default of new jobs."""

from functools import partial

from app.domain.instruments.rules import RuleBook, Versions
from app.domain.instruments.segmentation import Segmenter
from app.domain.judging.prompt_injection import addresses_judge
from app.instruments.loader import load_atomic, load_punkt


def _segmenter(name: str) -> Segmenter:
    """Return a segmenter with the English parameters; importing NLTK takes a third of a second, so it waits until here."""
    from app.domain.instruments.punkt import PunktSegmenter, WidePunktSegmenter  # noqa: PLC0415
    from app.domain.instruments.roleplay import RoleplaySegmenter  # noqa: PLC0415

    kinds = {
        "roleplay-en-v1": RoleplaySegmenter,
        "punkt-en-wide-v1": WidePunktSegmenter,
        "punkt-en-v1": PunktSegmenter,
    }
    return kinds[name](load_punkt("punkt-en-v1"), name)


RULES = RuleBook(
    segmenter=Versions(
        "segmenter",
        {
            # Not the last: only jobs that name them have them.
            "roleplay-en-v1": partial(_segmenter, "roleplay-en-v1"),
            "punkt-en-wide-v1": partial(_segmenter, "punkt-en-wide-v1"),
            "punkt-en-v1": partial(_segmenter, "punkt-en-v1"),
        },
    ),
    refusals=Versions("version of the refusal rules", {"refusals-v1": lambda: load_atomic("v1").refusal}),
    injections=Versions("version of the injection patterns", {"injections-v1": lambda: addresses_judge}),
)
