"""Collects what the checks of a job's judges look at."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from app.domain.judging.verdict import Unread, VerdictStatus
from app.domain.personagym.agreement import GradeAgreement
from app.domain.personagym.scores import Grade
from app.domain.results.judge_sanity import Evidence, JudgeAndDimension, JudgedUnits
from app.domain.results.results import MeasuredCell
from app.domain.results.verdict_agreement import VerdictAgreement
from app.services.job_context import JobContext
from app.services.results.prompt_injection import Scores

_UNREADABLE = {VerdictStatus.UNPARSED, VerdictStatus.REFUSED}
_REPLIES = {VerdictStatus.SCORED, VerdictStatus.NOT_APPLICABLE} | _UNREADABLE


def judge_evidence(
    context: JobContext,
    cells: Sequence[MeasuredCell],
    arms: Sequence[Scores],
    grades: Iterable[Grade],
    agreement: Sequence[VerdictAgreement],
    grade_agreement: Sequence[GradeAgreement],
) -> Evidence:
    """What a job's judges did.

    Args:
        context: The job's.
        cells: What was measured of its personas, which has their verdicts counted.
        arms: The score rows of its personas, and those of the control arm.
        grades: All grades.
        agreement: Agreement of the judges' verdicts.
        grade_agreement: Agreement of their grades.
    """
    units: dict[JudgeAndDimension, JudgedUnits] = defaultdict(JudgedUnits)
    for cell in cells:
        for judge, own in cell.by_judge.items():
            found = units[JudgeAndDimension(judge, cell.dimension)]
            found.scores.update(dict(enumerate(own.scores, cell.scale.minimum)))
            found.not_applicable += own.units.not_applicable
    judges = [judge.label for judge in context.spec.judges]
    for (ordinal, trait, judge_number), rows in (item for arm in arms for item in arm.items()):
        dimension = context.cell(ordinal).dimensions[trait].id
        found = units[JudgeAndDimension(judges[judge_number], dimension)]
        control = ordinal >= len(context.cells)
        for row in rows:
            found.replies += len(row.scores) + row.not_applicable + row.unparsed + row.refused
            found.unreadable += row.unparsed + row.refused
            found.contradicting += row.contradicting
            if control:
                found.scores.update(row.scores)
                found.not_applicable += row.not_applicable
    for grade in grades:
        found = units[JudgeAndDimension(grade.judge, None)]
        found.replies += grade.verdict.status in _REPLIES
        found.unreadable += grade.verdict.status in _UNREADABLE
        found.contradicting += grade.verdict.unread is Unread.CONTRADICTION
        if grade.verdict.score is not None:
            found.scores[grade.verdict.score] += 1
    labels = {each.id: each.display_name for each in (*context.dimensions, *context.spec.dimensions)}
    imported = {judge.label for judge in context.spec.judges if judge.imported is not None}
    return Evidence(units, labels, agreement, grade_agreement, imported)
