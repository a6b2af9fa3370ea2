"""The only reader of the environment. Everything deeper is given plain values."""

import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.domain.providers.addresses import is_loopback
from app.domain.providers.reuse import KEPT_DAYS
from app.domain.suggestion import did_you_mean, nearest
from app.domain.validation import message
from app.guard.addresses import parse_networks
from app.guard.targets import Guard
from app.redis_server import RedisServer, redis_server

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

PEPPER_BYTES = 32
"""Fewest that the pepper of API keys has."""
_NEW_PEPPER = f"Make one with `openssl rand -hex {PEPPER_BYTES}`"

_PREFIX = "ASSAY_"
WRITING_SECONDS = 5.0
"""How much longer than a call a worker that stops waits, by itself: so long writing may take."""

_DRIVER = "postgresql+psycopg://"
_LIBPQ_PARAMETERS = [
    "application_name",
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "dbname",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "krbsrvname",
    "load_balance_hosts",
    "max_protocol_version",
    "min_protocol_version",
    "oauth_client_id",
    "oauth_client_secret",
    "oauth_issuer",
    "oauth_scope",
    "options",
    "passfile",
    "password",
    "port",
    "replication",
    "require_auth",
    "requirepeer",
    "scram_client_key",
    "scram_server_key",
    "service",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslkeylogfile",
    "sslmode",
    "sslnegotiation",
    "sslpassword",
    "sslrootcert",
    "sslsni",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
]
"""Source: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS; a test tries each of the driver."""
_UNKNOWN_PARAMETER = "is unknown to PostgreSQL's client library"
_PARAMETER_REMEDIES = {
    "pgbouncer": "remove it and set ASSAY_DATABASE_POOLER=transaction",
    "schema": "remove it and set the role's search_path: ALTER ROLE … SET search_path = …",
    "ssl": "use sslmode=require",
}
"""Parameters of other drivers' URLs that have a counterpart here."""
_REDIS = ("redis://", "rediss://", "unix://")


class StartError(Exception):
    """A process can't start; the message says why and names the variable, but does not repeat what is in it: that may be a secret."""


class MissingSettingError(StartError):
    """A process needs a variable that is not set."""

    def __init__(self, variable: str) -> None:
        super().__init__(f"{variable} is not set; `assay up` sets it for the processes that it starts")


class Settings(BaseSettings):
    """What an operator can set, each by the ``ASSAY_…`` variable of its name unless stated otherwise.

    What stands below each field is its row in docs/reference/settings.md (``make reference``).
    """

    # What is wrong may be a secret: no error repeats a value.
    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        env_ignore_empty=True,  # a line of .env that was left blank
        extra="ignore",
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    database_url: Annotated[str | None, Field(validation_alias="DATABASE_URL", repr=False)] = None
    """PostgreSQL 15 or newer, ``postgresql://…``; tested with 18. ``assay up`` starts its own without it."""
    database_url_file: Annotated[Path | None, Field(validation_alias="DATABASE_URL_FILE")] = None
    """A file that holds it instead."""
    owner_database_url: Annotated[str | None, Field(repr=False)] = None
    """As whom ``assay migrate`` connects, where the services' role owns no table."""
    owner_database_url_file: Path | None = None
    """A file that holds it instead."""
    database_pooler: Literal["none", "session", "transaction"] = "none"
    """What pools connections before Postgres. ``transaction``: PgBouncer in transaction mode; nothing is prepared,
    and no time limits are sent. ``session``: it takes prepared statements, but no time limits."""
    redis_url: Annotated[str | None, Field(validation_alias="REDIS_URL", repr=False)] = None
    """Redis or Valkey, tested with Valkey 9: a numbered database that nothing else uses, with ``maxmemory-policy
    noeviction``. ``rediss://`` is TLS, which is verified. ``assay up`` starts its own without it."""
    redis_url_file: Annotated[Path | None, Field(validation_alias="REDIS_URL_FILE")] = None
    """A file that holds it instead."""
    redis_ca_file: Path | None = None
    """Certificates, in PEM form, of authorities that may sign that of Redis, besides the system's."""
    redis_cert_file: Path | None = None
    """Our certificate, where Redis asks for one (mutual TLS)."""
    redis_key_file: Path | None = None
    """Its private key, if that is not in the same file."""
    config: Path | None = None
    """The operator's file: connections, rate limits, prices. See ``assay.example.yaml``."""
    simulator_url: str | None = None
    """Where a simulated provider listens; the connections ``simulated`` and ``simulated-anthropic`` exist only with
    it."""
    host: str = "127.0.0.1"
    """Address of the API, for ``assay up``. Other servers that run the API elsewhere than on the loopback address set
    it too, as the image does: the API then does not start without a key."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8321
    """Port of the API, for ``assay up``; 0 takes any free one."""
    data_dir: Path = Path(".assay")
    """Where ``assay up`` keeps databases and logs."""
    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """Worker processes, for ``assay up``."""
    hosts: str = ""
    """Host names, separated by commas, under which the service is reached, besides ``localhost`` and numeric
    addresses. Any other is a 421 (DNS rebinding); only ``/healthz`` and ``/readyz`` answer to all."""
    public_url: str | None = None
    """Where people reach the service, ``https://assay.example.org``: links in HTML reports lead there. Without it, they
    lead to the address that the report was asked of."""
    key_pepper: Annotated[SecretStr | None, Field(min_length=PEPPER_BYTES, repr=False)] = None
    """What API keys are hashed with. Whoever changes it ends all keys. ``assay up`` makes one in its data
    directory."""
    key_pepper_file: Path | None = None
    """A file that holds it instead."""
    log_level: str = "INFO"
    """A level such as ``INFO`` or ``WARNING``; ``DEBUG`` also logs each request."""
    log_format: Literal["auto", "json", "text"] = "auto"
    """``auto``: text on a terminal, JSON elsewhere."""
    max_body_bytes: Annotated[int, Field(ge=1024)] = 8 * 1024 * 1024
    """Longest request body; a longer one is a 413. An API process holds sixteen of them at most."""
    upload_seconds: Annotated[float, Field(gt=0)] = 60.0
    """How soon a request's body has to be there; a slower one is a 408."""
    max_upload_bytes: Annotated[int, Field(ge=1024)] = 2 * 1024**3
    """Largest file that can be uploaded in parts."""
    tenant_upload_bytes: Annotated[int, Field(ge=1024)] = 8 * 1024**3
    """Bytes of all uploads that a tenant has at a time; one more is a 429."""
    upload_days: Annotated[int, Field(ge=1, le=3650)] = 7
    """So many days after its last part an upload is deleted. Jobs that used it keep their texts."""
    max_streams: Annotated[int, Field(ge=1)] = 100
    """Event streams and imports that one tenant may have open at an API process; one more is a 429."""
    answer_bytes: Annotated[int, Field(ge=32 * 1024**2)] = 96 * 1024**2
    """Bytes of all answers that an API process sends at a time; a download counts as 12 MiB. A tenant may have half of
    them, all of its share links together a quarter, one share link an eighth; beyond that is a 429."""
    max_planned_calls: Annotated[int, Field(ge=1)] = 5_000_000
    """A job planned beyond this many calls is a 422."""
    confirm_calls_above: Annotated[int, Field(ge=0)] = 250_000
    """A job planned beyond this many calls is a 422 unless it names them as ``confirm_calls``. A job of simulated
    models alone need not."""
    max_unfinished_jobs: Annotated[int, Field(ge=1)] = 10_000
    """Unfinished jobs that one tenant may have. A further job is refused (429)."""
    tenant_changes_per_second: Annotated[float, Field(gt=0)] = 5.0
    """Requests other than reads (submissions, cancellations, estimates, parts of uploads) that one tenant may make per second
    at an API process, on average, while other tenants are active. Ten seconds' worth may arrive at once; further
    ones are delayed by up to ten seconds, then refused with 429. Managing keys and signing out are exempt."""
    shard_window: Annotated[int, Field(ge=1)] = 16
    """Shards of one job that are announced at a time, so that a small job does not wait behind a big one."""
    slots: Annotated[int, Field(ge=1, le=256)] = 24
    """Shards that one worker process works on at a time; more than the window, so that one job can't fill it."""
    worker_nice: Annotated[int, Field(ge=0, le=19)] = 0
    """Niceness of worker processes. ``assay up`` starts them with 5 more, so that polls are answered while workers
    fill the machine."""
    max_in_flight: Annotated[int, Field(ge=1)] = 512
    """Calls in flight from one worker process to one model, which bounds its memory. ``max_in_flight`` in the
    operator's file limits all processes together."""
    max_unwritten: Annotated[int, Field(ge=1)] = 512
    """Ended calls of one worker process that are not written yet, at which it starts no further one. If the process
    is killed, those and the ones in flight are made again, and paid twice: at most this many, and
    ``ASSAY_MAX_IN_FLIGHT`` for each model (or its ``max_in_flight``, if lower); four more where several tenants call
    it. Plans of jobs with a budget name the sum, so the API needs the same values."""
    lease_seconds: Annotated[float, Field(ge=1)] = 20.0
    """How long a silent worker keeps its shards."""
    sweep_seconds: Annotated[float, Field(gt=0)] = 2.0
    """How often the sweeper looks for work that nobody was told of."""
    keep_days: Annotated[int | None, Field(ge=1)] = None
    """How many days after its end a job is removed with all that belongs to it; never without it. The sweeper does
    it."""
    webhook_hosts: str = ""
    """Hosts, ``host`` or ``host:port`` separated by commas, to which webhooks may send without TLS and at private
    addresses. API and sweeper need the same ones."""
    allowed_networks: str = ""
    """Networks such as ``10.0.0.0/8``, and addresses, separated by commas, that users' URLs may reach, also without
    TLS, though they are private."""
    encryption_keys: Annotated[SecretStr | None, Field(repr=False)] = None
    """What the keys of connections made over the API, and webhooks' secrets, are encrypted with: 32 bytes in
    hexadecimal (``openssl rand -hex 32``). Of several, separated by commas, the first encrypts and all can read.
    ``assay up`` makes one in its data directory."""
    encryption_keys_file: Path | None = None
    """A file that holds them instead."""
    transport: Literal["lean", "sdk"] = "lean"
    """How calls are sent: ``lean`` sends the official SDKs' requests at a fraction of their CPU time, ``sdk`` sends
    them with the SDKs themselves. Behind an HTTP proxy it is always ``sdk``."""
    call_deadline_seconds: Annotated[float, Field(gt=0)] = 120.0
    """Wall-clock limit of one provider call."""
    shutdown_seconds: Annotated[float, Field(ge=0)] = 120.0 + WRITING_SECONDS
    """How long a worker that is told to stop waits for the calls on the wire; then it leaves them, perhaps paid, to
    be made again. Unless it is set, 5 more than ``ASSAY_CALL_DEADLINE_SECONDS``. ``assay up`` sets 6."""
    heartbeat_file: Path | None = None
    """A file, in memory, that the event loop of a worker or of the sweeper touches every 5 seconds: a probe that
    finds it older than 30 restarts the process. The image sets ``/tmp/heartbeat``."""
    reply_days: Annotated[int, Field(ge=1, le=3650)] = KEPT_DAYS
    """For how many days replies are kept to be reused, by jobs that ask for it."""
    batch_poll_seconds: Annotated[float, Field(gt=0)] = 30.0
    """How often a provider is asked whether a batch has ended."""
    batch_calls: Annotated[int, Field(ge=1, le=50_000)] = 10_000
    """Most calls of one batch. A worker has a batch for OpenAI in a temporary file, one for Anthropic in memory."""
    outage_seconds: Annotated[float, Field(gt=0)] = 600.0
    """How long jobs wait for a provider whose server can't be reached before they pause as ``provider_unreachable``.
    They resume by themselves."""
    traces_exporter: Annotated[
        Literal["otlp", "none"] | None, Field(validation_alias="OTEL_TRACES_EXPORTER")
    ] = None
    """``otlp`` sends traces, ``none`` sends none. Without it they are sent if one of the next two is set."""
    otlp_endpoint: Annotated[str | None, Field(validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT")] = None
    """The collector, ``http://collector:4318`` for example; ``/v1/traces`` is appended."""
    otlp_traces_endpoint: Annotated[
        str | None, Field(validation_alias="OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    ] = None
    """The same in full, with its path."""
    otlp_protocol: Annotated[
        Literal["http/protobuf"], Field(validation_alias="OTEL_EXPORTER_OTLP_PROTOCOL")
    ] = "http/protobuf"
    """The only protocol there is."""
    otel_sdk_disabled: Annotated[bool, Field(validation_alias="OTEL_SDK_DISABLED")] = False
    """Turns traces off whatever else is set."""
    call_attempts: Annotated[int, Field(ge=1)] = 12
    """Attempts at one call before its item counts as failed; waits for a rate limit don't count, nor do attempts
    while the provider can't be reached."""

    @model_validator(mode="after")
    def _await_whole_calls(self) -> Self:
        if "shutdown_seconds" not in self.model_fields_set:
            self.shutdown_seconds = self.call_deadline_seconds + WRITING_SECONDS
        return self

    @field_validator("database_url", "owner_database_url")
    @classmethod
    def _with_driver(cls, url: str | None) -> str | None:
        """Names the driver that we ship, so that a plain ``postgresql://`` URL works."""
        if url is None:
            return None
        for plain in ("postgresql://", "postgres://"):
            if url.startswith(plain):
                url = _DRIVER + url.removeprefix(plain)
        if not url.startswith(_DRIVER):
            raise ValueError(
                "must be a URL of PostgreSQL, such as postgresql://user:password@host:5432/database"
            )
        _check_form(url)
        _check_parameters(url)
        return url

    @field_validator("redis_url")
    @classmethod
    def _of_redis(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(_REDIS):
            raise ValueError(f"must be a URL that begins with {', '.join(_REDIS)}")
        if url is not None and not url.startswith("unix://"):
            _check_form(url)
            if re.fullmatch(r"/?[0-9]*", urlsplit(url).path) is None:
                raise ValueError("its path must be the number of a database, such as redis://host:6379/0")
        return url

    @field_validator("public_url")
    @classmethod
    def _of_the_web(cls, url: str | None) -> str | None:
        if url is None:
            return None
        if (
            not url.startswith(("https://", "http://"))
            or not url.isprintable()
            or {"?", "#", "@", " "} & set(url)
        ):
            raise ValueError(
                "must be a URL that begins with https:// or http://, without parameters or password"
            )
        if not urlsplit(url).hostname:
            raise ValueError("must be a URL that begins with https:// or http:// and a host")
        return url.rstrip("/")

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, level: str) -> str:
        if level.upper() not in logging.getLevelNamesMapping():
            raise ValueError("must be a level, such as DEBUG, INFO, WARNING or ERROR")
        return level

    @field_validator("allowed_networks")
    @classmethod
    def _of_networks(cls, value: str) -> str:
        parse_networks(value)
        return value

    def read_encryption_keys(self) -> str:
        """The keys that connections' keys are encrypted with; empty if there are none.

        Raises:
            StartError: If their file can't be read.
        """
        if self.encryption_keys is not None:
            return self.encryption_keys.get_secret_value()
        file = self.encryption_keys_file
        return "" if file is None else _secret_in("ASSAY_ENCRYPTION_KEYS_FILE", file)

    def read_config(self) -> str | None:
        """The operator's file; ``None`` if there is none.

        Raises:
            StartError: If it can't be read.
        """
        return None if self.config is None else _text("ASSAY_CONFIG", self.config)

    @property
    def connection_guard(self) -> Guard:
        """Says where connections that somebody with an API key makes may lead."""
        return Guard(parse_networks(self.allowed_networks))

    @property
    def webhook_guard(self) -> Guard:
        """Says where messages of webhooks that somebody with an API key makes may go."""
        return replace(self.connection_guard, hosts=self.allowed_webhook_hosts)

    def for_all(self, guard: Guard) -> Guard:
        """A guard for those without a key too: where the service listens on this machine only, they may name servers of it."""
        return guard.with_loopback() if is_loopback(self.host) else guard

    @property
    def allowed_webhook_hosts(self) -> frozenset[str]:
        """The hosts of ``webhook_hosts``."""
        return frozenset(host.strip().lower() for host in self.webhook_hosts.split(",") if host.strip())

    @property
    def known_hosts(self) -> frozenset[str]:
        """The names of ``hosts``, and that of the address to listen on."""
        named = {host.strip().lower().rstrip(".") for host in self.hosts.split(",") if host.strip()}
        return frozenset(named | {self.host.lower()})

    @property
    def traces(self) -> bool:
        """Whether traces are made and sent."""
        if self.otel_sdk_disabled or self.traces_exporter is not None:
            return not self.otel_sdk_disabled and self.traces_exporter == "otlp"
        return self.otlp_endpoint is not None or self.otlp_traces_endpoint is not None

    def read_key_pepper(self) -> bytes | None:
        """What API keys are hashed with; ``None`` if it is not set.

        Raises:
            StartError: If its file can't be read, or holds too little.
        """
        if self.key_pepper is not None:
            return self.key_pepper.get_secret_value().encode()
        if self.key_pepper_file is None:
            return None
        variable = "ASSAY_KEY_PEPPER_FILE"
        pepper = _secret_in(variable, self.key_pepper_file).encode(errors="surrogateescape")
        if len(pepper) < PEPPER_BYTES:
            raise StartError(
                f"{variable}: {self.key_pepper_file} holds {len(pepper)} bytes but {PEPPER_BYTES} are needed. {_NEW_PEPPER}"
            )
        return pepper

    def require_database_url(self) -> str:
        """The database's URL.

        Raises:
            MissingSettingError: If it is not set.
        """
        if self.database_url is None:
            raise MissingSettingError("DATABASE_URL")
        return self.database_url

    def require_redis(self) -> RedisServer:
        """The Redis server.

        Raises:
            StartError: If it is not set, or the files of its TLS can't be used.
        """
        if self.redis_url is None:
            raise MissingSettingError("REDIS_URL")
        try:
            return redis_server(
                self.redis_url, ca=self.redis_ca_file, cert=self.redis_cert_file, key=self.redis_key_file
            )
        except ValueError as error:
            raise StartError(str(error)) from error


def _check_form(url: str) -> None:
    """Refuses a URL that programs would take apart in different places, and repeat a piece of its password as a host or a port.

    Raises:
        ValueError: It is one; the message repeats nothing of it.
    """
    if not url.isprintable():
        raise ValueError("is no URL: it has a line break or another character that none can have")
    before_parameters = url.partition("://")[2].partition("?")[0]
    try:
        parts = urlsplit(url)
        whole = "@" not in before_parameters or before_parameters.count("@") == parts.netloc.count("@") == 1
        port = parts.port
    except ValueError:  # whose message repeats what it took for the port
        whole, port = False, None
    if not whole or (port is not None and not parts.hostname):
        raise ValueError(
            "is no URL of the form scheme://user:password@host:port/database;"
            " the characters / ? # @ : % in a password are written as %2F %3F %23 %40 %3A %25"
        )


def _check_parameters(url: str) -> None:
    """Refuse parameters of other drivers, with which each connection would fail.

    Raises:
        ValueError: One of them. The message repeats no part of a password with an unescaped question mark.
    """
    query = urlsplit(url).query
    for name in dict(parse_qsl(query, keep_blank_values=True)):
        if name not in _LIBPQ_PARAMETERS:
            if "@" in query or not name.isidentifier():
                raise ValueError(f"a parameter after the question mark {_UNKNOWN_PARAMETER}; remove it")
            remedy = _PARAMETER_REMEDIES.get(name) or f"remove it{did_you_mean(name, _LIBPQ_PARAMETERS)}"
            raise ValueError(f"the parameter {name!r} {_UNKNOWN_PARAMETER}; {remedy}")


def _content(variable: str, file: Path) -> bytes:
    """What is in the file that a variable names.

    Raises:
        StartError: It can't be read.
    """
    try:
        return file.read_bytes()
    except OSError as error:
        why = error.strerror or error
        raise StartError(f"{variable}: {file}: {why}. Correct the path, or unset the variable") from error


def _text(variable: str, file: Path) -> str:
    """The text in the file that a variable names.

    Raises:
        StartError: It can't be read, or is none.
    """
    try:
        return _content(variable, file).decode()
    except UnicodeDecodeError:
        raise StartError(f"{variable}: {file} is not UTF-8") from None


def _secret_in(variable: str, file: Path) -> str:
    """The secret in the file that a variable names, without the line break at its end.

    Bytes that are no UTF-8 are escaped: a pepper may be of any; everything else says itself what it can't take.

    Raises:
        StartError: It can't be read, or is empty.
    """
    secret = _content(variable, file).strip().decode(errors="surrogateescape")
    if not secret:
        raise StartError(f"{variable}: {file} is empty. Write the secret into it, or unset the variable")
    return secret


def _secret(variable: str) -> str | None:
    """What a variable holds, or the file that the variable of its name with ``_FILE`` names; ``None`` where neither is set.

    Raises:
        StartError: Both are set, or the file can't be used.
    """
    _refuse_both(variable)
    file = os.environ.get(f"{variable}_FILE")
    return _secret_in(f"{variable}_FILE", Path(file)) if file else os.environ.get(variable) or None


def _refuse_both(variable: str) -> None:
    if os.environ.get(variable) and os.environ.get(f"{variable}_FILE"):
        raise StartError(f"{variable} and {variable}_FILE are both set: set one of them")


class _Environment(Mapping[str, str]):
    """The environment, in which each variable may also be given as a file; see :func:`_secret`."""

    def __getitem__(self, variable: str) -> str:
        value = _secret(variable)
        if value is None:
            raise KeyError(variable)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name, value in os.environ.items() if value)

    def __len__(self) -> int:
        return sum(1 for _ in self)


_OF_OTHERS = frozenset({"ASSAY_URL", "ASSAY_API_KEY", "ASSAY_CONFIRM_USD", "ASSAY_VERSION"})
"""Variables of the client, and of docker-compose.yml."""
_OF_KUBERNETES = re.compile(r"ASSAY_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_[A-Z]+(_\w+)?)?)")
"""What Kubernetes sets in every container beside a Service whose name begins with ``assay``."""


def variables() -> dict[str, str]:
    """The variable of each setting."""
    return {
        name: str(field.validation_alias or f"{_PREFIX}{name.upper()}")
        for name, field in Settings.model_fields.items()
    }


def load_settings(**given: Any) -> Settings:
    """The settings, from the environment unless they are given.

    Raises:
        StartError: Some are wrong, or unknown; the message names them.
    """
    for name, variable in variables().items():
        if not Settings.model_fields[name].repr:
            _refuse_both(variable)
    urls = {name: _secret(variables()[name]) for name in ("database_url", "owner_database_url", "redis_url")}
    try:
        settings = Settings(**urls | given)
    except ValidationError as error:
        wrong = [_wrong(each) for each in error.errors(include_input=False)]
    else:
        _refuse_unknown(settings)
        return settings
    raise StartError("these settings are wrong:\n  " + "\n  ".join(wrong))


def _refuse_unknown(settings: Settings) -> None:
    """Refuses variables that look like settings and are none: what they were to do would not happen.

    The operator's file may name any variable as that of a key.

    Raises:
        StartError: There are some.
    """
    known = {*variables().values(), *_OF_OTHERS}
    unknown = [
        name
        for name in sorted(os.environ)
        if name.startswith(_PREFIX) and name not in known and not _OF_KUBERNETES.fullmatch(name)
    ]
    config = (settings.read_config() or "") if unknown else ""
    refused = [_unknown(name, known) for name in unknown if name.removesuffix("_FILE") not in config]
    if refused:
        raise StartError("\n  ".join(["these settings are unknown:", *refused]))


def _unknown(name: str, known: set[str]) -> str:
    names = {each.removeprefix(_PREFIX): each for each in known}
    close = nearest(name[len(_PREFIX) :], names)
    meant = None if close is None else names[close]
    return f"{name} is no setting" + (f"; did you mean {meant}?" if meant else "")


def _wrong(error: "ErrorDetails") -> str:
    name = str(error["loc"][0])
    variable = variables().get(name, name)
    if name == "key_pepper" and error["type"] == "too_short":
        return f"{variable}: has {error['ctx']['actual_length']} characters but {PEPPER_BYTES} are needed. {_NEW_PEPPER}"
    return f"{variable}: {message(error)}"


def environment() -> Mapping[str, str]:
    """The process environment, for the connections' key variables that the operator's file names; each may be given as a file."""
    return _Environment()


def cache_folders() -> dict[str, str]:
    """Return the variables that say where matplotlib keeps its list of fonts, without which it would look for fonts at each start."""
    names = ("HOME", "MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
    return {name: os.environ[name] for name in names if name in os.environ}
