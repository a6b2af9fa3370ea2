"""The command that reads other tools' files: `assay import`."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from persona_assay.terminal.options import AS_JSON, URL, client_of
from persona_assay.terminal.outcome import CommandError, print_json, say, told_errors
from persona_assay.terminal.quantities import counted
from persona_assay.types import ImportPreview, Job, JobIn

if TYPE_CHECKING:
    from persona_assay import AssayClient

Body = dict[str, Any]
LARGE_BYTES = 4 * 1024 * 1024
"""What is larger is sent in parts: a request's body ends at 8 MiB, and what a file becomes may be longer than it."""


@click.command("import")
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--kind", help="The files' kind; recognized unless given.")
@click.option("--persona", help="Persona of all texts, by ID or description, instead of the files' own.")
@click.option("--personas", metavar="SET", help="A persona set that has the personas, with their traits.")
@click.option(
    "--trait",
    multiple=True,
    metavar="TRAIT=LEVEL",
    help="A trait of the personas, such as E=high. Repeatable.",
)
@click.option("--task", help="Task of all texts.")
@click.option("--model", help="Name of the model that wrote all texts.")
@click.option("--score", metavar="NAME", help="The tool's score that is a judge's verdict on the whole text.")
@click.option("--scale", metavar="LOW-HIGH", help="That score's lowest and highest, such as 0-10.")
@click.option("--questions", metavar="SET", help="A question set that has the prompts, with their tasks.")
@click.option(
    "--column",
    multiple=True,
    metavar="WHAT=NAME",
    help="A table's column: text, persona, prompt, model or score. Repeatable.",
)
@click.option("--judge", multiple=True, metavar="CONNECTION/MODEL", help="A judge of the job. Repeatable.")
@click.option("--reasoner", metavar="CONNECTION/MODEL", help="Reasoner of the job, for PersonaGym's tasks.")
@click.option("--name", help="Name of the job or sets.")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the job (or set) to this file, as JSON.",
)
@click.option(
    "--submit", "is_sent", is_flag=True, help="Submit the job, or store the sets, and print the IDs."
)
@URL
@AS_JSON
def import_(
    files: tuple[Path, ...],
    judge: tuple[str, ...],
    reasoner: str | None,
    name: str | None,
    output: Path | None,
    url: str,
    *,
    is_sent: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Read files of other tools and show what is in them.

    No job or set is stored without --submit. Exit status: 0 if anything was found.
    """
    with told_errors(), client_of(url) as client:
        previews = [_read(client, file, options) for file in files]
        if not as_json:
            _show(files, previews)
        asked = ({"judges": list(judge)} if judge else {}) | ({"reasoner": reasoner} if reasoner else {})
        bodies = _bodies(previews, asked, name)
        if not bodies:
            if as_json:
                _print(files, previews, {})
            raise CommandError("nothing in the files can be imported")
        if output is not None:
            wanted = next(iter(bodies.values())) if len(bodies) == 1 else bodies
            output.write_text(json.dumps(wanted, ensure_ascii=False, indent=1) + "\n", "utf-8")
            say(f"Written to {output}")
        stored = {}
        for kind, body in bodies.items() if is_sent else ():
            stored[kind] = _stored(client, kind, body)
            if not as_json:
                click.echo(stored[kind])
        if as_json:
            _print(files, previews, stored)


def _read(client: "AssayClient", file: Path, options: Mapping[str, Any]) -> ImportPreview:
    named = {"name": file.name, **options}
    if file.stat().st_size <= LARGE_BYTES:
        return client.read_import(file.read_bytes(), **named)
    from persona_assay.terminal.uploading import sent  # noqa: PLC0415 - its progress bar takes time to import

    upload = sent(client, file, purpose="import")["id"]
    say(f"Reading {file.name} …")
    return client.read_import(upload=upload, **named)


def _bodies(previews: Sequence[ImportPreview], asked: Body, name: str | None) -> dict[str, Body]:
    """What the files have together: sets, which are stored first, as they need nothing; and jobs."""
    found: dict[str, Body] = {}
    personas = _distinct(
        each for preview in previews if preview["persona_set"] for each in preview["persona_set"]["personas"]
    )
    if personas:
        found["persona_set"] = {"personas": personas}
    questions: dict[str, dict[str, list[str]]] = {}
    for preview in previews:
        for persona, tasks in (preview["question_set"] or {"questions": {}})["questions"].items():
            for task, each in tasks.items():
                questions.setdefault(persona, {}).setdefault(task, []).extend(each)
    if questions:
        found["question_set"] = {"questions": questions}
    jobs = _jobs([preview["job"] for preview in previews if preview["job"]], asked)
    found |= {"job" if n == 1 else f"job_{n}": job for n, job in enumerate(jobs, 1)}
    return {kind: body | ({"name": name} if name else {}) for kind, body in found.items()}


def _jobs(jobs: Sequence[Any], asked: Body) -> list[Body]:
    """A job for each file that was uploaded, and one for all others."""
    uploaded = [job for job in jobs if isinstance(job["responses"], dict)]
    others = [job for job in jobs if isinstance(job["responses"], list)]
    found = []
    for some in ([others] if others else []) + [[job] for job in uploaded]:
        body = {
            "personas": _distinct(each for job in some for each in job["personas"]),
            "tasks": _distinct(each for job in some for each in job["tasks"]),
            "responses": _together([job["responses"] for job in some]),
        }
        imported = _distinct(each for job in some for each in job.get("judges", []))
        judges = {"judges": [*imported, *asked.get("judges", [])]} if imported else {}
        found.append(body | asked | judges)
    return found


def _together(responses: Sequence[Any]) -> Any:
    """The responses of all files; or the upload that the only one is in."""
    if isinstance(responses[0], dict):
        return responses[0]
    return [each for some in responses for each in some]


def _distinct(values: Any) -> list[Any]:
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def _stored(client: "AssayClient", kind: str, body: Body) -> str:
    """The id of a set or job, once it is stored."""
    if kind == "persona_set":
        return client.keep_personas(body["personas"], name=body.get("name"))["id"]
    if kind == "question_set":
        return client.keep_questions(body["questions"], name=body.get("name"))["id"]
    return _submitted(client, body)["id"]


def _submitted(client: "AssayClient", body: Body) -> Job:
    """A job, whose responses are sent in parts if they are many."""
    given = body["responses"]
    lines = [json.dumps(each) + "\n" for each in given] if isinstance(given, list) else []
    if sum(map(len, lines)) > LARGE_BYTES:
        from persona_assay.terminal.uploading import sent  # noqa: PLC0415 - its progress bar takes time to import

        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "responses.jsonl")
            with file.open("w", encoding="ascii") as writing:
                writing.writelines(lines)
            body = body | {"responses": {"upload": sent(client, file)["id"]}}
    return client.submit(cast("JobIn", body))


def _print(files: Sequence[Path], previews: Sequence[ImportPreview], stored: Mapping[str, str]) -> None:
    """What was found, and what was stored, as one JSON document."""
    found = [{"file": str(file)} | preview for file, preview in zip(files, previews, strict=True)]
    print_json({"files": found, "stored": dict(stored)})


def _show(files: Sequence[Path], previews: Sequence[ImportPreview]) -> None:
    from persona_assay.terminal.consoles import out  # noqa: PLC0415
    from persona_assay.terminal.import_views import preview_view  # noqa: PLC0415

    for file, preview in zip(files, previews, strict=True):
        out().print(preview_view(str(file), preview))
    if len(files) > 1:
        imported, refused = (sum(each[what] for each in previews) for what in ("mapped", "refused"))
        click.echo(f"{counted(len(files), 'file')}: {imported:,} imported, {refused:,} refused")


COMMANDS = (import_,)
