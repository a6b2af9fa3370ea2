"""`assay init`: writes an operator's file and a job file that work together, and checks them."""

import json
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from app.terminal.findings import Finding
from persona_assay.terminal.outcome import CommandError, say, told_errors

if TYPE_CHECKING:
    from app.llm.connections.connections import Connections

OPERATOR_FILE, JOB_FILE = Path("assay.yaml"), Path("job.yaml")
MODELS_SECONDS = 10.0
NO_KEY = "not set yet"
"""Stands for the key where only the job is checked."""
TASKS = ("questionnaire", "essay", "social_media_post")

USUAL_MODELS = {"openai": "gpt-6-luna", "anthropic": "claude-haiku-4-5"}
EXTRA = {"gpt-6-luna": {"reasoning_effort": "none"}}
"""What a model needs to judge at temperature 0."""

MAX_TOKENS = 1024
"""Limit on a server of one's own; an essay, the longest text, takes about 420 tokens."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server that the files are for.

    Attributes:
        connection: Its name in jobs.
        url: Its base URL; ``None`` for the vendor's own.
        key_variable: The environment variable that holds its key; ``None`` where it wants none.
    """

    connection: str
    url: str | None
    key_variable: str | None


Try = Callable[["Connections"], Iterator[Finding]]


def command(try_connections: Try, environment: Callable[[], Mapping[str, str]]) -> click.Command:
    """The command.

    Args:
        try_connections: Tries connections, at no cost.
        environment: The environment, which holds keys.
    """

    @click.command()
    @click.option("--openai", is_flag=True, help="Use OpenAI; its key is in OPENAI_API_KEY.")
    @click.option("--anthropic", is_flag=True, help="Use Anthropic; its key is in ANTHROPIC_API_KEY.")
    @click.option(
        "--vllm",
        metavar="URL",
        help="Use a server that speaks OpenAI's format, such as http://127.0.0.1:8000/v1.",
    )
    @click.option("--key-env", metavar="NAME", help="The environment variable that holds that server's key.")
    @click.option("--model", help="The model's name on that server. [a small one, or the server's first]")
    @click.option("--judge", help="The judge's name on that server. [the model itself]")
    @click.option("--persona", help="The persona, such as 'a blunt critic'. [the Big Five set]")
    @click.option(
        "--trait",
        "traits",
        metavar="DIMENSION=LEVEL",
        multiple=True,
        help="A trait that the persona should show, such as A=low; repeatable. Dimensions: O, C, E, A and N"
        " (emotional stability: N=low is neurotic).",
    )
    @click.option("--force", is_flag=True, help="Replace existing files.")
    def init(
        vllm: str | None,
        key_env: str | None,
        model: str | None,
        judge: str | None,
        persona: str | None,
        traits: tuple[str, ...],
        *,
        openai: bool,
        anthropic: bool,
        force: bool,
    ) -> None:
        """Write an operator's file and a job file for this directory, and check them.

        Writes assay.yaml and job.yaml. `assay up` reads the first, `assay submit job.yaml` the second. On a terminal, asks
        for the server and the persona if no flag specifies them.
        """
        with told_errors():
            server = _server(vllm, key_env, openai=openai, anthropic=anthropic)
            for path in (OPERATOR_FILE, JOB_FILE):
                if path.exists() and not force:
                    raise CommandError(f"{path} already exists; use --force to replace it")
            variables = environment()
            name = model or _usual_model(server, variables)
            models = (name, judge or name)
            operator, job = (
                _operator_file(server, models),
                _job_file(server, models, _persona(persona, traits)),
            )
            # Read as they are asked for: one variable of others that can't be read is no matter of ours.
            with_key = ChainMap({server.key_variable or "": NO_KEY}, cast("dict[str, str]", variables))
            cells = _cells(operator, job, with_key)
            OPERATOR_FILE.write_text(operator, encoding="utf-8")
            JOB_FILE.write_text(job, encoding="utf-8")
            say(f"Wrote {OPERATOR_FILE} (connection {server.connection}) and {JOB_FILE}")
            say(f"  ✓ {JOB_FILE}: valid, {cells:,} cells")
            for finding in _connection_findings(operator, variables, try_connections):
                say(f"  {finding.line}")
            say("Next, each in a terminal of its own:")
            say("  assay up")
            say(f"  assay submit {JOB_FILE} --report report.html")

    return init


def _server(vllm: str | None, key_env: str | None, *, openai: bool, anthropic: bool) -> Server:
    """The chosen server; asks for it where none was chosen and somebody is there.

    Raises:
        CommandError: Several were chosen, or none and nobody is there.
    """
    chosen = [name for name, is_chosen in (("openai", openai), ("anthropic", anthropic)) if is_chosen]
    if len(chosen) + (vllm is not None) > 1:
        raise CommandError("choose one of --openai, --anthropic and --vllm; more connections: assay.yaml")
    if not chosen and vllm is None:
        if not sys.stdin.isatty():
            raise CommandError("choose a server: --openai, --anthropic or --vllm URL")
        answer = click.prompt("Server", type=click.Choice([*USUAL_MODELS, "vllm"]), err=True)
        if answer == "vllm":
            vllm = click.prompt("Base URL", default="http://127.0.0.1:8000/v1", err=True)
        else:
            chosen = [answer]
    if vllm is not None:
        return Server("vllm", vllm.rstrip("/"), key_env)
    return Server(chosen[0], None, f"{chosen[0].upper()}_API_KEY")


def _usual_model(server: Server, environment: Mapping[str, str]) -> str:
    """The model to begin with: a small one of a vendor's, else the first that the server lists.

    Raises:
        CommandError: The server can't be asked, or lists none.
    """
    if server.url is None:
        return USUAL_MODELS[server.connection]
    import httpx2  # noqa: PLC0415

    url = f"{server.url}/models"
    headers = _authorization(server.key_variable, environment)
    try:
        listed = httpx2.get(url, headers=headers, timeout=MODELS_SECONDS)
        if listed.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise CommandError(
                f"{url} requires a key: put it in an environment variable and name that with --key-env"
            )
        return str(listed.raise_for_status().json()["data"][0]["id"])
    except httpx2.HTTPStatusError as error:
        status = error.response.status_code
        remedy = (
            "the server may still load its model: try again, or name the model with --model"
            if status == HTTPStatus.SERVICE_UNAVAILABLE
            else "name a model with --model"
        )
        raise CommandError(f"{url} answers {status}; {remedy}") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        reason = str(error) or "no answer"
        raise CommandError(f"{url} lists no models ({reason}); name one with --model") from error
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise CommandError(f"{url} lists no models (the answer has none); name one with --model") from error


def _authorization(key_variable: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """The header with a server's key, if it has one.

    Raises:
        CommandError: No header can carry the key, which is not told.
    """
    from pydantic import SecretStr  # noqa: PLC0415

    from app.llm.connections.connections import key_of  # noqa: PLC0415

    value = environment.get(key_variable or "", "").strip()
    try:
        return {"Authorization": f"Bearer {key_of(SecretStr(value)).get_secret_value()}"} if value else {}
    except ValueError as error:
        raise CommandError(f"{key_variable}: {error}") from error


def _persona(description: str | None, traits: tuple[str, ...]) -> Mapping[str, Any] | None:
    """A persona of one's own; ``None`` for the built-in set.

    Raises:
        CommandError: Its traits are none.
    """
    if description is None and not traits and sys.stdin.isatty():
        description = click.prompt(
            "Persona, such as “a blunt critic” (empty: the Big Five set)", default="", err=True
        )
        if description:
            traits = tuple(
                click.prompt("Traits, such as A=low N=low (disagreeable, neurotic)", err=True)
                .replace(",", " ")
                .split()
            )
    if not description:
        if traits:
            raise CommandError("--trait needs --persona")
        return None
    if not traits:
        raise CommandError(
            "the persona needs at least one trait to measure: --trait DIMENSION=LEVEL, such as A=low"
        )
    levels = {}
    for trait in traits:
        dimension, equals, level = trait.partition("=")
        if not (equals and dimension.strip() and level.strip()):
            raise CommandError(f"--trait {trait!r} must have the form DIMENSION=LEVEL, such as A=low")
        levels[dimension.strip()] = level.strip()
    return {"id": "mine", "description": description, "traits": levels}


def _operator_file(server: Server, models: tuple[str, str]) -> str:
    free = ", ".join(f"{_quoted(model)}: {{input: 0, output: 0}}" for model in dict.fromkeys(models))
    lines = [
        "# Connections of this service; `assay up` reads this file. All fields: assay.example.yaml.",
        "connections:",
    ]
    if server.url is None:
        lines.append(f"  {server.connection}: {{}}    # its key is in {server.key_variable}")
    else:
        lines += [
            f"  {server.connection}:",
            "    kind: openai",
            f"    base_url: {_quoted(server.url)}",
            *([f"    api_key_env: {server.key_variable}"] if server.key_variable else []),
            "    limits: {max_in_flight: 64}",
            f"    prices: {{{free}}}    # USD per million tokens",
        ]
    return "\n".join([*lines, ""])


def _job_file(server: Server, models: tuple[str, str], persona: Mapping[str, Any] | None) -> str:
    model, judge = (_quoted(f"{server.connection}/{name}") for name in models)
    note = ""
    if server.url is not None:
        model, judge = (f"{{model: {name}, max_tokens: {MAX_TOKENS}}}" for name in (model, judge))
        note = (
            "# Without max_tokens, long replies of a slow server time out. Raise it for models that reason.\n"
        )
    elif models[1] in EXTRA:
        judge = f"{{model: {judge}, extra: {_quoted(EXTRA[models[1]])}}}"
    personas = _quoted("big-five" if persona is None else persona)
    has_price = server.url is None and {*models} <= {*USUAL_MODELS.values()}  # one's own server is free
    budget = "budget: {usd: 5}    # never exceeded\n" if has_price else ""
    return f"""\
# A job for `assay submit`. What it can name: `assay personas`, `assay tasks`, `assay models`.
name: my first job
personas: [{personas}]
tasks: [{", ".join(TASKS)}]
{note}models: [{model}]
judges: [{judge}]
iterations: 1
{budget}"""


def _quoted(value: object) -> str:
    """A value as JSON, which is YAML too, on one line."""
    return json.dumps(value, ensure_ascii=False)


def _cells(operator: str, job: str, environment: Mapping[str, str]) -> int:
    """How many cells the job has, by the rules of the service.

    Raises:
        CommandError: The service would refuse it; the message names each field.
    """
    import yaml  # noqa: PLC0415
    from pydantic import ValidationError  # noqa: PLC0415

    from app.domain.errors import InvalidJobError  # noqa: PLC0415
    from app.domain.jobs.request import JobIn  # noqa: PLC0415
    from app.domain.jobs.resolve import resolve  # noqa: PLC0415
    from app.domain.validation import message  # noqa: PLC0415
    from app.instruments.grouped_loader import load_grouped  # noqa: PLC0415
    from app.instruments.hardened_loader import load_hardened  # noqa: PLC0415
    from app.instruments.loader import load_atomic  # noqa: PLC0415
    from app.instruments.personagym_loader import load_personagym  # noqa: PLC0415
    from app.instruments.rules import RULES  # noqa: PLC0415
    from app.llm.connections.connections import ConnectionsError, load_connections  # noqa: PLC0415
    from app.services.providers.catalog import make_catalog  # noqa: PLC0415

    try:
        connections = load_connections(operator, environment, None)
    except ConnectionsError as error:
        raise CommandError(str(error)) from error
    words = (load_atomic(), load_personagym(), load_grouped(), load_hardened())
    try:
        request = JobIn.model_validate(yaml.safe_load(job))
        return len(resolve(request, make_catalog(*words, RULES, connections)).cells)
    except ValidationError as error:
        told = [f"{'/'.join(map(str, each['loc']))}: {message(each)}" for each in error.errors()]
    except InvalidJobError as error:
        told = [f"{each.pointer.lstrip('/')}: {each.message}" for each in error.errors]
    raise CommandError("; ".join(told))


def _connection_findings(
    operator: str, environment: Mapping[str, str], try_connections: Try
) -> Iterator[Finding]:
    """Whether the server answers and takes its key; a key that is not there yet is told."""
    from app.llm.connections.connections import ConnectionsError, load_connections  # noqa: PLC0415

    try:
        yield from try_connections(load_connections(operator, environment, None))
    except ConnectionsError as error:
        yield Finding("key", False, f"{error}: set it before `assay up`")
