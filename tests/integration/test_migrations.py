from alembic import command

from app.db.migration.migrate import alembic_config, check, upgrade


class TestMigrations:
    def test_a_migrated_database_has_the_tables_that_the_code_declares(self, database_url: str) -> None:
        check(database_url)

    def test_migrating_twice_changes_nothing(self, database_url: str) -> None:
        upgrade(database_url)
        check(database_url)

    def test_keeping_tenants_apart_can_be_taken_back(self, database_url: str) -> None:
        command.downgrade(alembic_config(database_url), "20261123_0770")
        upgrade(database_url)
        check(database_url)
