"""Requests, and a catalog of the built-in instrument with two connections."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from app.domain.errors import InvalidJobError
from app.domain.instruments.instrument import InstrumentRef
from app.domain.instruments.persona import Persona
from app.domain.jobs.catalog import Catalog, KeptSets
from app.domain.jobs.personagym_resolve import GymCatalog
from app.domain.jobs.request import JobIn, ResponseIn
from app.domain.jobs.resolve import Resolution, resolve
from app.instruments.grouped_loader import load_grouped
from app.instruments.hardened_loader import load_hardened
from app.instruments.loader import load_atomic
from app.instruments.personagym_loader import load_personagym
from app.instruments.refusal_check_loader import load_refusal_check
from app.instruments.repair_loader import load_repair
from app.instruments.rules import RULES
from tests.job_requests import a_dimension, a_job, a_model, a_persona

INSTRUMENT = load_atomic("v1")
GYM = load_personagym("v1")
CATALOG = Catalog(
    instrument=InstrumentRef("v1", "abc", RULES.current["segmenter"], "refusals-v1", "injections-v1"),
    dimensions=INSTRUMENT.dimensions,
    personas=INSTRUMENT.personas,
    persona_sets=INSTRUMENT.persona_sets,
    instructions=INSTRUMENT.instructions,
    tasks=INSTRUMENT.tasks,
    gym=GymCatalog(
        instrument=InstrumentRef("v1", "def", RULES.current["segmenter"], "refusals-v1", "injections-v1"),
        tasks=GYM.tasks,
        prompts=replace(GYM.prompts, instructions=dict(GYM.prompts.instructions)),
        environments=GYM.environments,
        dimension=GYM.consistency,
        target_level=GYM.target.level,
    ),
    rules=RULES,
    grouped=load_grouped(),
    hardened=load_hardened(),
    repair=load_repair(),
    refusal_check=load_refusal_check(),
    model_problem=lambda connection, name: (
        None if connection in {"sim", "acme"} else f"no connection {connection}"
    ),
    is_simulated=lambda connection: connection == "sim",
)
DUO = a_persona("duo", "a warm but anxious neighbour", {"A": "high", "N": "low"})
POLITICS = a_dimension("p", "politics", "1 to 5, or 9", levels=("left", "right"))


def draft(**changes: Any) -> JobIn:
    usual: dict[str, Any] = {
        "personas": ("E-low",),
        "tasks": ("essay",),
        "models": (a_model("acme/m"),),
        "judges": (a_model("acme/j"),),
        "instructions": (1,),
        "iterations": 2,
    }
    return a_job(**(usual | changes))


def texts(*responses: ResponseIn, **changes: Any) -> JobIn:
    return draft(**({"models": (), "instructions": None, "responses": responses} | changes))


def resolved(**changes: Any) -> Resolution:
    return resolve(draft(**changes), CATALOG)


def keeping(personas: Iterable[Persona]) -> Catalog:
    """The catalog with a persona set of the tenant's, ``pset_1``."""
    return replace(CATALOG, kept=KeptSets(personas={"pset_1": tuple(personas)}))


def wrong(job: JobIn, catalog: Catalog = CATALOG) -> dict[str, str]:
    """What is wrong with a request: messages by pointer."""
    with pytest.raises(InvalidJobError) as caught:
        resolve(job, catalog)
    return {error.pointer: error.message for error in caught.value.errors}
