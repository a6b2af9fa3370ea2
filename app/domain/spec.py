"""A job with every name looked up: all that is needed to run it, frozen, whatever changes in the instruments later."""

from dataclasses import dataclass

from app.domain.dimension import Dimension
from app.domain.model import Model
from app.domain.persona import Persona
from app.domain.task import AtomicTask


@dataclass(frozen=True, slots=True)
class InstrumentRef:
    """Which version of the measuring device a job uses.

    Attributes:
        version: For example ``"v1"``.
        content_hash: SHA-256 over its content, in hexadecimal.
        segmenter: Name of the sentence segmenter, for example ``"punkt-en-v1"``.
    """

    version: str
    content_hash: str
    segmenter: str


@dataclass(frozen=True, slots=True)
class ProvidedResponse:
    """An existing text, placed in the plan.

    Attributes:
        cell: Ordinal of its cell.
        run: Repetition, from 0.
        item: Index of its item in the cell.
        instruction: Index (from 0) of the persona instruction, if known.
        text: The response.
    """

    cell: int
    run: int
    item: int
    instruction: int | None
    text: str


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a job does.

    Attributes:
        personas: The personas, with traits.
        dimensions: Every dimension that a trait names.
        tasks: The tasks, with the words that they send.
        models: The models under test; for existing texts, their writers (which are never called).
        judges: The judges; each judges every unit alone.
        instructions: The persona instructions; with existing texts, empty.
        iterations: Repetitions under each instruction.
        seed: Seed of everything random on our side.
        instrument: Which measuring device.
        provided: Whether the texts already exist.
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

    @property
    def runs(self) -> int:
        """Runs of a cell: instructions × iterations (Table 12 and section 4.2: 6 × 5 = 30)."""
        return len(self.instructions) * self.iterations

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
