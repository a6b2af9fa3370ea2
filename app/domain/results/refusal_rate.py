"""How often a model refuses the atomic tasks, from a job's results. PersonaGym's results have such a figure themselves."""

from collections.abc import Iterator

from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import Metric
from app.domain.results.contract import Results
from app.domain.statistics.groups import PersonaSample

SEED = 0
"""The rate is resampled when a gate asks for it, and shall then always get the same interval."""

NO_RESPONSE = "no_response: the model has written no response"


def atomic_refusal_rates(results: Results) -> Iterator[tuple[str, Metric]]:
    """Each model's refusals among the responses that it wrote to atomic tasks, with intervals over personas and over runs."""
    cells = [cell for cell in results.cells if cell.task not in _graded(results, cell.model)]
    if not cells:
        return
    sample = PersonaSample([cell.persona for cell in cells], SEED)
    for model in dict.fromkeys(cell.model for cell in cells):
        # Traits that share a text are cells of their own, and the text is one.
        texts = {(cell.persona, cell.task): cell.generation for cell in cells if cell.model == model}
        personas = [persona for persona, _ in texts]
        refused = [text.refused for text in texts.values()]
        written = [text.refused + text.answered for text in texts.values()]
        yield model, _rate(sample, personas, refused, written)


def _graded(results: Results, model: str) -> frozenset[str]:
    """PersonaGym's tasks, whose responses may be judged by sentence besides."""
    return frozenset(
        task for total in results.persona_score_totals if total.model == model for task in total.tasks
    )


def _rate(sample: PersonaSample, personas: list[str], refused: list[int], written: list[int]) -> Metric:
    if not sum(written):
        return Metric.missing(NO_RESPONSE)
    rate = sum(refused) / sum(written)
    over_personas = sample.interval(rate, personas, refused, written, (0.0, 1.0))
    return Metric.of(rate, sum(written)).within(over_personas, ci95_runs=_exact(sum(refused), sum(written)))


def _exact(refused: int, written: int) -> Interval:
    """The rate's interval if these personas were asked again (Clopper and Pearson, 1934).

    It takes the responses for draws from one urn; that personas differ only makes it wider than it need be.
    """
    from scipy import special  # noqa: PLC0415 - its import takes a second, and only gates on refusals need it

    low = float(special.betaincinv(refused, written - refused + 1, 0.025)) if refused else 0.0
    high = float(special.betaincinv(refused + 1, written - refused, 0.975)) if refused < written else 1.0
    return Interval.around(refused / written, low, high, (0.0, 1.0))
