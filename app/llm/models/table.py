"""What is known of models by their names: which parameters they take, and when they end. The data are in ``table.yaml``."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from functools import cache, lru_cache
from importlib.resources import files
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from app.domain.judging.constrained import with_constraint
from app.domain.providers.extra import EXTRA_FIELDS
from app.domain.providers.model import ConnectionKind, ConstrainedForm, Model, ServerName, Takes
from app.domain.providers.parameters import sent_parameters
from app.llm.connections.connections import Connection

FILE = "table.yaml"

_DIGEST_CHARACTERS = 12
_MAX_TOKENS = "max_tokens"
_CLOUD = re.compile(r"(?:[a-z0-9-]+\.)*anthropic\.")
"""How Amazon Bedrock begins the names of Claude models: region and vendor."""

Parameter = Annotated[str, Field(pattern=r"^(temperature|top_p|max_tokens|seed|stop)$")]
Certainty = Literal["vendor", "secondary", "inferred"]


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is no pattern: {error}") from error
    return text


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Entry):
    """Where something is known from.

    Attributes:
        url: A public document.
        checked: When it was last looked at.
        certainty: Whether the vendor itself says so.
        says: What it says.
    """

    url: Annotated[str, Field(pattern=r"^https://")]
    checked: date
    certainty: Certainty
    says: str


class _Rule(_Entry):
    refuses: tuple[Parameter, ...] = ()
    refuses_reasoning: tuple[Parameter, ...] = ()
    default_effort: str | None = None
    one_of: tuple[Parameter, ...] = ()
    ignores: tuple[Parameter, ...] = ()
    at_most: Mapping[Parameter, float] = Field(default_factory=dict)
    names: Mapping[Parameter, str] = Field(default_factory=dict)
    needs: Mapping[Parameter, int] = Field(default_factory=dict)
    replies: Mapping[ConstrainedForm, Mapping[str, Any] | None] = Field(default_factory=dict)
    sources: tuple[str, ...] = ()


class _Family(_Rule):
    id: str
    pattern: Annotated[str, AfterValidator(_pattern)]
    sources: Annotated[tuple[str, ...], Field(min_length=1)]


class End(_Entry):
    """When models end at one host.

    Attributes:
        host: Where they are called.
        models: Their exact names there.
        ends: The day from which on they are not answered; ``None`` where none is announced.
        not_before: The day before which they do not end, where that is all that is known.
        sources: Where that is known from.
        certainty: Whether the vendor says so; of the sources unless it says less.
    """

    host: str
    models: Annotated[tuple[str, ...], Field(min_length=1)]
    ends: date | None = None
    not_before: date | None = None
    sources: Annotated[tuple[str, ...], Field(min_length=1)]
    certainty: Certainty | None = None

    @model_validator(mode="after")
    def _one_date(self) -> Self:
        if (self.ends is None) == (self.not_before is None):
            raise ValueError("give either ends or not_before")
        return self


class Table(_Entry):
    """The file; its own comments say what its fields mean."""

    version: str
    sources: Mapping[str, Source]
    formats: Mapping[ConnectionKind, _Rule]
    hosts: Mapping[str, _Rule]
    servers: Mapping[ServerName, _Rule]
    families: tuple[_Family, ...]
    ends: tuple[End, ...]

    @model_validator(mode="after")
    def _sources_exist(self) -> Self:
        rules = (
            *self.formats.values(),
            *self.hosts.values(),
            *self.servers.values(),
            *self.families,
        )
        named = (*(rule.sources for rule in rules), *(end.sources for end in self.ends))
        unknown = {source for sources in named for source in sources} - self.sources.keys()
        if unknown:
            raise ValueError(f"unknown sources: {', '.join(sorted(unknown))}")
        return self


class ModelEnd(NamedTuple):
    """When a model is retired.

    Attributes:
        day: The day from which on it is not answered.
        source: The document that says so.
        certainty: Whether the vendor says so.
    """

    day: date
    source: str
    certainty: Certainty

    def told(self, today: date) -> str:
        """A sentence without its subject, for people."""
        what = "ended" if self.day <= today else "will end"
        doubt = "" if self.certainty == "vendor" else f", {self.certainty}"
        then = (
            "calls to it will fail"
            if self.day <= today
            else "take another one for work that is to be repeated"
        )
        return f"{what} on {self.day.isoformat()} ({self.source}{doubt}): {then}."


@cache
def load_table() -> Table:
    """The table that comes with the package, read once per process."""
    return Table.model_validate(
        yaml.safe_load(files("app.llm.models").joinpath(FILE).read_text(encoding="utf-8"))
    )


@cache
def table_version() -> str:
    """Version and content of the table: ``<version>/<the beginning of its SHA-256>``; comments do not count."""
    table = load_table()
    content = json.dumps(table.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    return f"{table.version}/{hashlib.sha256(content.encode()).hexdigest()[:_DIGEST_CHARACTERS]}"


def takes_at(connection: Connection, name: str, family: str | None = None) -> Takes:
    """Which parameters a connection's model takes.

    Args:
        connection: Where it is called.
        name: Its name there.
        family: A name by which its family is known, or the family's id, where its own name says nothing, such as that of
            a deployment. Without it the operator's word counts, if there is one.
    """
    host = urlsplit(connection.base_url).hostname
    takes = known = _takes(connection.kind, connection.families.get(name, name), host, connection.server)
    if family is not None:
        takes = _takes(connection.kind, family, host, connection.server)
    bounds = takes.names.get(_MAX_TOKENS) == known.names.get(_MAX_TOKENS)
    if bounds and not connection.allow_extra:
        return takes
    return replace(takes, allowed_extra=connection.allow_extra, bounds=bounds)


def takes_of(kind: ConnectionKind, model: Model) -> Takes:
    """Which parameters a model of a job takes: as its job keeps it, else as the table has it now."""
    return model.takes if model.takes is not None else _takes(kind, model.name, None)


def with_parameters(kind: ConnectionKind, model: Model, asked: Mapping[str, object]) -> dict[str, object]:
    """The body of a request: what is asked, what is sent of the model's parameters, and what constrains the reply."""
    takes = takes_of(kind, model)
    sent = sent_parameters(model.parameters, takes)
    return with_constraint({**sent.extra, **asked, **sent.named(takes)}, model)


def ways_to_constrain(connection: Connection, form: ConstrainedForm) -> dict[ServerName | None, Takes]:
    """Return how a form of replies may be requested, by the connection's ``server``: one way each, the configured first."""
    host = urlsplit(connection.base_url).hostname
    known = connection.server or connection.kind == "anthropic" or host in load_table().hosts
    servers = [connection.server, *(() if known else load_table().servers)]
    ways: dict[ServerName | None, Takes] = {}
    for server in servers:
        takes = _takes(connection.kind, "", host, server)
        if form in takes.replies and takes.replies[form] not in [way.replies[form] for way in ways.values()]:
            ways[server] = takes
    return ways


def end_of(connection: Connection, name: str) -> ModelEnd | None:
    """When a connection's model ends; ``None`` where nothing is known, or the connection leads to another host."""
    host = urlsplit(connection.base_url).hostname
    base = _fine_tuned_from(name)
    for found in load_table().ends:
        if found.ends is not None and found.host == host and base in found.models:
            sources = [load_table().sources[source] for source in found.sources]
            return ModelEnd(found.ends, sources[0].url, found.certainty or sources[0].certainty)
    return None


def _fine_tuned_from(name: str) -> str:
    return name.split(":")[1] if name.startswith("ft:") else name


@lru_cache(maxsize=10_000)
def _takes(kind: ConnectionKind, name: str, host: str | None, server: ServerName | None = None) -> Takes:
    table = load_table()
    family = _family(table, name)
    takes = Takes(
        family=family.id if family is not None else None,
        table=table_version(),
        format=kind,
        extra_fields=EXTRA_FIELDS.names[-1],
    )
    for rule in _rules(table, kind, host, server, family):
        takes = replace(
            takes,
            refuses=(*takes.refuses, *rule.refuses),
            refuses_reasoning=(*takes.refuses_reasoning, *rule.refuses_reasoning),
            default_effort=rule.default_effort or takes.default_effort,
            one_of=(*takes.one_of, *rule.one_of),
            ignores=(*takes.ignores, *rule.ignores),
            at_most={**takes.at_most, **rule.at_most},
            names={**takes.names, **rule.names},
            needs={**takes.needs, **rule.needs},
            replies={
                form: fields
                for form, fields in {**takes.replies, **rule.replies}.items()
                if fields is not None
            },
        )
    return takes


def _rules(
    table: Table,
    kind: ConnectionKind,
    host: str | None,
    server: ServerName | None,
    family: _Family | None,
) -> Iterator[_Rule]:
    if family is not None:
        # A family's names are those of the wire format in which its vendor publishes it.
        yield family if kind != "anthropic" else family.model_copy(update={"names": {}})
    yield table.formats[kind]
    if host is not None and host in table.hosts:
        yield table.hosts[host]
    if server is not None:
        yield table.servers[server]


def _family(table: Table, name: str) -> _Family | None:
    plain = plain_name(name)
    return next(
        (family for family in table.families if family.id == plain or re.fullmatch(family.pattern, plain)),
        None,
    )


def plain_name(name: str) -> str:
    """A model's name without fine-tuning, publisher, cloud, and what follows a colon or an at sign."""
    plain = name.rpartition("/")[2].lower().removeprefix("ft:")
    plain = re.split(r"[:@]", plain, maxsplit=1)[0]
    return _CLOUD.sub("", plain, count=1)
