"""The table of the connections that were made over the API."""

from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, CheckConstraint, Index, Text, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.db.tables import Base


class KeptConnection(Base):
    """A version of a connection to a model provider; a connection is all rows of a tenant's name.

    Jobs name the version that was current when they were submitted.
    """

    __tablename__ = "connections"
    __table_args__ = (
        CheckConstraint("kind IN ('openai', 'anthropic', 'completions')", name="kind"),
        Index("uq_connections_current", "tenant", "name", unique=True, postgresql_where=text("is_current")),
        Index("ix_connections_tenant", "tenant", "name"),
    )

    version: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    name: Mapped[str]
    is_current: Mapped[bool] = mapped_column(server_default=text("true"))
    kind: Mapped[str]
    base_url: Mapped[str]
    sealed_key: Mapped[str | None]
    """Encrypted, and bound to tenant, version and the URL's scheme, host and port; null where the server wants none."""
    key_hint: Mapped[str | None]
    """The key's last characters, for people; null where it is too short to show any."""
    limits: Mapped[dict[str, Any]] = mapped_column(JSONB)
    prices: Mapped[dict[str, Any]] = mapped_column(JSONB)
    models: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    """Null for all."""
    batches: Mapped[bool]
    stream: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether calls ask for event streams."""
    families: Mapped[dict[str, str]] = mapped_column(JSONB, server_default=text("'{}'"))
    """By model: the name by which the model table knows its family."""
    description: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    """Of this version."""
    updated_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
