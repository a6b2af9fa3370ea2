import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.domain.judging import stepwise_json
from app.domain.judging.stepwise_json import StepwiseDecoder, parse_document

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 1]))
def test_it_reads_what_the_library_wrote(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert json.dumps(StepwiseDecoder().decode(text)) == json.dumps(value)


@example("1\u0662")
@example("[1.\u0662]")
@given(st.text('[]{}:,"\\ 1.e-tnruefalsxNI\u0662\n'))
def test_it_refuses_what_the_library_refuses(text: str) -> None:
    try:
        expected: Any = json.loads(text)
    except json.JSONDecodeError:
        with pytest.raises(json.JSONDecodeError):
            StepwiseDecoder().decode(text)
    else:
        assert repr(StepwiseDecoder().decode(text)) == repr(expected)


def test_a_long_document_says_what_a_short_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({"cells": [{"value": 0.1, "n": 3, "reason": None}] * 100})
    short = parse_document(text)
    monkeypatch.setattr(stepwise_json, "SHORT_CHARACTERS", 10)
    assert parse_document(text) == short
