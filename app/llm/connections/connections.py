"""Which model providers there are, how they are reached, how fast they may be called and what they charge."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlsplit

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    ValidationError,
)

from app.domain.keys.allowed_models import is_allowed, models_of
from app.domain.providers.extra import fixed_field
from app.domain.providers.model import ConnectionKind, ServerName
from app.domain.validation import message
from app.guard.targets import Guard
from app.telemetry.redaction import traces_of

SIMULATED = "simulated"
SIMULATED_ANTHROPIC = "simulated-anthropic"
SIMULATED_MODELS = (
    *("sim-faithful", "sim-drifting", "sim-erratic", "sim-refusing", "sim-indifferent"),
    *("sim-judge", "sim-judge-lenient", "sim-judge-harsh", "sim-judge-noisy", "sim-judge-gullible"),
    *("sim-reasoner", "sim-reasoner-sloppy"),
)
"""What the simulator offers, so that a misspelt name is an error of the request and not of the job."""

SIMULATED_JUDGES = (f"{SIMULATED}/sim-judge-lenient", f"{SIMULATED}/sim-judge-harsh")
"""Two of different habits, as PersonaGym's paper uses two of different makers."""

_SIMULATOR_KEY = SecretStr("simulated")  # any will do, but like the real providers it wants one

BATCH_SHARE = 0.5
"""OpenAI's and Anthropic's discount on batches, and that of most who followed them."""

_NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
VENDORS: Mapping[str, tuple[ConnectionKind, str]] = {
    "openai": ("openai", "https://api.openai.com/v1"),
    "anthropic": ("anthropic", "https://api.anthropic.com"),
}
"""Providers that a key in the environment connects: wire format, and base URL, where the format's batch endpoints are, too."""


class ConnectionsError(ValueError):
    """The operator's configuration of connections is unusable; the message names the field and the reason."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Limits(_Section):
    """How fast a model may be called.

    Attributes:
        requests_per_minute: Calls a minute, all workers together; ``None`` for no limit.
        tokens_per_minute: Input and output tokens a minute, all workers together; ``None`` for no limit.
        max_in_flight: Calls under way at once, all workers together; ``None`` for no limit.
    """

    requests_per_minute: PositiveFloat | None = None
    tokens_per_minute: PositiveFloat | None = None
    max_in_flight: PositiveInt | None = None


class ConnectionLimits(Limits):
    """A connection's limits, which hold for each of its models by itself.

    Attributes:
        models: Limits of single models; what one leaves out is taken from the connection.
    """

    models: Mapping[str, Limits] = Field(default_factory=dict)

    def of_model(self, model: str) -> Limits:
        """The limits of one model."""
        own = self.models.get(model)
        base = {name: getattr(self, name) for name in Limits.model_fields}
        return Limits.model_construct(**(base | (own.model_dump(exclude_unset=True) if own else {})))


class ModelPrices(_Section):
    """An operator's prices of one model, in US dollars per million tokens.

    Attributes:
        input: Prompt tokens.
        output: Answer tokens.
        cached_input: Prompt tokens from the provider's cache; ``None`` charges them as ``input``.
        batch_share: What a call in a batch costs, as a share of these prices.
    """

    input: _NonNegative
    output: _NonNegative
    cached_input: _NonNegative | None = None
    batch_share: _NonNegative = BATCH_SHARE


@dataclass(frozen=True, slots=True)
class Connection:
    """A provider, with the one key that is ever sent to its host.

    Attributes:
        id: How jobs name it: a model is ``id/model``.
        kind: Wire format.
        base_url: What the format's paths are appended to.
        api_key: Key; ``None`` where the server wants none.
        limits: Rate limits.
        prices: Operator's prices by model.
        models: The models that jobs may use; ``None`` for all.
        simulated: Whether it is the simulator, whose models answer by a known truth.
        batches: Whether it has the batch endpoints of its wire format.
        families: Names by which the model table knows the families of models whose own names say nothing, such as those of
            deployments.
        allow_extra: Fields that jobs may set in ``extra`` beside those that all may; the operator says so.
        stream: Whether calls ask for server-sent events, for a server that answers no other way.
        server: Its server program, which decides how a constrained reply is requested.
        trust_cost: Whether a cost that its replies report is charged even if it is lower than the price.
        guard: Says to which addresses it may lead; ``None`` for all, where the operator configured it.
        tenant: Whose jobs may call it; ``None`` for everybody's, where the operator configured it.
    """

    id: str
    kind: ConnectionKind
    base_url: str
    api_key: SecretStr | None = None
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    prices: Mapping[str, ModelPrices] = field(default_factory=dict)
    models: tuple[str, ...] | None = None
    simulated: bool = False
    batches: bool = False
    families: Mapping[str, str] = field(default_factory=dict)
    allow_extra: tuple[str, ...] = ()
    stream: bool = False
    server: ServerName | None = None
    trust_cost: bool = False
    guard: Guard | None = None
    tenant: str | None = None

    def allows(self, model: str) -> bool:
        """Whether jobs may use a model."""
        return self.models is None or model in self.models


MOST_LEARNED = 1000
"""How many connections of tenants a process keeps in mind; the one that was not used for longest is fetched again."""


@dataclass(frozen=True, slots=True)
class Connections:
    """Connections, by the names that jobs can give them, and others by the names under which jobs keep them.

    Attributes:
        by_id: Those that jobs can name.
        judges: ``connection/model`` of those who judge where a job names nobody.
        allowed: What the operator allows the tenant for whom they were looked up; see :mod:`app.domain.keys.allowed_models`.
    """

    by_id: Mapping[str, Connection]
    judges: tuple[str, ...] = ()
    allowed: tuple[str, ...] | None = None
    _learned: dict[str, Connection] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Connection]:
        return iter(self.by_id.values())

    def get(self, connection: str) -> Connection | None:
        """The connection of an id."""
        return self.by_id.get(connection) or self._learned.get(connection)

    def usable(self, connection: str, tenant: str) -> Connection | None:
        """The connection of an id, if a tenant's jobs may call it; it is kept in mind for longer."""
        if connection in self.by_id:
            return self.by_id[connection]
        found = self._learned.get(connection)
        if found is None or found.tenant != tenant:
            return None
        self.learn(found)
        return found

    def permit(self, connection: str, model: str) -> bool:
        """Whether the operator allows the tenant a model."""
        return is_allowed(self.allowed, connection, model)

    def permitted(self) -> Iterator[tuple[str, Sequence[str] | None]]:
        """The names of the connections of which the tenant may use something, with the models; ``None`` for all."""
        for name, connection in self.by_id.items():
            models = models_of(self.allowed, name, connection.models)
            if models is None or models:
                yield name, models

    def limits(self, connection: str, model: str) -> Limits:
        """The limits of a model; none for a connection that does not exist."""
        found = self.get(connection)
        return found.limits.of_model(model) if found else Limits()

    def learn(self, connection: Connection) -> None:
        """Keeps a connection that jobs call, but cannot name, as the one that was used last."""
        self._learned.pop(connection.id, None)
        self._learned[connection.id] = connection
        if len(self._learned) > MOST_LEARNED:
            del self._learned[next(iter(self._learned))]

    def forget(self, connection: str) -> None:
        """Forgets what was learned of a connection."""
        self._learned.pop(connection, None)


def base_url_of(value: str) -> str:
    """A URL in the form in which paths are appended to it.

    Raises:
        ValueError: If it can't be one.
    """
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an http or https URL")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("must not carry a user name, a password, a query or a fragment")
    return value.rstrip("/")


def _no_inline_key(_value: object) -> object:
    raise ValueError(
        "keys are not written into this file; name the key's environment variable in api_key_env"
    )


def _free_field(name: str) -> str:
    reason = fixed_field(name)
    if reason is not None:
        raise ValueError(f"no job may set {name}: {reason}")
    return name


class _Entry(_Section):
    kind: ConnectionKind | None = None
    base_url: Annotated[str, AfterValidator(base_url_of)] | None = None
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    # Known only to be refused with a reason that helps.
    api_key: Annotated[object, AfterValidator(_no_inline_key)] = Field(default=None, validate_default=False)
    limits: ConnectionLimits = ConnectionLimits()
    prices: Mapping[str, ModelPrices] = Field(default_factory=dict)
    models: tuple[str, ...] | None = None
    batches: bool | None = None
    families: Mapping[str, str] = Field(default_factory=dict)
    allow_extra: tuple[Annotated[str, AfterValidator(_free_field)], ...] = ()
    stream: bool = False
    server: ServerName | None = None
    trust_cost: bool = False


class _File(_Section):
    connections: Mapping[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")], _Entry]
    judges: tuple[Annotated[str, Field(pattern=r"^[^/]+/.+$")], ...] = ()


def load_connections(file_text: str | None, env: Mapping[str, str], simulator_url: str | None) -> Connections:
    """The connections of an operator's file, of the environment's vendor variables, and the simulator's.

    ``OPENAI_API_KEY``/``OPENAI_BASE_URL`` and ``ANTHROPIC_API_KEY``/``ANTHROPIC_BASE_URL`` make the connections
    ``openai`` and ``anthropic``; the file can add limits and prices to them under the same names.

    Args:
        file_text: The file, YAML; ``assay.example.yaml`` explains its form. ``None`` for no file.
        env: Environment variables.
        simulator_url: Root of a simulator, which becomes ``simulated`` and ``simulated-anthropic``.

    Raises:
        ConnectionsError: If the file or a variable is unusable. No message repeats a value, which might be a key.
    """
    file = _parse(file_text) if file_text is not None else _File(connections={})
    entries = dict(file.connections)
    for vendor in VENDORS:
        if vendor not in entries and (
            _variable(env, vendor, "API_KEY") or _variable(env, vendor, "BASE_URL")
        ):
            entries[vendor] = _Entry()
    by_id = {name: _connection(name, entry, env) for name, entry in entries.items()}
    judges = file.judges
    if simulator_url is not None:
        root = simulator_url.rstrip("/")
        by_id[SIMULATED] = _simulated(SIMULATED, "openai", f"{root}/v1")
        by_id[SIMULATED_ANTHROPIC] = _simulated(SIMULATED_ANTHROPIC, "anthropic", root)
        # Only where nobody can mistake them for judges of real models.
        judges = judges or (() if entries else SIMULATED_JUDGES)
    connections = Connections(by_id, judges)
    _check_judges(connections)
    return connections


def _check_judges(connections: Connections) -> None:
    for number, judge in enumerate(connections.judges):
        name, _, model = judge.partition("/")
        connection = connections.get(name)
        if connection is None:
            raise ConnectionsError(f"judges.{number}: unknown connection {name!r}")
        if not connection.allows(model):
            raise ConnectionsError(f"judges.{number}: connection {name!r} does not allow that model")


def _simulated(name: str, kind: ConnectionKind, base_url: str) -> Connection:
    return Connection(
        name, kind, base_url, _SIMULATOR_KEY, models=SIMULATED_MODELS, simulated=True, batches=True
    )


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML in which a key that appears twice in a mapping is an error; PyYAML keeps the last one silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        lines: dict[str, int] = {}
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in lines:
                problem = f"{key.value!r} is already set in line {lines[key.value]}"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            lines[key.value] = key.start_mark.line + 1
        return super().construct_mapping(node, deep)


def _parse(file_text: str) -> _File:
    try:
        content = yaml.load(file_text, _UniqueKeyLoader)  # noqa: S506 - derived from SafeLoader
    except yaml.MarkedYAMLError as error:
        # The library's own message quotes the line, which might hold a key.
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        unreadable = "" if isinstance(error, yaml.constructor.ConstructorError) else "not YAML: "
        problem = f"line {line}: {unreadable}{error.problem}"
    except yaml.YAMLError:
        problem = "not YAML"
    else:
        return _validated(content if content is not None else {"connections": {}})
    raise ConnectionsError(problem)


def _validated(content: object) -> _File:
    try:
        parsed = _File.model_validate(content)
    except ValidationError as error:
        problems = [_problem(found["loc"], message(found)) for found in error.errors(include_input=False)]
    else:
        reserved = sorted({SIMULATED, SIMULATED_ANTHROPIC} & parsed.connections.keys())
        problems = [f"connections.{name}: the name is the simulator's" for name in reserved]
        if not problems:
            return parsed
    raise ConnectionsError("; ".join(problems))


def _problem(location: tuple[int | str, ...], reason: str) -> str:
    place = ".".join(str(part) for part in location if part != "[key]")
    return f"{place or 'the file'}: {reason}"


def _variable(env: Mapping[str, str], vendor: str, what: str) -> str | None:
    return env.get(f"{vendor.upper()}_{what}") or None


def _connection(name: str, entry: _Entry, env: Mapping[str, str]) -> Connection:
    kind, default_url = VENDORS.get(name, (None, None))
    if entry.kind is None and kind is None:
        raise ConnectionsError(f"connections.{name}.kind: is required")
    if kind is not None and entry.kind not in {None, kind}:
        raise ConnectionsError(f"connections.{name}.kind: must be {kind} for this name")
    base_url = entry.base_url or (_environment_url(name, env) or default_url if kind else None)
    if base_url is None:
        raise ConnectionsError(f"connections.{name}.base_url: is required")
    if entry.batches and entry.kind == "completions":
        raise ConnectionsError(f"connections.{name}.batches: the wire format completions has no batches")
    if entry.server and entry.kind == "anthropic":
        raise ConnectionsError(
            f"connections.{name}.server: Anthropic's wire format is the same on every server"
        )
    return Connection(
        id=name,
        kind=entry.kind or kind or "openai",
        base_url=base_url,
        api_key=_key(name, entry, env, keyless=base_url != default_url),
        limits=entry.limits,
        prices=entry.prices,
        models=entry.models,
        batches=base_url == default_url if entry.batches is None else entry.batches,
        families=entry.families,
        allow_extra=entry.allow_extra,
        stream=entry.stream,
        server=entry.server,
        trust_cost=entry.trust_cost,
    )


def _environment_url(vendor: str, env: Mapping[str, str]) -> str | None:
    value = _variable(env, vendor, "BASE_URL")
    if value is None:
        return None
    try:
        return base_url_of(value)
    except ValueError as error:
        problem = f"{vendor.upper()}_BASE_URL: {error}"
    raise ConnectionsError(problem)


def _key(name: str, entry: _Entry, env: Mapping[str, str], *, keyless: bool) -> SecretStr | None:
    """The key of a connection.

    A vendor's variable goes to the host that the environment names, never to one that the file puts in its place.
    """
    if entry.api_key_env is not None:
        value = env.get(entry.api_key_env)
        if not value:
            raise ConnectionsError(
                f"connections.{name}.api_key_env: the environment variable {entry.api_key_env} is not set"
            )
    elif name in VENDORS and entry.base_url is None:
        value = _variable(env, name, "API_KEY")
        if value is None and not keyless:
            raise ConnectionsError(
                f"connections.{name}: the environment variable {name.upper()}_API_KEY is not set"
            )
    else:
        return None
    if value is None:
        return None
    try:
        return key_of(SecretStr(value))
    except ValueError as error:
        problem = f"connections.{name}: {error}"
    raise ConnectionsError(problem)


def key_of(value: SecretStr) -> SecretStr:
    """A key as it is sent, which is from now on kept out of this process's log.

    Raises:
        ValueError: If it can't be sent.
    """
    key = value.get_secret_value().strip()
    if not (key and key.isascii() and key.isprintable()):
        raise ValueError("its key holds characters that no HTTP header can carry")
    traces_of(key)
    return SecretStr(key)
