"""How many personas, wordings and iterations find a difference, and what such jobs take."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence

from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.contract import Detection, JobSize, NoiseOfDifferences
from app.domain.jobs.request import DetectIn
from app.domain.jobs.specification import JobSpec
from app.domain.results.noise import KnownNoise
from app.domain.statistics.design import Population
from app.domain.statistics.power import MOST_PERSONAS, Size, power, with_enough_personas
from app.services.jobs.planning import Check

ReadNoise = Callable[[str, DetectIn, Collection[str], float], Awaitable[KnownNoise]]
"""Reads for a tenant what differences in these tasks vary with, on a scale of this width."""
Priced = Callable[[float, float], tuple[int, float | None]]
"""Calls and dollars of a job with so many times the responses, and so many times the runs."""

WORDINGS = {Population.BOTH: (3, 6, 12, 24), Population.PERSONAS: (1, 3, 6, 12)}
ITERATIONS = (1, 2, 5, 10, 20)
POPULATIONS = {"both": Population.BOTH, "personas": Population.PERSONAS}


def check_detection(wanted: DetectIn, spec: JobSpec) -> float:
    """The width of the metric's scale.

    Raises:
        InvalidJobError: If the job is of a kind of which this cannot be said, or the difference exceeds the scale.
    """
    if spec.provided or spec.gym is not None:
        kind = "existing texts" if spec.provided else "PersonaGym tasks"
        raise InvalidJobError([FieldError("/detect", f"is only for jobs of atomic tasks, not of {kind}")])
    widths = {dimension.scale.width for dimension in spec.dimensions} if wanted.metric == "mean" else {1}
    if len(widths) > 1:
        raise InvalidJobError(
            [FieldError("/detect/metric", "dimensions of different scales have no common mean")]
        )
    width = widths.pop()
    if wanted.difference > width:
        message = f"must be at most {width}, the width of the scale of {wanted.metric}"
        raise InvalidJobError([FieldError("/detect/difference", message)])
    return float(width)


def detect(
    wanted: DetectIn, spec: JobSpec, known: KnownNoise, priced: Priced, most_calls: int, check: Check
) -> Detection:
    """How large a job finds a difference.

    Args:
        wanted: The difference.
        spec: The job as it is described.
        known: What differences vary with.
        priced: What a larger or smaller one takes.
        most_calls: Calls that a job may have.
        check: Called between the parts; raises where nobody waits for them.
    """
    population = POPULATIONS[wanted.population]
    models = wanted.models or max(2, len(spec.models))
    own = _size(spec)
    found: list[Size] = []
    for size in _sizes(own, population):
        check()
        enough = with_enough_personas(known.noise, size, population, wanted.difference, wanted.power, models)
        if enough is not None:
            found.append(enough)

    def told(size: Size, lacking: str | None = None) -> JobSize:
        share = lacking or power(known.noise, size, population, wanted.difference, models)
        calls, usd = priced(_responses(size) / _responses(own), _runs(size) / _runs(own))
        return JobSize(
            **{name: value for name, value in size._asdict().items() if name in JobSize.model_fields},
            power=None if isinstance(share, str) else round(share, 3),
            reason=share if isinstance(share, str) else None,
            calls=calls,
            usd=usd,
        )

    told_of = [told(size) for size in found if not any(_within(other, size) for other in found)]
    options = [option for option in told_of if option.calls <= most_calls]
    reason = None
    if not options:
        reason = _too_many_calls(told_of, most_calls) or _not_reached(told, own, population, wanted)
    return Detection(
        metric=wanted.metric,
        difference=wanted.difference,
        power=wanted.power,
        models=models,
        population=population.value,
        planned=told(own, _one_on_a_level(spec) if population is Population.BOTH else None),
        options=sorted(options, key=lambda each: (each.usd or 0.0, each.calls)),
        reason=reason,
        noise=list(_noise(known)),
    )


def _size(spec: JobSpec) -> Size:
    levels = {trait.level for persona in spec.personas for trait in persona.traits}
    personas = sum(bool(persona.traits) for persona in spec.personas)
    return Size(personas, len(levels), len(spec.instructions), spec.iterations)


def _sizes(own: Size, population: Population) -> Iterator[Size]:
    """Wordings and iterations to look at; the personas are to be found."""
    for wordings in sorted({*WORDINGS[population], own.wordings}):
        for iterations in sorted({*ITERATIONS, own.iterations}):
            yield own._replace(wordings=wordings, iterations=iterations)


def _responses(size: Size) -> int:
    return size.personas * _runs(size)


def _runs(size: Size) -> int:
    return size.wordings * size.iterations


def _within(one: Size, other: Size) -> bool:
    """Whether one is another size, and nowhere larger than the other."""
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def _one_on_a_level(spec: JobSpec) -> str | None:
    """Why the comparison would not be over wordings; ``None`` if it would."""
    personas = Counter(
        level for persona in spec.personas for level in {trait.level for trait in persona.traits}
    )
    alone = [level for level, count in sorted(personas.items()) if count == 1]
    if not alone:
        return None
    return f"one_persona_on_a_level: {', '.join(alone)}; the comparison takes two on each level"


def _too_many_calls(options: Sequence[JobSize], most_calls: int) -> str | None:
    if not options:
        return None
    fewest = min(option.calls for option in options)
    return f"too_many_calls: it takes {fewest:,}; this service allows {most_calls:,}"


def _not_reached(told: Callable[[Size], JobSize], own: Size, population: Population, wanted: DetectIn) -> str:
    most = max(_sizes(own, population))._replace(personas=MOST_PERSONAS // own.levels * own.levels)
    share = f"{100 * (told(most).power or 0.0):.0f} % of cases"
    return (
        f"not_reached: {most.personas:,} personas, {most.wordings} wordings and {most.iterations} iterations find"
        f" {wanted.difference:g} in {share}"
    )


def _noise(known: KnownNoise) -> Iterator[NoiseOfDifferences]:
    noise = known.noise
    for of, sd, source in (
        ("personas", noise.personas, known.personas),
        ("levels", noise.levels, known.personas),
        ("wordings", noise.wordings, known.wordings),
        ("personas_and_wordings", noise.both, known.wordings),
        ("runs", noise.runs, known.wordings),
    ):
        yield NoiseOfDifferences(of=of, sd=round(sd, 4), source=source)
