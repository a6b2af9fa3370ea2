"""What the names of a job on another job's texts can refer to besides."""

from dataclasses import replace

from app.domain.jobs.catalog import Catalog
from app.domain.jobs.request import JobIn, PersonaIn
from app.domain.jobs.stored_texts import Chosen


def beside(catalog: Catalog, wanted: JobIn, chosen: Chosen) -> Catalog:
    """A catalog with what the texts' own job had, in its words: its dimensions, and what the catalog has not of personas and tasks.

    Texts are read by the versions of rules by which they were read before, so that sentences and refusals stay what they were.
    Where the job's tasks are not named, they are its own ones, so that they are of its version of the instruments, too.
    """
    source = chosen.of
    defined = {own.id for own in wanted.dimensions} - catalog.dimensions.keys()
    written = {own.id for own in wanted.personas if isinstance(own, PersonaIn)}
    rules = {name: getattr(source.instrument, name) for name in ("segmenter", "refusals", "injections")}
    named = replace(catalog.instrument, **rules)
    return replace(
        catalog,
        instrument=named if wanted.tasks else source.instrument,
        dimensions=dict(catalog.dimensions)
        | {each.id: each for each in source.dimensions if each.id not in defined},
        personas={each.id: each for each in source.personas if each.id not in written}
        | dict(catalog.personas),
        tasks={task.id: task for task in source.tasks} | dict(catalog.tasks),
    )
