"""The lengths of responses as the report shows them: a job's models, then a paper's (atomic paper, Tables 6 and 15)."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.results.baselines import Baselines
from app.domain.results.contract import Results
from app.domain.results.lengths import Length, lengths
from app.reports.views.summary import HEAT_TASKS, task_rank


@dataclass(frozen=True, slots=True)
class LengthTable:
    """Lengths by model and task.

    Attributes:
        tasks: The tasks, at most as many as in a heat map.
        tasks_in_all: How many there are.
        own: For each of the job's models one a task; ``None`` where nothing was judged.
        published: Likewise of the paper's models, for tasks that it has; empty where it has none of them.
    """

    tasks: Sequence[str]
    tasks_in_all: int
    own: Sequence[tuple[str, Sequence[Length | None]]]
    published: Sequence[tuple[str, Sequence[Length | None]]]


def length_table(results: Results, baselines: Baselines | None) -> LengthTable | None:
    """A job's, beside the published ones; ``None`` where nothing was judged."""
    own = lengths(results.cells)
    if not own:
        return None
    every = sorted({task for _, task in own}, key=task_rank)
    tasks = every[:HEAT_TASKS]
    published = {
        (each.model, each.task): Length(each.sentences, each.scored, 0)
        for each in ([] if baselines is None else baselines.lengths)
    }
    among = {key: length for key, length in published.items() if key[1] in tasks}
    return LengthTable(tasks, len(every), _rows(own, tasks), _rows(among, tasks))


def _rows(
    found: dict[tuple[str, str], Length], tasks: Sequence[str]
) -> list[tuple[str, Sequence[Length | None]]]:
    models = dict.fromkeys(model for model, _ in found)
    return [(model, [found.get((model, task)) for task in tasks]) for model in models]
