"""What the names in a job's request can refer to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from app.domain.instruments.dimension import Dimension
from app.domain.instruments.instrument import InstrumentRef
from app.domain.instruments.persona import Persona
from app.domain.instruments.rules import RuleBook
from app.domain.instruments.task import AtomicTask
from app.domain.jobs.personagym_resolve import GymCatalog, KeptQuestions
from app.domain.jobs.request import ModelIn
from app.domain.jobs.rubrics import RubricContent
from app.domain.jobs.stored_texts import StoredTexts, UploadedTexts
from app.domain.judging.grouping import GroupedWords
from app.domain.judging.hardening import Hardening
from app.domain.judging.profiles import JudgeProfile
from app.domain.judging.refusal_check import RefusalCheck
from app.domain.judging.repair import Repair
from app.domain.providers.model import Takes
from app.domain.providers.reuse import KEPT_DAYS


@dataclass(frozen=True, slots=True)
class KeptSets:
    """The sets of a tenant that a request names, as far as there are any, by their ids; and its stored texts, or why there are none."""

    personas: Mapping[str, tuple[Persona, ...]] = field(default_factory=dict)
    questions: KeptQuestions = field(default_factory=dict)
    rubrics: Mapping[str, RubricContent] = field(default_factory=dict)
    texts: StoredTexts | str = "there is no such job"
    uploaded: UploadedTexts | str = "there is no such upload"
    exemplars: frozenset[str] = frozenset()
    """Keys of the exemplars that the named question set has."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """What a request's names can refer to.

    Attributes:
        instrument: The version of the words below.
        dimensions: Built-in dimensions by id.
        personas: Built-in personas by id.
        persona_sets: Persona ids by set id.
        instructions: The persona instructions in their order.
        tasks: Atomic tasks by id.
        gym: What PersonaGym's tasks are made of.
        rules: The versions of the rules by which texts are read.
        grouped: How a judge is asked about several sentences at once.
        hardened: How a judge is told what of its prompt is data.
        repair: How a judge is asked once more.
        refusal_check: How a judge is asked whether a text is a refusal.
        model_problem: Says why a ``(connection, name)`` can't be called, or ``None`` if it can.
        is_simulated: Whether a connection leads to the simulator.
        profiles: The profiles of judge models, by id.
        judges: Who judges where a job names nobody; none if the operator named nobody.
        reply_days: For how many days replies are kept for other jobs.
        kept: The tenant's own sets.
        batch_problem: Says why a connection can't take batches, or ``None`` if it can; asked by its id.
        connection_id: The id under which a job keeps the connection of a name.
        takes: Which parameters a connection's model takes, given its name and, perhaps, the name of its family.
    """

    instrument: InstrumentRef
    dimensions: Mapping[str, Dimension]
    personas: Mapping[str, Persona]
    persona_sets: Mapping[str, tuple[str, ...]]
    instructions: tuple[str, ...]
    tasks: Mapping[str, AtomicTask]
    gym: GymCatalog
    rules: RuleBook
    grouped: GroupedWords
    hardened: Hardening
    repair: Repair
    refusal_check: RefusalCheck
    model_problem: Callable[[str, str], str | None]
    is_simulated: Callable[[str], bool]
    profiles: Mapping[str, JudgeProfile] = field(default_factory=dict)
    judges: tuple[ModelIn, ...] = ()
    reply_days: int = KEPT_DAYS
    kept: KeptSets = field(default_factory=KeptSets)
    batch_problem: Callable[[str], str | None] = lambda _connection: None
    connection_id: Callable[[str], str] = lambda connection: connection
    takes: Callable[[str, str, str | None], Takes] = lambda _connection, _name, _family: Takes()
