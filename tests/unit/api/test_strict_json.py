import json

import pytest

from app.api.problems import ProblemError
from app.api.strict_json import loads


class TestLoads:
    def test_json_is_read(self) -> None:
        value = {"a": [1, -2.5e3, True, None, "ü𝄞\\u0041"], "": {}}
        assert loads(json.dumps(value).encode()) == value
        assert loads(json.dumps(value, ensure_ascii=False).encode()) == value

    def test_brackets_in_texts_are_no_levels(self) -> None:
        value: object = ["[" * 100, '"\\{' * 100, [{"{[": "["}] * 100]
        assert loads(json.dumps(value).encode()) == value

    def test_sixty_four_levels_are_read(self) -> None:
        assert json.dumps(loads(b"[" * 64 + b"]" * 64)) == "[" * 64 + "]" * 64

    def test_a_pair_of_escaped_surrogates_is_one_character(self) -> None:
        assert loads(rb'["\ud834\udd1e"]') == ["𝄞"]

    @pytest.mark.parametrize(
        ("body", "detail"),
        [
            (b'{"a":1,"b":{"c":1,"c":2}}', "the key 'c' stands more than once"),
            (b'{"a":1,"\\u0061":1}', "the key 'a' stands more than once"),
            (b"[NaN]", "NaN is not JSON"),
            (b"[1e400]", "the number 1e400 is too large"),
            (b'["\\ud834"]', "lone surrogate"),
            (b'{"\\uDC00":1}', "lone surrogate"),
            (b'["\xff"]', "not UTF-8"),
            (b"[" + b"1" * 5000 + b"]", "the body: Exceeds the limit"),
            (b"[" * 100_000, "nested deeper than 64 levels"),
            (b'{"a":' * 65 + b"1" + b"}" * 65, "nested deeper than 64 levels"),
        ],
    )
    def test_what_other_parsers_would_take_otherwise_is_refused(self, body: bytes, detail: str) -> None:
        with pytest.raises(ProblemError) as caught:
            loads(body)
        assert caught.value.status_code == 400
        assert detail in str(caught.value.detail)

    def test_what_is_no_json_at_all_is_a_decode_error(self) -> None:
        with pytest.raises(json.JSONDecodeError):
            loads(b"{'a': 1}")
