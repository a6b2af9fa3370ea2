import json

from app.domain.jobs.draft import DimensionDraft, ModelDraft, PersonaDraft, ResponseDraft, ScaleDraft
from app.domain.jobs.resolve import resolve
from app.domain.providers.model import ModelParameters
from app.services.job_context import decode_spec, encode_spec
from tests.unit.domain.job_samples import CATALOG, draft, texts


class TestSpecificationCodec:
    def test_a_specification_survives_the_database(self) -> None:
        parameters = ModelParameters(
            0.5, 0.9, 100, 7, ("\n\n", "END"), {"logit_bias": {"50256": -2.5}, "reasoning_effort": "low"}
        )
        own = DimensionDraft(
            "p", "politics", "1 to 7", ScaleDraft(-3, 3, 9), ("left", "right"), ("Why?",), "A vote."
        )
        persona = PersonaDraft("x", 'a "quoted" {persona}', {"p": "left", "N": "high"})
        spec = resolve(
            draft(
                personas=("big-five", persona),
                tasks=("questionnaire", "essay", "social_media_post"),
                models=(ModelDraft("sim/a/b", "label", parameters), ModelDraft("acme/m")),
                dimensions=(own,),
                instructions=None,
                seed=2**63 - 1,
            ),
            CATALOG,
        ).spec
        assert decode_spec(json.loads(json.dumps(encode_spec(spec)))) == spec

    def test_one_of_existing_texts_does_too(self) -> None:
        spec = resolve(texts(ResponseDraft("E-low", "essay", "x", model="me")), CATALOG).spec
        assert decode_spec(json.loads(json.dumps(encode_spec(spec)))) == spec
