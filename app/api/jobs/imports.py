"""`/v1/imports`: files that other tools wrote, as bodies that can be sent."""

from collections.abc import AsyncIterator, Sequence
from http import HTTPStatus
from typing import Annotated

from fastapi import Query, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import Field

from app.api.http.abandoned import while_connected
from app.api.http.access import needs
from app.api.http.dependencies import ServicesDep, TenantDep
from app.api.http.openapi import answers_with
from app.api.http.problems import wrong_field
from app.api.http.resources import resource
from app.api.http.strict_json import StrictRequest
from app.domain.contract import Line, Prose, Text
from app.domain.jobs.import_preview import ImportPreview, ImportReading
from app.domain.keys.api_key import Scope
from app.importers.names import COLUMNS
from app.importers.registry import NAMES
from app.services.jobs.import_reader import ImportChoices
from app.services.jobs.read_import import read_file, read_upload

router = resource("/imports", "jobs")

EXAMPLE = (
    '{"messages": [{"role": "user", "content": "How was it?"}, {"role": "assistant", "content": "Loud."}]}\n'
)
BINARY = {"schema": {"type": "string", "format": "binary"}, "example": EXAMPLE}
Pairs = Annotated[list[Annotated[Text, Field(max_length=400)]], Field(max_length=50)]


@router.post(
    "",
    operation_id="readImport",
    responses=answers_with(ImportPreview) | answers_with(ImportReading, 202),
    openapi_extra={"requestBody": {"content": {"application/octet-stream": BINARY}}},
    summary="Read another tool's file",
)
@needs(Scope.SUBMIT)
async def create(
    request: StrictRequest,
    services: ServicesDep,
    tenant: TenantDep,
    name: Annotated[Line | None, Query(description="The file's name; tells YAML and CSV.")] = None,
    kind: Annotated[Line | None, Query(description=f"Its kind: {', '.join(NAMES)}.")] = None,
    persona: Annotated[
        Prose | None,
        Query(description="Persona of all texts, an id or a description, instead of the file's."),
    ] = None,
    personas: Annotated[
        Line | None,
        Query(description="A persona set: the file's personas that are in it get its ids and traits."),
    ] = None,
    trait: Annotated[Pairs, Query(description="Traits of the personas, such as `E=high`.")] = [],  # noqa: B006 - FastAPI copies it
    task: Annotated[Line | None, Query(description="Task of all texts.")] = None,
    model: Annotated[Line | None, Query(description="Name of the model that wrote all texts.")] = None,
    score: Annotated[
        Line | None, Query(description="Score of the tool that is a judge's verdict on the whole text.")
    ] = None,
    scale: Annotated[
        Line | None,
        Query(description="That score's lowest and highest, such as `0-10`; needed if they are not 1 and 5."),
    ] = None,
    questions: Annotated[
        Line | None,
        Query(description="A question set: prompts that are its questions name task and persona."),
    ] = None,
    column: Annotated[
        Pairs, Query(description=f"Columns of a table, such as `text=answer`: {', '.join(COLUMNS)}.")
    ] = [],  # noqa: B006 - FastAPI copies it
    upload: Annotated[
        Line | None,
        Query(description="An upload of the file, with `purpose` `import`, in place of the body."),
    ] = None,
) -> Response:
    """Recognizes a file, says what is in it and how it maps, and gives bodies for jobs and sets. No job or set is stored.

    The body is the file as it is. Each text, persona or question, and each record without one, is either mapped or refused with a
    reason. A file that can't be read as a whole is a 422 with the place. Of an `upload`, up to 256 MiB, the texts become its
    records, in place of those of an earlier call; `job` names the upload. While that is going on, the answer is 202: repeat the request.
    """
    chosen = ImportChoices(
        name, kind, persona, personas, tuple(trait), task, model, score, scale, questions, tuple(column)
    )
    data, catalog = await request.body(), services.submission.catalog
    if upload is None:
        work = read_file(services.engine, services.readers, catalog, tenant, data, chosen)
        found = await while_connected(request, work)
    elif data:
        raise wrong_field("/query/upload", "can't be given with a file in the body")
    else:
        read = await read_upload(services.uploads, catalog, tenant, upload, chosen)
        if read is None:
            going_on = ImportReading(upload=upload).model_dump()
            return JSONResponse(going_on, HTTPStatus.ACCEPTED, {"Retry-After": "1"})
        found = read
    headers = {"Content-Length": str(sum(map(len, found)))}
    return StreamingResponse(_each(found), headers=headers, media_type="application/json")


async def _each(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
