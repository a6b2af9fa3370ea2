"""A job with every name looked up: all that is needed to run it, frozen, whatever changes in the instruments later."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from app.domain.instruments.dimension import Dimension
from app.domain.instruments.instrument import InstrumentRef
from app.domain.instruments.persona import Persona
from app.domain.instruments.task import AtomicTask
from app.domain.jobs.execution import Execution
from app.domain.jobs.text_source import StoredText, TextSource
from app.domain.judging.grouping import Grouping
from app.domain.judging.hardening import Hardening
from app.domain.judging.imported import GivenUnits, ImportedScores
from app.domain.judging.order_check import OrderCheck
from app.domain.judging.profiles import JudgeProfile
from app.domain.judging.refusal_check import RefusalCheck
from app.domain.judging.repair import Repair
from app.domain.personagym.generation import PersonaGeneration
from app.domain.personagym.specification import GymSpec
from app.domain.providers.model import Model, ReplyForm
from app.domain.providers.reuse import NO_REUSE, Reuse


@dataclass(frozen=True, slots=True)
class ProvidedResponse:
    """An existing text, placed in the plan.

    Attributes:
        cell: Ordinal of its cell.
        run: Repetition, from 0.
        item: Index of its item in the cell.
        instruction: Index (from 0) of the persona instruction, if known.
        text: The response, or where it is stored; ``None`` where only its sentences, or only what judges said of it, are known, and where a model has no
            answer to a PersonaGym question.
        units: Its sentences, where they are not to be found by the segmenter.
        verdicts: What imported judges said of its sentences, and ``grades`` of an answer to PersonaGym's question: judge and grade.
        conversation: Its conversation, if it is a turn of one and stored nowhere else.
    """

    cell: int
    run: int
    item: int
    instruction: int | None
    text: str | StoredText | None
    units: tuple[str, ...] = ()
    verdicts: tuple[ImportedScores, ...] = ()
    grades: tuple[tuple[int, int | None], ...] = ()
    conversation: str | None = None


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a job does.

    Attributes:
        personas: The personas. The atomic tasks measure those with traits, PersonaGym's all.
        dimensions: Every dimension that a trait names.
        tasks: The atomic tasks, with the words that they send.
        models: The models under test; for existing texts, their writers (which are never called).
        judges: The judges; each judges every unit, and grades every PersonaGym answer, alone.
        instructions: The persona instructions of the atomic tasks; with existing texts, empty.
        iterations: Repetitions under each instruction.
        seed: Seed of everything random on our side.
        instrument: Which measuring device.
        provided: Whether the texts already exist.
        gym: The job's PersonaGym tasks, if it has any.
        generation: For a job that makes up personas and does nothing else: what it does.
        grouping: How sentences are judged several at a time; ``None`` for one by one, the papers' way.
        reuse: Which calls are not made where there is a reply already.
        hardening: How judges are told what of their prompts is data; ``None`` for the papers' prompts as they are.
        order_check: Which sentences are judged again with the options in other orders, if any are.
        reply: Form of the judges' replies.
        profiles: The profiles of its judges, by id.
        execution: How its calls are made; what prepares personas is always called directly.
        repair: How judges are asked once more whose reply could not be read; ``None`` if they are not.
        refusal_check: How the first judge is asked whether a text is a refusal; ``None`` if it is not.
        checks_every_text: Whether it is asked about every text that the rules don't call a refusal, not only if they are unsure.
        control: Whether the models are also asked without a persona.
        opposite: Whether personas are also compared with the opposite ones of the job.
        source: Where existing texts were copied from, if another job had them.
        given_units: What came with the texts, or with imported verdicts, instead of the segmenter's sentences.
        uneven_runs: Runs of existing texts that lack an item which another run of their cell has; ``None`` where nobody counted them.
    """

    personas: tuple[Persona, ...]
    dimensions: tuple[Dimension, ...]
    tasks: tuple[AtomicTask, ...]
    models: tuple[Model, ...]
    judges: tuple[Model, ...]
    instructions: tuple[str, ...]
    iterations: int
    seed: int
    instrument: InstrumentRef
    provided: bool = False
    gym: GymSpec | None = None
    generation: PersonaGeneration | None = None
    grouping: Grouping | None = None
    reuse: Reuse = NO_REUSE
    execution: Execution = Execution.DIRECT
    hardening: Hardening | None = None
    order_check: OrderCheck | None = None
    repair: Repair | None = None
    reply: ReplyForm = "text"
    profiles: Mapping[str, JudgeProfile] = field(default_factory=dict)
    refusal_check: RefusalCheck | None = None
    checks_every_text: bool = False
    control: bool = False
    opposite: bool = False
    source: TextSource | None = None
    given_units: GivenUnits | None = None
    uneven_runs: int | None = None

    def profile_of(self, judge: Model) -> JudgeProfile | None:
        """Return a judge's profile; ``None`` for a judge that is asked by the papers' prompts."""
        return None if judge.profile is None else self.profiles[judge.profile]

    @property
    def runs(self) -> int:
        """Runs of an atomic cell: instructions × iterations (Table 12 and section 4.2: 6 × 5 = 30)."""
        return len(self.instructions) * self.iterations

    @property
    def called(self) -> tuple[Model, ...]:
        """Every model that the job calls, in the order of its stages."""
        parts = (self.gym if self.prepared else None, self.generation)
        reasoners = [part.reasoner for part in parts if part is not None]
        return (*reasoners, *(() if self.provided else self.models), *self._called_judges)

    @property
    def batched(self) -> tuple[Model, ...]:
        """The models whose calls go through batch endpoints, in the order of the job's stages."""
        if self.execution is Execution.DIRECT:
            return ()
        return (*(() if self.provided else self.models), *self._called_judges)

    @property
    def prepared(self) -> bool:
        """Whether a reasoner prepares PersonaGym's part: for answers that no judge is called about it writes no exemplars."""
        return self.gym is not None and not (self.provided and not self.asked_judges)

    @property
    def asked_judges(self) -> tuple[int, ...]:
        """The judges that are called, by their indices: all but the imported ones."""
        return tuple(n for n, judge in enumerate(self.judges) if judge.imported is None)

    @property
    def refusals_told_by(self) -> str | None:
        """Who told refusals from answers: the rules alone, or which judge, by which question, of which texts; ``None`` if unknown."""
        if self.source is not None:
            return self.source.refusals
        if len(self.asked_judges) < len(self.judges):
            return None  # whoever gave the imported verdicts
        if self.refusal_check is None:
            return "rules"
        judge = self.judges[self.asked_judges[0]]
        texts = "all" if self.checks_every_text else "unsure"
        return f"{texts} {self.refusal_check.content_hash} {judge.label} {judge.parameters}"

    @property
    def keeps_replies(self) -> bool:
        """Whether replies are kept until a further call about them is answered."""
        return self.repair is not None or self.refusal_check is not None

    @property
    def _called_judges(self) -> Iterator[Model]:
        return (self.judges[n] for n in self.asked_judges)

    def dimension(self, id_: str) -> Dimension:
        """The dimension with this id.

        Raises:
            KeyError: If the job has none.
        """
        for dimension in self.dimensions:
            if dimension.id == id_:
                return dimension
        raise KeyError(id_)

    def instruction_of(self, run: int) -> int:
        """Index of the persona instruction of a run: the first ``iterations`` runs share the first instruction."""
        return run // self.iterations


_CODEC = TypeAdapter(JobSpec)


def encode_spec(spec: JobSpec) -> dict[str, Any]:
    """Return a specification as JSON."""
    encoded: dict[str, Any] = _CODEC.dump_python(spec, mode="json")
    return encoded


def decode_spec(encoded: dict[str, Any]) -> JobSpec:
    """Return the specification that :func:`encode_spec` wrote."""
    spec: JobSpec = _CODEC.validate_python(encoded)
    return spec
