from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.providers.model import Model, ModelParameters, Takes
from app.domain.providers.parameters import (
    DEFAULT_OUTPUT_BOUND,
    most_output_tokens,
    parameter_problems,
    sent_parameters,
)

NAMES = ("temperature", "top_p", "max_tokens", "seed", "stop")

parameters = st.builds(
    ModelParameters,
    temperature=st.none() | st.floats(0, 2),
    top_p=st.none() | st.floats(0.01, 1),
    max_tokens=st.none() | st.integers(1, 100),
    seed=st.none() | st.integers(0, 9),
    stop=st.just(()) | st.just(("END",)),
    extra=st.dictionaries(
        st.sampled_from(["top_k", "stream", "reasoning_effort"]), st.just("none") | st.just(5)
    ),
)
some_names = st.lists(st.sampled_from(NAMES), unique=True).map(tuple)
takes = st.builds(
    Takes,
    family=st.none() | st.just("f"),
    refuses=some_names,
    refuses_reasoning=some_names,
    one_of=some_names,
)


@given(parameters, takes)
def test_everything_asked_for_is_sent_or_dropped_or_the_default(asked: ModelParameters, what: Takes) -> None:
    sent = sent_parameters(asked, what)
    dropped = [one.name for one in sent.dropped]
    assert len(dropped) == len(set(dropped))
    for name in NAMES:
        value = getattr(asked, name)
        if value is None or value == ():
            assert name not in sent.values
            assert name not in dropped
        elif name in dropped:
            assert name not in sent.values
        elif name not in sent.values:
            assert value == 1
    for name in asked.extra:
        assert (name in sent.extra) != (f"extra.{name}" in dropped)


@given(parameters, takes)
def test_nothing_is_sent_that_is_refused(asked: ModelParameters, what: Takes) -> None:
    values = sent_parameters(asked, what).values
    assert not set(what.refuses) & values.keys()
    assert len(set(what.one_of) & values.keys()) <= 1


class TestDropped:
    @pytest.mark.parametrize(
        ("extra", "reason"),
        [
            ({"max_completion_tokens": 5}, "max_tokens sets this"),
            ({"Stream": True}, "is set by this service; another value would change the request's meaning"),
            ({"n": 1}, "would return, and charge for, several answers per call"),
        ],
    )
    def test_fields_of_ours_say_so(self, extra: dict[str, Any], reason: str) -> None:
        (dropped,) = sent_parameters(ModelParameters(extra=extra), Takes()).dropped
        assert dropped == (f"extra.{next(iter(extra))}", next(iter(extra.values())), reason)

    def test_a_refusal_names_the_family(self) -> None:
        (dropped,) = sent_parameters(
            ModelParameters(temperature=0.0), Takes("o-series", refuses=("temperature",))
        ).dropped
        assert dropped.reason == "models of the family o-series refuse it"

    def test_a_refusal_while_reasoning_says_how_to_send_it(self) -> None:
        what = Takes("gpt", refuses_reasoning=("temperature",))
        (dropped,) = sent_parameters(ModelParameters(temperature=0.0), what).dropped
        assert '"reasoning_effort": "none"' in dropped.reason


class TestProblems:
    AT_MOST_ONE = Takes(at_most={"temperature": 1})

    def test_are_values_beyond_what_is_taken(self) -> None:
        ((name, problem),) = parameter_problems(ModelParameters(temperature=1.5), self.AT_MOST_ONE)
        assert name == "temperature"
        assert problem == "this model accepts at most 1; it would reject 1.5"

    def test_are_none_at_the_bound_or_where_it_is_not_sent(self) -> None:
        assert list(parameter_problems(ModelParameters(temperature=1.0), self.AT_MOST_ONE)) == []
        refused = Takes(refuses=("temperature",), at_most={"temperature": 1})
        assert list(parameter_problems(ModelParameters(temperature=1.5), refused)) == []


def test_what_the_format_demands_is_sent_unless_asked_otherwise() -> None:
    what = Takes(needs={"max_tokens": 1024}, names={"stop": "stop_sequences"})
    assert sent_parameters(ModelParameters(), what).body(what) == {"max_tokens": 1024}
    asked = ModelParameters(max_tokens=5, stop=("END",), extra={"top_k": 3})
    assert sent_parameters(asked, what).body(what) == {"max_tokens": 5, "stop_sequences": ["END"], "top_k": 3}


class TestMostOutputTokens:
    @staticmethod
    def most(max_tokens: int | None, takes: Takes | None = None) -> int:
        return most_output_tokens(Model("m", "it", "m", ModelParameters(max_tokens=max_tokens), takes=takes))

    def test_are_max_tokens_where_the_model_heeds_it(self) -> None:
        assert self.most(5) == self.most(5, Takes()) == 5
        assert self.most(None) == DEFAULT_OUTPUT_BOUND

    @pytest.mark.parametrize("what", [Takes(bounds=False), Takes(refuses=("max_tokens",))])
    def test_are_no_fewer_than_without_it_where_that_is_not_sure(self, what: Takes) -> None:
        assert self.most(5, what) == self.most(None, what) == DEFAULT_OUTPUT_BOUND

    def test_are_more_where_more_is_asked_for(self) -> None:
        assert self.most(50_000, Takes(bounds=False)) == 50_000
