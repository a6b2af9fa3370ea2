"""Commands that show the catalog, limits and responses: `assay models`, `limits`, `personas`, `tasks`, `rubrics`, `responses` and `open`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from persona_assay.terminal.options import AS_JSON, JOB, URL, client_of
from persona_assay.terminal.outcome import print_json, told_errors

if TYPE_CHECKING:
    from rich.console import RenderableType

    from persona_assay.types import Limits


@click.command()
@URL
@AS_JSON
def models(url: str, *, as_json: bool) -> None:
    """List connections and their models; `assay check` tests one."""
    with told_errors(), client_of(url) as client:
        found = client.models()
        if as_json:
            print_json(found)
            return

        from persona_assay.terminal.browsing_views import models_view  # noqa: PLC0415

        _print(models_view(found))


@click.command()
@URL
@AS_JSON
def limits(url: str, *, as_json: bool) -> None:
    """Show your tenant's limits and how much of them is used."""
    with told_errors(), client_of(url) as client:
        found = client.limits()
        if as_json:
            print_json(found)
            return
        for line in _limit_lines(found):
            click.echo(line)


def _limit_lines(found: "Limits") -> Iterator[str]:
    if found["paused"]:
        yield "paused by the operator: jobs make no calls, and new ones are refused"
    models, cap = found["models"], found["spending"]
    yield f"models: {'all' if models is None else ', '.join(models) or 'none'}"
    yield f"spending: {'no cap' if cap is None else '${usd_spent:,.2f} of ${usd_limit:,.2f}'.format(**cap)}"
    for name in ("unfinished_jobs", "streams", "upload_bytes"):
        limit = found[name]
        yield f"{name.replace('_', ' ')}: {limit['used']:,} of {limit['limit']:,}"
    yield f"planned calls per job: up to {found['planned_calls']:,}"


@click.command()
@click.argument("set_id", metavar="[SET]", required=False)
@URL
@AS_JSON
def personas(set_id: str | None, url: str, *, as_json: bool) -> None:
    """List persona sets, or the personas of a set.

    SET is one of those listed. A job names sets and personas by their IDs.
    """
    with told_errors(), client_of(url) as client:
        from persona_assay.terminal.browsing_views import persona_set_view, persona_sets_view  # noqa: PLC0415

        if set_id is not None:
            found = client.persona_set(set_id)
            if as_json:
                print_json(found)
            else:
                _print(persona_set_view(found, client.tasks()["dimensions"]))
            return
        built_in = client.personas()
        if as_json:
            print_json(built_in)
        else:
            _print(persona_sets_view(built_in, list(client.iter_persona_sets())))


@click.command()
@URL
@AS_JSON
def tasks(url: str, *, as_json: bool) -> None:
    """List tasks and dimensions."""
    with told_errors(), client_of(url) as client:
        found = client.tasks()
        if as_json:
            print_json(found)
            return

        from persona_assay.terminal.browsing_views import tasks_view  # noqa: PLC0415

        _print(tasks_view(found))


@click.command()
@click.argument("given", metavar="[SET | FILE...]", nargs=-1)
@click.option("--name", help="Name of the set that the files make.")
@URL
@AS_JSON
def rubrics(given: tuple[str, ...], name: str | None, url: str, *, as_json: bool) -> None:
    """List rubric sets, show one, or store files as one.

    FILE is a JSON file as `POST /v1/rubric-sets` takes it, or PersonaGym's released rubrics, one task a text file.
    """
    with told_errors(), client_of(url) as client:
        if len(given) == 1 and given[0].startswith("rset_"):
            print_json(client.rubric_set(given[0]))
            return
        if not given:
            if as_json:
                print_json(client.rubric_sets(limit=500))
                return

            from persona_assay.terminal.browsing_views import rubric_sets_view  # noqa: PLC0415

            _print(rubric_sets_view(list(client.iter_rubric_sets())))
            return

        from persona_assay.terminal.rubric_files import rubrics_of_files  # noqa: PLC0415

        kept = client.keep_rubrics(rubrics_of_files(given, name))
        if as_json:
            print_json(kept)
        else:
            click.echo(kept["id"])


@click.command()
@JOB
@click.option("--model", help="Only this model's.")
@click.option("--persona", help="Only this persona's.")
@click.option("--task", help="Only this task's.")
@click.option("--out-of-character", is_flag=True, help="Only those with a sentence out of character.")
@click.option("--judges-disagree", is_flag=True, help="Only those whose judges disagree.")
@click.option("--suspicious", is_flag=True, help="Only those with an uncertain verdict.")
@click.option("--limit", type=click.IntRange(1, 500), default=5, help="Number of responses to show.")
@URL
@AS_JSON
def responses(
    job_id: str,
    model: str | None,
    persona: str | None,
    task: str | None,
    limit: int,
    url: str,
    *,
    out_of_character: bool,
    judges_disagree: bool,
    suspicious: bool,
    as_json: bool,
) -> None:
    """Show a job's responses, sentence by sentence with their scores."""
    with told_errors(), client_of(url) as client:
        page = client.responses(
            job_id,
            model=model,
            persona=persona,
            task=task,
            out_of_character=out_of_character,
            judges_disagree=judges_disagree,
            suspicious=suspicious,
            limit=limit,
        )
        if as_json:
            print_json(page)
            return

        from persona_assay.terminal.browsing_views import responses_view  # noqa: PLC0415

        _print(responses_view(page))


@click.command(name="open")
@click.argument("job_id", metavar="[JOB]", required=False)
@URL
def open_(job_id: str | None, url: str) -> None:
    """Open the console, or a job's page, in the browser.

    Prints its URL, for machines without a browser.
    """
    with told_errors(), client_of(url) as client:
        page = client.url if job_id is None else f"{client.url}/jobs/{client.job(job_id)['id']}"
    click.echo(page)
    click.launch(page)


def _print(view: "RenderableType") -> None:
    from persona_assay.terminal.consoles import out  # noqa: PLC0415

    out().print(view)


COMMANDS = (models, limits, personas, tasks, rubrics, responses, open_)
"""In the order of the help."""
