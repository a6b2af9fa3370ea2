from hashlib import sha256
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

    def test_the_tables_can_be_taken_back(self, database_url: str) -> None:
        command.downgrade(alembic_config(database_url), "base")
        upgrade(database_url)
        check(database_url)

    def test_revisions_are_numbered(self) -> None:
        """Processes of the release before recognize a later one by it (:func:`app.db.revision.state_of`)."""
        assert revisions() == tuple(f"{number:04}" for number in range(1, len(revisions()) + 1))

    def test_a_released_revision_is_never_edited(self) -> None:
        """The output of ``sha256sum`` in ``migrations/versions``; a new revision adds its line."""
        files = sorted((ROOT / "migrations" / "versions").glob("[0-9]*.py"))
        found = [f"{sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]
        assert found == (ROOT / "migrations" / "versions.sha256").read_text("utf-8").splitlines()
