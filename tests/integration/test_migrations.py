import re
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from alembic import command

from app.db.migration.migrate import alembic_config, check, upgrade
from app.db.revision import revisions

ROOT = Path(__file__).parents[2]


class TestMigrations:
    def test_a_migrated_database_has_the_tables_that_the_code_declares(self, database_url: str) -> None:
        check(database_url)

    def test_migrating_twice_changes_nothing(self, database_url: str) -> None:
        upgrade(database_url)
        check(database_url)

    def test_what_came_after_the_base_can_be_taken_back(self, database_url: str) -> None:
        command.downgrade(alembic_config(database_url), revisions()[0])
        upgrade(database_url)
        check(database_url)

    def test_each_revision_is_named_by_a_later_date_than_the_last(self) -> None:
        """Its processes refuse a database of any other name (:func:`app.db.revision.state_of`)."""
        assert all(re.fullmatch(r"\d{8}_\d{4}", revision) for revision in revisions())
        assert all(former < later for former, later in pairwise(revisions()))

    def test_a_revision_that_others_may_have_applied_is_never_edited(self) -> None:
        """What ``sha256sum`` prints in ``migrations/versions``; a new revision adds its line."""
        files = sorted((ROOT / "migrations" / "versions").glob("2*.py"))
        found = [f"{sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]
        assert found == (ROOT / "migrations" / "versions.sha256").read_text("utf-8").splitlines()
