import sys
from dataclasses import replace
from pathlib import Path

import pytest

from embedded.services import ServiceSpec, StackConfig, StackUrls, service_commands

CONFIG = StackConfig(host="127.0.0.1", port=8000, data_dir=Path("/data"), workers=2)
URLS = StackUrls(
    host="127.0.0.1", port=8000, database="postgresql://db", redis="redis://r", simulator_port=9000
)


def by_name(config: StackConfig) -> dict[str, ServiceSpec]:
    return {spec.name: spec for spec in service_commands(config, URLS)}


class TestAddresses:
    @pytest.mark.parametrize(
        ("listening", "url"),
        [
            ("127.0.0.1", "http://127.0.0.1:8000"),
            ("0.0.0.0", "http://127.0.0.1:8000"),
            ("::", "http://[::1]:8000"),
            ("fd00::7", "http://[fd00::7]:8000"),
            ("assay.example", "http://assay.example:8000"),
        ],
    )
    def test_the_api_is_given_as_a_client_on_this_machine_reaches_it(self, listening: str, url: str) -> None:
        assert replace(URLS, host=listening).api == url

    def test_services_hear_of_a_simulator_only_if_there_is_one(self) -> None:
        with_simulator = URLS.environment()
        without = replace(URLS, simulator_port=None).environment()
        assert with_simulator.keys() - without.keys() == {"ASSAY_SIMULATOR_URL"}

    def test_services_hear_nothing_of_the_owner_of_a_database(self) -> None:
        given = URLS.environment()
        assert {given[f"ASSAY_OWNER_DATABASE_URL{end}"] for end in ("", "_FILE")} == {""}


class TestCommands:
    def test_each_worker_is_a_process_with_a_node_name_of_its_own(self) -> None:
        names = [
            spec.argv[spec.argv.index("-n") + 1] for spec in by_name(CONFIG).values() if "worker" in spec.argv
        ]
        assert names == ["worker1@%h", "worker2@%h"]

    def test_the_simulator_can_be_left_out_and_gets_its_arguments_otherwise(self) -> None:
        assert "simulator" not in by_name(replace(CONFIG, simulator=False))
        assert by_name(replace(CONFIG, simulator_args=("--seed", "7")))["simulator"].argv[-2:] == (
            "--seed",
            "7",
        )

    def test_only_the_simulator_needs_no_database_and_only_the_api_does_without_tables(self) -> None:
        specs = by_name(CONFIG)
        assert [name for name, spec in specs.items() if not spec.needs_database] == ["simulator"]
        assert [name for name, spec in specs.items() if not spec.needs_tables] == ["api", "simulator"]

    def test_workers_let_the_api_go_first(self) -> None:
        specs = by_name(CONFIG)
        assert [name for name, spec in specs.items() if spec.niceness > 0] == ["worker1", "worker2"]

    def test_modules_of_the_working_directory_cannot_stand_in_for_installed_ones(self) -> None:
        assert {spec.argv[:3] for spec in by_name(CONFIG).values()} == {(sys.executable, "-P", "-m")}
