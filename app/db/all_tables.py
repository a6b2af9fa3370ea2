"""Every table that the code declares, by importing the modules that do."""

from app.db import (  # noqa: F401 - declare their tables
    annotation_tables,
    batch_tables,
    connection_tables,
    key_tables,
    reply_tables,
    set_tables,
    webhook_tables,
)
from app.db.tables import Base

METADATA = Base.metadata
