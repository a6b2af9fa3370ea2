"""`/v1/uploads`: files of responses that arrive in parts, by the tus protocol 1.0."""

import base64
import binascii
import hashlib
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from datetime import UTC
from email.utils import format_datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Request, Response
from fastapi.responses import JSONResponse
from pydantic import AfterValidator
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Send
from starlette.types import Scope as ScopeOfRequest

from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import CallerDep, ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.limits import Upload as Arriving
from app.api.http.openapi import CONFLICT, NOT_FOUND, PROBLEMS, answers_with
from app.api.http.path_ids import id_check
from app.api.http.problems import CHECKSUM_MISMATCH, ProblemError, wrong_field
from app.api.http.strict_json import StrictRequest, StrictRoute
from app.domain.contract import check_storable
from app.domain.errors import FieldError
from app.domain.keys.api_key import Scope
from app.domain.uploads.contract import Upload, UploadList
from app.services.identifiers import id_form
from app.services.uploads.uploads import (
    UPLOAD,
    OffsetError,
    UploadQuotaError,
    UploadTooLargeError,
    add_part,
    create_upload,
    delete_upload,
    find_upload,
    list_uploads,
)

VERSION = "1.0.0"
EXTENSIONS = "creation,expiration,checksum,termination"
CHECKSUMS = ("sha1", "sha256", "md5")
PART_TYPE = "application/offset+octet-stream"
PIECE_BYTES = 1024 * 1024
"""So much is stored, and read, at a time; a part that breaks off is kept up to its last byte."""


class TusRoute(StrictRoute):
    """A route that speaks one version of tus and says so in each answer."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler; other versions are refused."""
        handle = super().get_route_handler()

        async def in_version(request: Request) -> Response:
            if request.headers.get("tus-resumable", VERSION) != VERSION:
                raise ProblemError(
                    HTTPStatus.PRECONDITION_FAILED,
                    "tus_version",
                    f"this server speaks tus {VERSION}",
                    headers={"Tus-Version": VERSION},
                )
            return await handle(request)

        return in_version

    async def handle(self, scope: ScopeOfRequest, receive: Receive, send: Send) -> None:
        """Handles a request; errors say the version, too."""

        async def with_version(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Tus-Resumable"] = VERSION
            await send(message)

        await super().handle(scope, receive, with_version)


router = APIRouter(
    prefix="/v1/uploads",
    tags=["uploads"],
    route_class=TusRoute,
    dependencies=[Depends(no_unknown_parameters)],
    responses=PROBLEMS,
)

UploadId = Annotated[
    str,
    Path(description="An upload's id.", examples=["upl_01kxyz0abcdefghjkmnpqrstvw"]),
    AfterValidator(id_check("upload", id_form(UPLOAD))),
]
MOST = 2**62
Length = Annotated[int, Header(alias="Upload-Length", ge=0, le=MOST, description="The file's bytes.")]
Offset = Annotated[
    int, Header(alias="Upload-Offset", ge=0, le=MOST, description="Where the part begins: `received`.")
]
Metadata = Annotated[
    str | None,
    Header(
        alias="Upload-Metadata",
        max_length=4096,
        description="Names and base64 values; `filename` is shown as the upload's name. `purpose` `import`: another tool's file, for `POST /v1/imports`.",
        examples=["filename dGV4dHMuanNvbmw="],
    ),
]
Checksum = Annotated[
    str | None,
    Header(
        alias="Upload-Checksum",
        max_length=200,
        description="`sha1`, `sha256` or `md5`, and the part's digest in base64. Such a part is as long as a body may be, and stored whole or not at all.",
    ),
]


@router.options("", include_in_schema=False)
@needs(Scope.READ)
async def options(services: ServicesDep) -> Response:
    """What of tus there is."""
    headers = {
        "Tus-Version": VERSION,
        "Tus-Extension": EXTENSIONS,
        "Tus-Checksum-Algorithm": ",".join(CHECKSUMS),
        "Tus-Max-Size": str(services.uploads.most_bytes),
    }
    return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)


@router.post(
    "",
    operation_id="createUpload",
    status_code=201,
    responses=answers_with(Upload, 201),
    summary="Begin an upload",
)
@needs(Scope.SUBMIT)
async def create(
    services: ServicesDep, tenant: TenantDep, upload_length: Length, upload_metadata: Metadata = None
) -> Response:
    """Begins an upload of existing responses: JSON Lines, each line an object as in a job's `responses`, also compressed by gzip or zstd; or Parquet, with a column for each field.

    Send its parts to `Location`; a job names it as `{"responses": {"upload": "upl_…"}}`. The protocol is tus 1.0 with creation,
    expiration, checksum and termination, so that any tus client can be used.
    """
    try:
        found = await create_upload(services.uploads, tenant, upload_length, _metadata(upload_metadata))
    except UploadTooLargeError as error:
        raise _too_large(error) from error
    except UploadQuotaError as error:
        raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, "upload_quota", str(error)) from error
    headers = {"Location": f"/v1/uploads/{found.id}"} | _expiry(found)
    return JSONResponse(found.model_dump(mode="json"), HTTPStatus.CREATED, headers)


@router.get("", operation_id="listUploads", summary="List uploads")
@needs(Scope.READ)
async def list_(
    services: ServicesDep, tenant: TenantDep, limit: PageLimit = 20, after: After = None
) -> UploadList:
    """Uploads, newest first."""
    begin = cursors.beginning(after)
    found = await list_uploads(services.engine, tenant, after=begin, limit=limit + 1)
    return cursors.newest_first(UploadList, found, limit)


@router.get("/{upload_id}", operation_id="getUpload", responses=NOT_FOUND, summary="Get an upload")
@needs(Scope.READ)
async def get(upload_id: UploadId, services: ServicesDep, tenant: TenantDep) -> Upload:
    """How much has arrived, how many records were read, and the first errors; also while parts are missing."""
    return await find_upload(services.uploads, tenant, upload_id)


@router.head(
    "/{upload_id}", include_in_schema=False, responses={200: {"description": "Where the next part begins."}}
)
@needs(Scope.READ)
async def head(upload_id: UploadId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Where the next part begins."""
    found = await find_upload(services.uploads, tenant, upload_id)
    headers = {"Upload-Length": str(found.size), "Cache-Control": "no-store"} | _progress(found)
    if found.metadata:
        headers["Upload-Metadata"] = ",".join(map(_pair, found.metadata.items()))
    return Response(status_code=HTTPStatus.OK, headers=headers)


@router.patch(
    "/{upload_id}",
    operation_id="addUploadPart",
    status_code=204,
    response_class=Response,
    responses=NOT_FOUND | CONFLICT,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {PART_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
    summary="Add a part",
)
@needs(Scope.SUBMIT)
async def add(
    request: StrictRequest,
    upload_id: UploadId,
    services: ServicesDep,
    tenant: TenantDep,
    caller: CallerDep,
    upload_offset: Offset,
    upload_checksum: Checksum = None,
) -> Response:
    """Adds bytes, of any number. What arrives before a connection breaks is kept: `received` says how much.

    The answer has `Upload-Offset` (bytes), `Upload-Records` and `Upload-Errors`, so that wrong files need not be sent to their end.
    A compressed or Parquet file is read when all of it is there (`reading`).
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != PART_TYPE:
        detail = f"send parts as {PART_TYPE}"
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    arriving: Arriving = request.state.upload
    found = await find_upload(services.uploads, tenant, upload_id)
    if upload_offset != found.received:
        raise _wrong_offset(OffsetError(found.received))
    try:
        if upload_checksum is not None:
            piece = await request.body()
            _check(upload_checksum, piece)
            found = await add_part(services.uploads, tenant, upload_id, upload_offset, piece)
        else:
            async with aclosing(arriving.pieces(request, caller.sender, PIECE_BYTES)) as pieces:
                async for piece in pieces:
                    found = await add_part(services.uploads, tenant, upload_id, found.received, piece)
    except OffsetError as error:
        raise _wrong_offset(error) from error
    except UploadTooLargeError as error:
        raise _too_large(error) from error
    return Response(status_code=HTTPStatus.NO_CONTENT, headers=_progress(found))


@router.delete(
    "/{upload_id}",
    operation_id="deleteUpload",
    status_code=204,
    response_class=Response,
    responses=NOT_FOUND,
    summary="Delete an upload",
)
@needs(Scope.SUBMIT)
async def delete(upload_id: UploadId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Deletes an upload with its records. Jobs that used it keep their texts."""
    await delete_upload(services.engine, tenant, upload_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _progress(found: Upload) -> dict[str, str]:
    return {
        "Upload-Offset": str(found.received),
        "Upload-Records": str(found.records),
        "Upload-Errors": str(found.error_count),
    } | _expiry(found)


def _expiry(found: Upload) -> dict[str, str]:
    return {"Upload-Expires": format_datetime(found.expires_at.astimezone(UTC), usegmt=True)}


def _wrong_offset(error: OffsetError) -> ProblemError:
    headers = {"Upload-Offset": str(error.received)}
    return ProblemError(HTTPStatus.CONFLICT, "wrong_offset", str(error), headers=headers)


def _too_large(error: UploadTooLargeError) -> ProblemError:
    return ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "upload_too_large", str(error))


def _metadata(header: str | None) -> dict[str, str]:
    """Metadata by name.

    Raises:
        ProblemError: If the header is none of tus's, or a value no text that can be stored.
    """
    found: dict[str, str] = {}
    for pair in header.split(",") if header else ():
        name, _, value = pair.strip().partition(" ")
        if not name or name in found:
            message = f"{name[:100]!r} is given twice" if name else "has a part without a name"
            raise wrong_field("/header/Upload-Metadata", message)
        try:
            found[name] = check_storable(base64.b64decode(value, validate=True).decode())
        except (binascii.Error, ValueError) as error:
            message = f"{name[:100]!r} must be followed by UTF-8 text in base64, without U+0000"
            raise wrong_field("/header/Upload-Metadata", message) from error
    return found


def _pair(item: tuple[str, str]) -> str:
    """A name with its value as :func:`_metadata` reads them."""
    name, value = item
    return f"{name} {base64.b64encode(value.encode()).decode()}".rstrip()


def _check(header: str, part: bytes) -> None:
    """Compares a part with its digest.

    Raises:
        ProblemError: If they differ.
    """
    algorithm, _, digest = header.partition(" ")
    if algorithm not in CHECKSUMS:
        message = f"is not one of {', '.join(CHECKSUMS)}, followed by a digest in base64"
        raise ProblemError(
            HTTPStatus.BAD_REQUEST,
            "unknown_checksum",
            f"{algorithm[:100]!r} {message}",
            errors=[FieldError("/header/Upload-Checksum", message)],
        )
    made = base64.b64encode(hashlib.new(algorithm, part, usedforsecurity=False).digest()).decode()
    if digest.strip() != made:
        raise ProblemError(
            CHECKSUM_MISMATCH, "checksum_mismatch", "the part's checksum differs; send it again"
        )
