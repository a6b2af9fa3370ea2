import json

from app.domain.jobs.resolve import resolve
from app.domain.jobs.specification import decode_spec, encode_spec
from tests.job_requests import a_dimension, a_model, a_persona, a_response
from tests.unit.domain.job_samples import CATALOG, draft, texts


class TestSpecificationCodec:
    def test_a_specification_survives_the_database(self) -> None:
        sampled = a_model(
            "sim/a/b",
            "label",
            temperature=0.5,
            top_p=0.9,
            max_tokens=100,
            seed=7,
            stop=["\n\n", "END"],
            extra={"logit_bias": {"50256": -2.5}, "reasoning_effort": "low"},
        )
        own = a_dimension("p", "politics", "1 to 7", (-3, 3, 9), ("left", "right"), ("Why?",), "A vote.")
        persona = a_persona("x", 'a "quoted" {persona}', {"p": "left", "N": "high"})
        spec = resolve(
            draft(
                personas=("big-five", persona),
                tasks=("questionnaire", "essay", "social_media_post"),
                models=(sampled, a_model("acme/m")),
                dimensions=(own,),
                instructions=None,
                seed=2**63 - 1,
            ),
            CATALOG,
        ).spec
        assert decode_spec(json.loads(json.dumps(encode_spec(spec)))) == spec

    def test_one_of_existing_texts_does_too(self) -> None:
        spec = resolve(texts(a_response("E-low", "essay", "x", model="me")), CATALOG).spec
        assert decode_spec(json.loads(json.dumps(encode_spec(spec)))) == spec
