"""From what imported judges are said to have given to verdicts on the sentences of existing texts."""

from collections.abc import Callable, Iterator, Sequence

from app.domain.errors import escape_pointer
from app.domain.instruments.dimension import Scale
from app.domain.jobs.plan import Cell, GymCell, traits_at
from app.domain.jobs.qa_request import QaIn
from app.domain.jobs.request import JobIn, JudgingIn, ResponseIn
from app.domain.jobs.source_request import UploadTextsIn
from app.domain.jobs.text_source import StoredText, UploadedText
from app.domain.jobs.verdicts_request import ImportedJudgeIn, VerdictsIn
from app.domain.judging.imported import GivenUnits, ImportedScores, Score, readings
from app.domain.providers.model import Model
from app.domain.suggestion import did_you_mean

Fail = Callable[[str, str], None]


def imported_judge(given: ImportedJudgeIn) -> Model:
    """The judge that a request names; nobody can call it."""
    return Model(given.imported, "", given.imported, imported=given.provenance.to_provenance())


def check_imported(request: JobIn, judges: Sequence[Model], fail: Fail) -> None:
    """Says what of a job can't be together with judges that are never called."""
    imported = [n for n, judge in enumerate(judges) if judge.imported is not None]
    if not imported:
        return
    if not isinstance(request.responses, list | UploadTextsIn):
        for n in imported:
            fail(
                f"/judges/{n}",
                f"an imported judge needs responses that bring its verdicts{_why_not(request)}",
            )
    if request.judging != JudgingIn():
        fail(
            "/judging", "imported judges can't be asked again: leave it out, or leave out the imported judges"
        )
    if len(imported) == len(judges):
        for name in ("protocol", "execution", "reuse"):
            if getattr(request, name) != JobIn.model_fields[name].default:
                fail(f"/{name}", "has no effect: all judges are imported, so none is called")


def _why_not(request: JobIn) -> str:
    """What of a job's existing texts brings no verdicts, and what to do instead."""
    if request.source is not None:
        return ", and texts of a job bring none: to set its judges beside others, compare both jobs or bridge them"
    if isinstance(request.responses, QaIn):
        return ", and PersonaGym's files bring none: give the answers as a list, with grades"
    return ""


class VerdictsPlacer:
    """Places the verdicts of a job's responses; notes whether whole responses or given sentences are judged."""

    def __init__(self, judges: Sequence[Model], fail: Fail) -> None:
        self._judges = judges
        self._imported = {judge.label: n for n, judge in enumerate(judges) if judge.imported is not None}
        self._called = next((judge.label for judge in judges if judge.imported is None), None)
        self._fail = fail
        self._whole: bool | None = None
        self._with_units: str | None = None
        self._without_text = False

    def place(
        self, response: ResponseIn | UploadedText, cell: Cell, item: int, pointer: str
    ) -> tuple[ImportedScores, ...]:
        """What each imported judge said of a response, on each trait on which it is judged."""
        traits = {dimension.id: (trait, dimension.scale) for trait, dimension in traits_at(cell, item)}
        found: dict[tuple[int, int], ImportedScores] = {}
        for n, given in enumerate(response.verdicts):
            at = f"{pointer}/verdicts/{n}"
            judge, dimension = (
                self._judge(given.judge, f"{at}/judge"),
                self._dimension(given, list(traits), at),
            )
            if judge is None or dimension is None:
                continue
            trait, scale = traits[dimension]
            if (judge, trait) in found:
                self._fail(f"{at}/judge", f"{given.judge!r} already has verdicts on {dimension!r} above")
            scores, field = self._scores(given, scale, at)
            found[judge, trait] = ImportedScores(judge, trait, scores, field)
        self._check_text(response, pointer)
        self._note_units(response, pointer)
        return tuple(found.values())

    def grades(
        self, response: ResponseIn | UploadedText, cell: Cell, pointer: str
    ) -> tuple[tuple[int, int | None], ...]:
        """The judges that graded an answer to PersonaGym's question, each with its grade."""
        at = f"{pointer}/grades"
        if not isinstance(cell, GymCell):
            if response.grades:
                self._fail(at, "are only of answers to PersonaGym's questions; give verdicts")
            return ()
        if not _has_text(response):
            self._fail(f"{pointer}/text", "is required")
        found = [
            (self._judge(name, f"{at}/{escape_pointer(name)}"), grade)
            for name, grade in response.grades.items()
        ]
        return tuple((judge, grade) for judge, grade in found if judge is not None)

    def _judge(self, name: str, at: str) -> int | None:
        if name in self._imported:
            return self._imported[name]
        why = f"the job has no imported judge {name!r}{did_you_mean(name, self._imported)}"
        if name in {judge.label for judge in self._judges}:
            why = f"{name!r} is called by the job; only imported judges bring verdicts"
        self._fail(at, why)
        return None

    def _dimension(self, given: VerdictsIn, known: Sequence[str], at: str) -> str | None:
        if given.dimension is None and len(known) == 1:
            return known[0]
        if given.dimension in known:
            return given.dimension
        its = f"the response is judged on {', '.join(known)}" if known else "its sentences are not judged"
        why = f"is required: {its}" if given.dimension is None else f"not {given.dimension!r}: {its}"
        self._fail(f"{at}/dimension", why)
        return None

    def _scores(self, given: VerdictsIn, scale: Scale, at: str) -> tuple[Sequence[Score], str]:
        whole = given.scores is None
        field = f"{at}/score" if whole else f"{at}/scores"
        if self._whole is None:
            self._whole = whole
        elif self._whole != whole:
            self._fail(
                field, "other verdicts of the job are of the other form: score and scores can't be mixed"
            )
        scores: Sequence[Score] = (given.score,) if given.scores is None else given.scores
        for n, problem in _off_scale(scores, scale):
            self._fail(field if whole else f"{field}/{n}", problem)
        return scores, field

    def _check_text(self, response: ResponseIn | UploadedText, pointer: str) -> None:
        if _has_text(response) or response.units:
            return
        if self._called is not None:
            self._fail(f"{pointer}/text", f"is required: the judge {self._called!r} reads it")
        elif not response.verdicts and not response.grades:
            self._fail(f"{pointer}/text", "is required where there are no verdicts")

    def _note_units(self, response: ResponseIn | UploadedText, pointer: str) -> None:
        if response.units and self._with_units is None:
            self._with_units = f"{pointer}/units"
        self._without_text |= not _has_text(response)

    def given_units(self) -> GivenUnits | None:
        """What the verdicts are about where the segmenter does not decide it, once all responses are placed."""
        if self._whole:
            if self._with_units is not None:
                self._fail(self._with_units, "has no effect: the job's verdicts are on whole responses")
            return "responses"
        return "sentences" if self._with_units is not None or self._without_text else None


def _has_text(response: ResponseIn | UploadedText) -> bool:
    """Whether the text itself was given; of an upload that is known of where it is stored."""
    text: object = response.text
    return text.elsewhere.text if isinstance(text, StoredText) else text is not None


def _off_scale(scores: Sequence[Score], scale: Scale) -> Iterator[tuple[int, str]]:
    known = readings(scale)
    none = f"{scale.not_applicable} or 'not_applicable' for none of its options"
    for n, score in enumerate(scores):
        if score not in known:
            yield n, f"{score} is not on the scale from {scale.minimum} to {scale.maximum} ({none})"
