"""What the names of a job on another job's texts can refer to besides."""

from dataclasses import replace

from app.domain.instruments.instrument import READING
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.personagym_resolve import GymCatalog
from app.domain.jobs.request import JobIn, PersonaIn
from app.domain.jobs.specification import JobSpec
from app.domain.jobs.stored_texts import Chosen


def beside(catalog: Catalog, wanted: JobIn, chosen: Chosen) -> Catalog:
    """A catalog with what the texts' own job had, in its words: its dimensions, and what the catalog has not of personas and tasks.

    Texts are read by the versions of rules by which they were read before, so that sentences and refusals stay what they were.
    Where the job names neither tasks nor rubrics, tasks, prompts and rubrics are those of the texts' own job.
    """
    source = chosen.of
    defined = {own.id for own in wanted.dimensions} - catalog.dimensions.keys()
    written = {own.id for own in wanted.personas if isinstance(own, PersonaIn)}
    rules = {name: getattr(source.instrument, name) for name in READING}
    named = replace(catalog.instrument, **rules)
    tasks = {task.id: task for task in source.tasks}
    as_before = not wanted.tasks and wanted.rubrics is None
    return replace(
        catalog,
        instrument=source.instrument if as_before else named,
        dimensions=dict(catalog.dimensions)
        | {each.id: each for each in source.dimensions if each.id not in defined},
        personas={each.id: each for each in source.personas if each.id not in written}
        | dict(catalog.personas),
        tasks=dict(catalog.tasks) | tasks if as_before else tasks | dict(catalog.tasks),
        gym=_gym(catalog.gym, source) if as_before else catalog.gym,
    )


def _gym(catalog: GymCatalog, source: JobSpec) -> GymCatalog:
    """PersonaGym's tasks and prompts as the texts' own job had them."""
    gym = source.gym
    if gym is None:
        return catalog
    tasks = dict(catalog.tasks) | {each.id: each.task for each in gym.tasks}
    return replace(catalog, tasks=tasks, prompts=gym.prompts, instrument=gym.instrument)
