"""Every table that the code declares, by importing the modules that do."""

import app.db.batches.tables
import app.db.execution.response_cache_tables
import app.db.keys.tables
import app.db.labels.tables
import app.db.providers.tables
import app.db.sets.tables
import app.db.uploads.tables
import app.db.watching.tables
import app.db.webhooks.tables  # noqa: F401 - declare their tables
from app.db.tables import Base

METADATA = Base.metadata
