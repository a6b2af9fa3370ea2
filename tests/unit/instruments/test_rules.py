"""What a released version of the rules says never changes: jobs name it and are promised that. A change is a new version beside it."""

import hashlib

from app.domain.instruments.instrument import InstrumentRef
from app.domain.judging.prompt_injection import PATTERNS, addresses_judge
from app.domain.providers.extra import EXTRA_FIELDS
from app.instruments.loader import load_atomic
from app.instruments.rules import RULES


def sha256(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()


def test_every_kind_has_its_first_version() -> None:
    before = RULES.load(InstrumentRef("v1", "", "punkt-en-v1", "refusals-v1", "injections-v1"))
    assert before.segmenter.name == "punkt-en-v1"
    assert (
        before.refusals is load_atomic("v1").refusal
    )  # which, as the segmenter's data, the instrument's hash fixes
    assert before.addresses_judge is addresses_judge


def test_a_segmenter_goes_by_the_name_that_it_has() -> None:
    assert [RULES.segmenter.load(name).name for name in RULES.segmenter.names] == list(RULES.segmenter.names)


def test_the_injection_patterns_are_those_of_v1() -> None:
    found = sha256(*((name, pattern.pattern, int(pattern.flags)) for name, pattern in PATTERNS.items()))
    assert found == "9be46656b8c21e8f0e7d6007bfad575eff53455fb8f83d71a380192114b80cd2"


def test_the_fields_of_extra_are_those_of_v1() -> None:
    assert (
        sha256(EXTRA_FIELDS.load("extra-v1"))
        == "f7e01b5eaba3b1fabe2a23708fafbd4647c03307fd6315b2ede78728dcbc8eb0"
    )


def test_a_version_is_loaded_once_a_process() -> None:
    names = InstrumentRef("v1", "", RULES.current["segmenter"], "refusals-v1", "injections-v1")
    assert RULES.load(names).segmenter is RULES.load(names).segmenter
