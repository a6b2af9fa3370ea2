"""The tables of API keys and tenants' limits."""

from datetime import datetime

from sqlalchemy import ARRAY, BigInteger, CheckConstraint, Index, LargeBinary, Text, func, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.tables import Base


class ApiKey(Base):
    """A key, of which nothing is kept that would let anybody use it. Rows stay for ever, so that what a key did keeps its name.

    While it is being rotated, a key has two secrets.
    """

    __tablename__ = "api_keys"
    __table_args__ = (
        CheckConstraint("scopes <@ ARRAY['read', 'submit', 'admin'] AND scopes <> '{}'", name="scopes"),
        CheckConstraint(
            "num_nulls(former_prefix, former_digest, former_expires_at) IN (0, 3)", name="former"
        ),
        Index("ix_api_keys_tenant_newest", "tenant", text("created_at DESC"), text("id DESC")),
        Index("ix_api_keys_prefix", "prefix", unique=True),
        Index("ix_api_keys_former_prefix", "former_prefix", unique=True),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    name: Mapped[str]
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    prefix: Mapped[str]
    """The part of the key that is no secret; see :mod:`app.domain.keys.api_key`."""
    digest: Mapped[bytes] = mapped_column(LargeBinary)
    """HMAC of the whole key."""
    pepper: Mapped[str | None]
    """Name of the pepper of that HMAC; see :func:`app.domain.keys.api_key.pepper_name`."""
    former_prefix: Mapped[str | None]
    former_digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    former_expires_at: Mapped[datetime | None]
    """Until then the key before the last rotation is taken as well."""
    requests_per_minute: Mapped[int | None]
    nanos_limit: Mapped[int | None] = mapped_column(BigInteger)
    """What the key's jobs may spend together, in billionths of a US dollar."""
    nanos: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    """What they have spent for certain, those included that were deleted."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    """To the minute."""
    sign_outs: Mapped[int] = mapped_column(server_default=text("0"))
    """How often its sessions were ended: one that began before the last time is over."""


class TenantLimits(Base):
    """What the operator allows a tenant, whichever of its keys is shown. A tenant without a row has no limits."""

    __tablename__ = "tenant_limits"

    tenant: Mapped[str] = mapped_column(primary_key=True)
    models: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    """``connection/model`` or ``connection/*``; ``None`` for all."""
    nanos_limit: Mapped[int | None] = mapped_column(BigInteger)
    """What the tenant's jobs may spend together, in billionths of a US dollar; ``None`` for no cap."""
    paused_at: Mapped[datetime | None]
    """When the operator paused the tenant; ``None`` if its jobs may make calls."""
    nanos: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    """What those submitted under a cap have spent for certain, those included that were deleted."""
