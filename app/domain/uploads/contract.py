"""What a client is told of its uploads."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from app.domain.contract import Answer, Page
from app.domain.uploads.formats import Format

UploadStatus = Literal["receiving", "reading", "ready", "invalid"]


class UploadError(Answer):
    """Something wrong with a record."""

    line: int = Field(description="The line, or of Parquet the row, from 1; 0: the whole file.")
    field: str = Field(
        description="JSON pointer into the record; empty: the whole record.", examples=["/run"]
    )
    message: str = Field(description="What is wrong with it.", examples=["must be a whole number"])


class Upload(Answer):
    """A file of responses that is sent in parts."""

    id: str = Field(examples=["upl_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["upload"] = "upload"
    name: str | None = Field(description="The file's name.")
    metadata: dict[str, str] = Field(
        description="What its client said of the file. Our clients give its `sha256`, to find it again.",
        examples=[{"filename": "texts.jsonl"}],
    )
    status: UploadStatus = Field(
        description="`receiving`: parts are missing. `reading`: all of a packed file is there and is read. "
        "`ready`: jobs can use its records. "
        "`invalid`: records are wrong; none is stored."
    )
    format: Format | None = Field(
        description="`lines`: JSON Lines. `gzip`, `zstd`: the same, compressed. By the first bytes; `null` before these. "
        "`tool_file`: another tool's file, by its `purpose`; `POST /v1/imports` makes records of it."
    )
    size: int = Field(description="The file's bytes.")
    received: int = Field(description="Bytes received so far.")
    records: int = Field(description="Records read so far.")
    error_count: int = Field(description="Wrong records and fields found so far.")
    errors: list[UploadError] = Field(description="The first 20 of them.")
    created_at: datetime
    expires_at: datetime = Field(description="When it is deleted, unless further parts arrive.")


class UploadList(Page[Upload]):
    """A page of uploads, newest first."""
