"""The JSON of responses, which clients and stored exports know field by field."""

from app.domain.judging.judged_response import (
    AskedItem,
    JudgedResponse,
    JudgedUnit,
    ResponseGrade,
    ResponseList,
    ResponseUsage,
    UnitVerdict,
    mean_score,
)
from app.domain.judging.prompt_injection import Suspicion
from app.domain.judging.response_figures import ResponseFigures
from app.domain.judging.verdict import Unread, VerdictStatus
from app.domain.providers.model import FinishReason
from app.domain.providers.reuse import ReplyOrigin
from tests.unit.judged import a_grade

VERDICT = UnitVerdict(
    judge="j",
    dimension="E",
    status=VerdictStatus.SCORED,
    score=4,
    raw="4 “é”\n\x07\x7f",
    error=None,
    in_character=True,
    group_size=2,
    reused=ReplyOrigin.SAME_JOB,
    suspicion=Suspicion.BOTH,
    finish_reason=FinishReason.LENGTH,
    thoughts="",
    unread=Unread.CONTRADICTION,
    repair_raw="4",
)
GRADE = ResponseGrade(
    judge="j",
    status=VerdictStatus.FILTERED,
    score=None,
    justification=None,
    raw=None,
    error="filtered: no",
    reused=None,
    suspicion=None,
    finish_reason=None,
    thoughts=None,
)
RESPONSE = JudgedResponse(
    id="resp_1",
    model="m",
    persona="E-high",
    levels={"E": "high"},
    task="essay",
    item=AskedItem("1", "Why?"),
    run=0,
    instruction=None,
    iteration=3,
    status="refused",
    text="No.",
    refusal=True,
    error=None,
    finish_reason=FinishReason.STOP,
    usage=ResponseUsage(1, 2, None),
    thoughts=None,
    units=(JudgedUnit(0, (0, 3), "No.", (VERDICT,)),),
    question=None,
    grades=(GRADE,),
    score=11 / 3,
    reused=ReplyOrigin.OTHER_JOB,
    persona_description="extroverted person",
    persona_traits=("high in extraversion",),
    figures=(ResponseFigures("E", 1, 4.0, 1.0, 1.0, None),),
    imported_judges=("i",),
)
JSON = (
    '{"data":[{"id":"resp_1","model":"m","persona":"E-high","levels":{"E":"high"},"task":"essay",'
    '"item":{"id":"1","text":"Why?"},"run":0,"instruction":null,"iteration":3,"status":"refused","text":"No.",'
    '"refusal":true,"error":null,"finish_reason":"stop",'
    '"usage":{"input_tokens":1,"output_tokens":2,"reasoning_tokens":null},"thoughts":null,'
    '"units":[{"index":0,"span":[0,3],"text":"No.","verdicts":[{"judge":"j","dimension":"E","status":"scored","score":4,'
    '"raw":"4 “é”\\n\\u0007\x7f","error":null,"in_character":true,"group_size":2,"reused":"same_job",'
    '"suspicion":"both","finish_reason":"length","thoughts":"",'
    '"unread":"contradiction","repair_raw":"4"}]}],"question":null,'
    '"grades":[{"judge":"j","status":"filtered","score":null,"justification":null,"raw":null,'
    '"error":"filtered: no","reused":null,"suspicion":null,"finish_reason":null,"thoughts":null,'
    '"unread":null,"repair_raw":null}],'
    '"score":3.6666666666666665,"reused":"other_job",'
    '"persona_description":"extroverted person","persona_traits":["high in extraversion"],"conversation":null,'
    '"figures":[{"dimension":"E","n":1,"mean":4.0,"acc":1.0,"acc_atom":1.0,"ic_atom":null}],"notes":null,"left_out":[],"imported_judges":["i"]}],"has_more":false,"next_cursor":null}'
)


def test_every_field_stands_in_its_place_and_is_read_again() -> None:
    page = ResponseList(data=[RESPONSE], has_more=False, next_cursor=None)
    assert page.model_dump_json() == JSON
    assert ResponseList.model_validate_json(JSON, strict=True) == page


def test_a_score_is_the_mean_over_the_judges_that_gave_one() -> None:
    grades = [
        a_grade(judge, VerdictStatus.SCORED, score=score, justification="", raw="")
        for judge, score in (("a", 5), ("b", 4))
    ]
    assert mean_score([*grades, GRADE]) == 4.5
    assert mean_score([GRADE]) is None
