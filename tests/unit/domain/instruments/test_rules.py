"""Versions of rules, and a specification that names them."""

import pytest

from app.domain.instruments.instrument import InstrumentRef
from app.domain.instruments.rules import UnknownVersionError, Versions
from app.domain.jobs.specification import decode_spec, encode_spec
from app.instruments.rules import RULES
from tests.unit.domain.job_samples import draft, resolved, wrong

OLD = {"segmenter": "punkt-en-v1", "refusals": "refusals-v1", "injections": "injections-v1"}


def names(instrument: InstrumentRef) -> dict[str, str]:
    return {kind: getattr(instrument, kind) for kind in OLD}


class TestVersions:
    def test_each_is_made_once_and_only_when_asked_for(self) -> None:
        made: list[str] = []

        def make() -> str:
            made.append("a")
            return "A"

        versions = Versions[str]("rule", {"a": make, "b": str})
        assert made == []
        assert [versions.load("a"), versions.load("a")] == ["A", "A"]
        assert made == ["a"]

    def test_an_unknown_one_is_refused_in_words_that_name_the_known(self) -> None:
        with pytest.raises(UnknownVersionError, match=r"^unknown rule 'c'; known: a, b$"):
            Versions("rule", {"a": str, "b": str}).load("c")


class TestSpecification:
    def test_names_what_it_was_promised(self) -> None:
        spec = resolved().spec
        assert names(spec.instrument) == OLD
        assert names(decode_spec(encode_spec(spec)).instrument) == OLD

    @pytest.mark.parametrize("kind", OLD)
    def test_an_unknown_version_is_refused_with_the_known_ones(self, kind: str) -> None:
        assert wrong(draft(versions={kind: "v9"})) == {
            f"/versions/{kind}": f"unknown version 'v9'; known: {', '.join(RULES.known[kind])}"
        }

    def test_named_versions_are_kept_in_it(self) -> None:
        assert names(resolved(versions=OLD).spec.instrument) == OLD
