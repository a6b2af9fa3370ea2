"""The catalog: everything a job can name, from the instruments and the connections."""

from dataclasses import replace

from app.domain.instruments.instrument import InstrumentRef
from app.domain.instruments.rules import RuleBook
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.personagym_resolve import GymCatalog
from app.domain.jobs.request import as_model
from app.domain.judging.grouping import GroupedWords
from app.domain.judging.hardening import Hardening, secret_of
from app.domain.providers.model import Takes
from app.domain.providers.reuse import KEPT_DAYS
from app.domain.suggestion import did_you_mean
from app.instruments.grouped_loader import load_grouped
from app.instruments.hardened_loader import load_hardened
from app.instruments.loader import AtomicInstrument, load_atomic
from app.instruments.personagym_loader import PersonaGymInstrument, load_personagym
from app.instruments.profiles_loader import load_profiles
from app.instruments.published import released_texts
from app.instruments.refusal_check_loader import load_refusal_check
from app.instruments.repair_loader import load_repair
from app.instruments.rules import RULES
from app.llm.connections.connections import Connections
from app.llm.models.table import takes_at


def load_catalog(connections: Connections, pepper: bytes, *, reply_days: int) -> Catalog:
    """The catalog of this installation, with the instruments as they are shipped.

    Args:
        connections: The operator's.
        pepper: What the key words of hardened judging are made with.
        reply_days: As for :func:`make_catalog`.
    """
    hardened = replace(load_hardened(), secret=secret_of(pepper))
    return make_catalog(
        load_atomic(), load_personagym(), load_grouped(), hardened, RULES, connections, reply_days=reply_days
    )


def make_catalog(
    instrument: AtomicInstrument,
    gym: PersonaGymInstrument,
    grouped: GroupedWords,
    hardened: Hardening,
    rules: RuleBook,
    connections: Connections,
    *,
    reply_days: int = KEPT_DAYS,
) -> Catalog:
    """The catalog of this installation.

    Args:
        instrument: The atomic tasks' words.
        gym: PersonaGym's.
        grouped: Those for several sentences in one judge call, to which a task may add its own.
        hardened: Those by which a judge is told what of its prompt is data.
        rules: Those by which texts are read.
        connections: The operator's; see :func:`with_connections`.
        reply_days: For how many days replies are kept for other jobs.
    """
    catalog = Catalog(
        instrument=_ref(instrument, rules),
        dimensions=instrument.dimensions,
        personas={**instrument.personas, **gym.personas},
        persona_sets={**instrument.persona_sets, **gym.persona_sets},
        instructions=instrument.instructions,
        tasks=instrument.tasks,
        gym=GymCatalog(
            instrument=_ref(gym, rules),
            tasks=gym.tasks,
            prompts=replace(gym.prompts, instructions=dict(gym.prompts.instructions)),
            environments=gym.environments,
            dimension=gym.consistency,
            target_level=gym.target.level,
            released_questions=released_texts().questions,
        ),
        rules=rules,
        grouped=replace(grouped, criteria={**grouped.criteria, **instrument.criteria}),
        hardened=hardened,
        repair=load_repair(),
        refusal_check=load_refusal_check(),
        model_problem=lambda _connection, _name: None,
        is_simulated=lambda _connection: False,
        profiles=load_profiles(),
        judges=tuple(map(as_model, connections.judges)),
        reply_days=reply_days,
    )
    return with_connections(catalog, connections)


def with_connections(catalog: Catalog, connections: Connections) -> Catalog:
    """The catalog with these connections for jobs to name, and no others."""
    named = connections.by_id

    def model_problem(connection: str, name: str) -> str | None:
        found = named.get(connection)
        if found is None:
            meant = did_you_mean(connection, named) or f"; configured: {', '.join(named) or 'none'}"
            return f"unknown connection {connection!r}{meant}"
        if not found.allows(name):
            meant = did_you_mean(name, found.models or ()) or "; GET /v1/models lists the allowed ones"
            return f"connection {connection!r} does not allow the model {name!r}{meant}"
        if not connections.permit(connection, name):
            return f"the operator does not allow {connection}/{name} for this tenant; GET /v1/models lists the allowed ones"
        return None

    def is_simulated(connection: str) -> bool:
        return connection in named and named[connection].simulated

    def connection_id(connection: str) -> str:
        return named[connection].id if connection in named else connection

    def takes(connection: str, name: str, family: str | None) -> Takes:
        return takes_at(named[connection], name, family) if connection in named else Takes()

    def batch_problem(connection: str) -> str | None:
        found = connections.get(connection)
        if found is None or found.batches:
            return None
        return (
            f"connection {connection!r} has no known batch endpoints: use execution 'direct',"
            " or ask the operator to set `batches: true` for it"
        )

    return replace(
        catalog,
        model_problem=model_problem,
        is_simulated=is_simulated,
        connection_id=connection_id,
        batch_problem=batch_problem,
        takes=takes,
    )


def _ref(instrument: AtomicInstrument | PersonaGymInstrument, rules: RuleBook) -> InstrumentRef:
    current = rules.current
    return InstrumentRef(
        instrument.version,
        instrument.content_hash,
        current["segmenter"],
        current["refusals"],
        current["injections"],
    )
