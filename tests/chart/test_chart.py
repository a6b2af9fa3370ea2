"""The Helm chart. What helm itself has to render needs `make test-chart`, which gets it; else those tests are skipped."""

import json
import re
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator  # type: ignore[import-untyped]  # it has no types

from app.llm.connections.connections import VENDORS
from app.settings import Settings, load_settings
from app.settings import environment as variables_of_environment
from tests.chart.conftest import TOOLS
from tests.unit.test_alarms import RULES, exported

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "persona-assay"
COMPOSE: Json = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
VALUES: Json = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
SCHEMA: Json = json.loads((CHART / "values.schema.json").read_text("utf-8"))
TEMPLATES = {path.name: path.read_text("utf-8") for path in (CHART / "templates").iterdir()}

SERVICES = {"api": "api", "worker": "worker", "sweeper": "sweeper", "migration": "migrate"}
"""The parts of the chart, each with its service in Compose."""
READ_BY_OTHERS = {
    *("FORWARDED_ALLOW_IPS", "OPENBLAS_NUM_THREADS"),
    *(f"{vendor.upper()}_BASE_URL" for vendor in VENDORS),
}

PLAIN: Json = {"secret": {"name": "assay"}}
FULL: Json = {
    "secret": {
        "name": "assay",
        "keys": {"ownerDatabaseUrl": "OWNER"},
        "providerKeys": ["OPENAI_API_KEY", "TOGETHER_API_KEY"],
    },
    "config": (ROOT / "assay.example.yaml").read_text("utf-8"),
    "settings": {
        "ASSAY_KEEP_DAYS": 90,
        "ASSAY_SLOTS": 48,
        "ASSAY_MAX_PLANNED_CALLS": 50_000_000,
        "ASSAY_CALL_DEADLINE_SECONDS": 300.5,
        "ASSAY_TRANSPORT": "sdk",
        "ASSAY_DATABASE_POOLER": "transaction",
        "FORWARDED_ALLOW_IPS": "10.0.0.0/8",
    },
    "hosts": ["assay.internal"],
    "redisTls": {"secret": "redis-tls", "clientCertificate": True},
    "heartbeat": {"seconds": 60},
    "image": {"digest": "sha256:" + 64 * "a", "pullSecrets": ["registry"]},
    "ingress": {"enabled": True, "host": "assay.example.org", "className": "nginx", "tlsSecret": "assay-tls"},
    "networkPolicy": {"extraEgress": [{"ports": [{"port": 8000}]}], "apiFrom": [{"namespaceSelector": {}}]},
    "autoscaling": {"kind": "keda", "prometheus": {"selector": 'namespace="assay"'}},
    "monitoring": {"serviceMonitor": True, "alarms": True, "keySecret": {"name": "metrics"}},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "batch", "operator": "Exists"}],
    "podAnnotations": {"team": "evaluation"},
    "podLabels": {"team": "evaluation"},
}
SCALED: Json = PLAIN | {"autoscaling": {"kind": "hpa"}, "config": "connections: {}\n"}
BARE: Json = {
    "secret": {"name": "assay", "keys": {"encryptionKeys": ""}},
    "networkPolicy": {"enabled": False},
    "disruptionBudgets": False,
}
SECRET = {
    "DATABASE_URL": "postgresql://assay:word@db.example.org/assay",
    "OWNER": "postgresql://owner:word@db.example.org/assay",
    "REDIS_URL": "redis://redis.example.org:6379/0",
    "ASSAY_KEY_PEPPER": 32 * "p",
    "ASSAY_ENCRYPTION_KEYS": 64 * "a",
    "OPENAI_API_KEY": "openai-key",
    "TOGETHER_API_KEY": "together-key",
}
SETS = {"plain": PLAIN, "full": FULL, "scaled": SCALED, "bare": BARE}


def known_settings() -> set[str]:
    """What a process of ours reads from its environment."""
    own = {
        str(field.validation_alias or f"ASSAY_{name.upper()}")
        for name, field in Settings.model_fields.items()
    }
    return own | READ_BY_OTHERS


class TestFiles:
    def test_the_alarms_are_those_of_the_page(self) -> None:
        assert (CHART / "alarms.yaml").read_text("utf-8") == RULES

    def test_the_versions_are_the_release_s(self) -> None:
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
        assert chart["version"] == chart["appVersion"] == version("persona-assay")

    def test_every_value_is_in_the_schema_and_is_right(self) -> None:
        Draft7Validator.check_schema(SCHEMA)
        Draft7Validator(SCHEMA).validate(VALUES)
        assert SCHEMA["properties"].keys() - VALUES.keys() == {"global"}

    @pytest.mark.parametrize("part", SERVICES)
    def test_every_part_runs_the_command_of_compose(self, part: str) -> None:
        [command] = re.findall(r"^ +command: (\[.*?\])$", TEMPLATES[f"{part}.yaml"], re.MULTILINE | re.DOTALL)
        slots = command.replace("{{ .Values.settings.ASSAY_SLOTS | default 24 }}", "${ASSAY_SLOTS:-24}")
        assert yaml.safe_load(slots) == COMPOSE["services"][SERVICES[part]]["command"]

    def test_variables_are_settings_that_exist(self) -> None:
        named = set(re.findall(r"(?:name|variable): ([A-Z]+_[A-Z_]+)\b", "".join(TEMPLATES.values())))
        assert len(named) > 8
        assert named <= known_settings()

    def test_what_scales_the_workers_is_exported(self) -> None:
        named = set(re.findall(r"assay_[a-z_]+", TEMPLATES["autoscaling.yaml"]))
        assert named == {"assay_queue_messages", "assay_shards_leased"}
        assert named <= exported()

    def test_a_setting_that_the_chart_makes_itself_is_refused_and_all_others_are_taken(self) -> None:
        refused = set(SCHEMA["properties"]["settings"]["propertyNames"]["not"]["enum"])
        assert refused <= known_settings()
        names = SCHEMA["properties"]["settings"]["propertyNames"]
        taken = {name for name in known_settings() if Draft7Validator(names).is_valid(name)}
        assert known_settings() - taken == refused | {
            f"{name}_URL{file}" for name in ("DATABASE", "REDIS") for file in ("", "_FILE")
        }


def rendered(helm: str, values: Json, release: str = "assay", namespace: str = "evaluation") -> list[Json]:
    """What the chart makes of values."""
    command = [helm, "template", release, str(CHART), "--namespace", namespace, "--values", "-"]
    run = subprocess.run(
        command, input=yaml.safe_dump(values), capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stderr
    return [document for document in yaml.safe_load_all(run.stdout) if document]


def refusal(helm: str, values: Json) -> str:
    """What helm says of wrong values."""
    command = [helm, "template", "assay", str(CHART), "--values", "-"]
    run = subprocess.run(
        command, input=yaml.safe_dump(values), capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode != 0
    return run.stderr


def of_kind(documents: list[Json], kind: str) -> list[Json]:
    return [document for document in documents if document["kind"] == kind]


def pods(documents: list[Json]) -> dict[str, Json]:
    """The pods' specifications, by part."""
    found = {}
    for document in documents:
        spec = document.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template is not None:
            found[template["metadata"]["labels"]["app.kubernetes.io/component"]] = template["spec"]
    return found


def environment(pod: Json) -> dict[str, str]:
    """The variables of a pod."""
    variables = pod["containers"][0]["env"]
    assert len({variable["name"] for variable in variables}) == len(variables), "one is there twice"
    return {variable["name"]: variable["value"] for variable in variables}


@pytest.fixture(params=SETS, scope="session")
def documents(request: pytest.FixtureRequest, helm: str) -> list[Json]:
    return rendered(helm, SETS[request.param])


@pytest.fixture(scope="session")
def full(helm: str) -> list[Json]:
    return rendered(helm, FULL)


class TestHelm:
    def test_finds_nothing_to_say(self, helm: str) -> None:
        command = [helm, "lint", "--strict", "--quiet", "--set", "secret.name=assay", str(CHART)]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (run.returncode, run.stderr) == (0, "")

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({}, "secret.name is missing: the Secret that has DATABASE_URL, REDIS_URL and ASSAY_KEY_PEPPER"),
            (PLAIN | {"worker": {"replica": 3}}, "additional properties 'replica' not allowed"),
            (PLAIN | {"api": {"replicas": "two"}}, "at '/api/replicas': got string, want integer"),
            (PLAIN | {"settings": {"ASSAY_KEY_PEPPER": "x" * 32}}, "invalid propertyName 'ASSAY_KEY_PEPPER'"),
            (PLAIN | {"settings": {"ASSAY_WORKERS": 4}}, "invalid propertyName 'ASSAY_WORKERS'"),
            (PLAIN | {"autoscaling": {"kind": "hpa", "minReplicas": 0}}, "/autoscaling/minReplicas"),
            (PLAIN | {"ingress": {"enabled": True}}, "ingress.host is missing"),
            (PLAIN | {"monitoring": {"serviceMonitor": True}}, "monitoring.keySecret.name is missing"),
        ],
    )
    def test_refuses_what_can_t_work_in_words(self, helm: str, values: Json, words: str) -> None:
        assert words in refusal(helm, values)


class TestManifests:
    OF_OPERATORS = ("ScaledObject", "ServiceMonitor", "PrometheusRule")

    @pytest.mark.parametrize("version", ["1.25", "1.31", "1.37"])
    def test_are_what_kubernetes_takes(self, documents: list[Json], version: str, tmp_path: Path) -> None:
        python = TOOLS / "python"
        if not python.exists():
            pytest.skip("needs Kubernetes' schemas: make test-chart gets them")
        file = tmp_path / "manifests.yaml"
        file.write_text(
            yaml.safe_dump_all(
                document for document in documents if document["kind"] not in self.OF_OPERATORS
            )
        )
        command = [str(python), "-m", "kubernetes_validate", "--strict", "-k", version, str(file)]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert (run.returncode, "WARN" in run.stdout) == (0, False), run.stdout

    def test_of_two_releases_in_one_namespace_share_no_name(self, helm: str) -> None:
        names = [
            {(document["kind"], document["metadata"]["name"]) for document in rendered(helm, FULL, release)}
            for release in ("first", "second")
        ]
        assert names[0] & names[1] == set()

    def test_hold_no_secret(self, documents: list[Json]) -> None:
        assert of_kind(documents, "Secret") == []
        for pod in pods(documents).values():
            [container] = pod["containers"]
            assert "envFrom" not in container
            assert [variable for variable in container["env"] if "valueFrom" in variable] == []
            assert environment(pod)["DATABASE_URL_FILE"] == "/run/secrets/assay/DATABASE_URL"


class TestPods:
    def test_run_without_privileges_on_a_read_only_disk(self, documents: list[Json]) -> None:
        for pod in pods(documents).values():
            of_pod, [container] = pod["securityContext"], pod["containers"]
            assert of_pod["runAsNonRoot"]
            assert (of_pod["runAsUser"], of_pod["runAsGroup"]) == (10001, 10001)
            assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            written = [mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
            assert written == ["tmp"]
            assert pod["automountServiceAccountToken"] is False
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert "memory" in container["resources"]["limits"]

    def test_mount_what_their_variables_name(self, documents: list[Json]) -> None:
        for pod in pods(documents).values():
            volumes = {volume["name"] for volume in pod["volumes"]}
            mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
            assert mounts.keys() == volumes
            files = [value for name, value in environment(pod).items() if name.endswith("_FILE") and value]
            assert [file for file in files if str(Path(file).parent) not in mounts.values()] == []

    def test_read_no_variable_that_kubernetes_makes_of_a_service(self, documents: list[Json]) -> None:
        """A Service called `assay` would set `ASSAY_PORT` to `tcp://…`."""
        assert {pod["enableServiceLinks"] for pod in pods(documents).values()} == {False}

    def test_are_given_settings_and_secrets_that_the_service_takes(
        self, documents: list[Json], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for part, pod in pods(documents).items():
            [items] = [volume["secret"]["items"] for volume in pod["volumes"] if volume["name"] == "secret"]
            for item in items:
                (tmp_path / item["path"]).write_text(SECRET[item["key"]] + "\n")
            (tmp_path / "assay.yaml").write_text(FULL["config"])
            with monkeypatch.context() as patch:
                for name, value in environment(pod).items():
                    patch.setenv(name, re.sub("^(/run/secrets/assay|/etc/assay)", str(tmp_path), value))
                settings, keys = load_settings(), variables_of_environment()
                assert settings.require_database_url().endswith("@db.example.org/assay")
                owner = settings.owner_database_url or ""
                assert ("//owner:" in owner) == (part == "migration" and "OWNER" in str(items))
                if part in ("api", "shell"):
                    assert settings.read_key_pepper() == SECRET["ASSAY_KEY_PEPPER"].encode()
                for key in ("OPENAI_API_KEY", "TOGETHER_API_KEY"):
                    if f"{key}_FILE" in environment(pod):
                        assert keys[key] == SECRET[key]
                if part in ("api", "worker", "sweeper"):
                    assert settings.redis_url == SECRET["REDIS_URL"]
                if "ASSAY_MAX_PLANNED_CALLS" in environment(pod):
                    assert settings.max_planned_calls == 50_000_000
                    assert settings.call_deadline_seconds == 300.5

    def test_have_providers_keys_and_the_pepper_only_where_they_are_needed(self, full: list[Json]) -> None:
        having = {
            name: {part for part, pod in pods(full).items() if name in environment(pod)}
            for name in (
                *("TOGETHER_API_KEY_FILE", "REDIS_URL_FILE"),
                *("ASSAY_KEY_PEPPER_FILE", "ASSAY_ENCRYPTION_KEYS_FILE", "ASSAY_OWNER_DATABASE_URL_FILE"),
            )
        }
        assert having == {
            "TOGETHER_API_KEY_FILE": {"api", "worker"},
            "REDIS_URL_FILE": {"api", "worker", "sweeper"},
            "ASSAY_KEY_PEPPER_FILE": {"api", "shell"},
            "ASSAY_ENCRYPTION_KEYS_FILE": {"api", "worker", "sweeper"},
            "ASSAY_OWNER_DATABASE_URL_FILE": {"migration"},
        }

    @pytest.mark.parametrize(
        ("settings", "grace"),
        [
            ({}, 150),  # Compose's
            ({"ASSAY_CALL_DEADLINE_SECONDS": 300.5}, 331),
            ({"ASSAY_CALL_DEADLINE_SECONDS": "10"}, 40),
            ({"ASSAY_SHUTDOWN_SECONDS": 0}, 25),
        ],
    )
    def test_workers_may_finish_the_calls_that_are_under_way(
        self, helm: str, settings: Json, grace: int
    ) -> None:
        worker = pods(rendered(helm, PLAIN | {"settings": settings}))["worker"]
        assert worker["terminationGracePeriodSeconds"] == grace
        taken = {name.removeprefix("ASSAY_").lower(): value for name, value in settings.items()}
        assert grace - 26 < Settings(**taken).shutdown_seconds <= grace - 25

    def test_change_with_the_operator_s_file(self, helm: str) -> None:
        checksums = {
            of_kind(rendered(helm, PLAIN | {"config": text}), "Deployment")[0]["spec"]["template"][
                "metadata"
            ]["annotations"]["checksum/config"]
            for text in ("connections: {}\n", "connections: {a: {}}\n")
        }
        assert len(checksums) == 2

    def test_work_on_as_many_shards_as_the_setting_says(self, documents: list[Json]) -> None:
        worker = pods(documents)["worker"]
        command = worker["containers"][0]["command"]
        slots = environment(worker).get("ASSAY_SLOTS", str(Settings.model_fields["slots"].default))
        assert command[command.index("--concurrency") + 1] == slots

    def test_keep_the_operator_s_file_to_the_letter(self, full: list[Json]) -> None:
        [config] = of_kind(full, "ConfigMap")
        assert config["data"]["assay.yaml"] == FULL["config"]


class TestProbes:
    def test_the_api_is_asked_where_it_listens(self, documents: list[Json]) -> None:
        [container] = pods(documents)["api"]["containers"]
        port = container["command"][container["command"].index("--port") + 1]
        assert [str(each["containerPort"]) for each in container["ports"]] == [port]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"] == {"path": "/healthz", "port": "http"}

    @pytest.mark.parametrize("part", ["worker", "sweeper"])
    def test_the_heartbeat_s_probe_knows_a_fresh_file_from_an_old_one_and_from_none(
        self, helm: str, tmp_path: Path, part: str
    ) -> None:
        [of_the_image] = re.findall(r"ASSAY_HEARTBEAT_FILE=(\S+)", (ROOT / "Dockerfile").read_text("utf-8"))
        file = tmp_path / "heartbeat"
        [container] = pods(rendered(helm, PLAIN))[part]["containers"]
        probe = container["livenessProbe"]["exec"]["command"]
        assert COMPOSE["services"][part]["healthcheck"]["test"][1].replace("$$", "$") == probe[-1]
        command = [word.replace(of_the_image, str(file)) for word in probe]

        def is_alive() -> bool:
            return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0

        assert not is_alive()
        file.touch()
        assert is_alive()
        subprocess.run(["touch", "-d", "-31 seconds", str(file)], check=True)
        assert not is_alive()


class TestAround:
    def test_the_hook_needs_nothing_that_the_release_makes_after_it(self, full: list[Json]) -> None:
        [job] = of_kind(full, "Job")
        assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
        pod = job["spec"]["template"]["spec"]
        assert {kind for volume in pod["volumes"] for kind in volume} == {"name", "emptyDir", "secret"}
        assert [volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume] == [
            "assay"
        ]
        assert "serviceAccountName" not in pod

    def test_budgets_services_and_policies_select_the_pods_of_their_part(self, documents: list[Json]) -> None:
        labels = {
            document["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]: document[
                "spec"
            ]["template"]["metadata"]["labels"]
            for document in of_kind(documents, "Deployment")
        }
        assert labels.keys() == {"api", "worker", "sweeper"}
        wanted = [
            *(each["spec"]["selector"] for each in of_kind(documents, "Service")),
            *(each["spec"]["selector"]["matchLabels"] for each in of_kind(documents, "PodDisruptionBudget")),
            *(each["spec"]["podSelector"]["matchLabels"] for each in of_kind(documents, "NetworkPolicy")),
            *(each["spec"]["selector"]["matchLabels"] for each in of_kind(documents, "Deployment")),
        ]
        for selector in wanted:
            part = selector.get("app.kubernetes.io/component")
            assert selector.items() <= labels[part or "api"].items()

    def test_the_api_answers_to_the_names_by_which_it_is_reached(self, full: list[Json]) -> None:
        [service] = of_kind(full, "Service")
        [ingress] = of_kind(full, "Ingress")
        name = service["metadata"]["name"]
        hosts = environment(pods(full)["api"])["ASSAY_HOSTS"].split(",")
        assert {name, f"{name}.evaluation.svc", "assay.internal"} <= set(hosts)
        assert {rule["host"] for rule in ingress["spec"]["rules"]} <= set(hosts)

    def test_only_the_api_is_open_and_no_cloud_s_metadata_can_be_reached(self, full: list[Json]) -> None:
        policies = {
            each["metadata"]["name"].rpartition("-")[2]: each["spec"]
            for each in of_kind(full, "NetworkPolicy")
        }
        assert policies["all"]["policyTypes"] == ["Ingress", "Egress"]
        assert "ingress" not in policies["all"]
        assert [rule["ports"] for rule in policies["api"]["ingress"]] == [[{"port": 8321, "protocol": "TCP"}]]
        blocks = [peer["ipBlock"] for peer in policies["out"]["egress"][0]["to"]]
        assert "169.254.0.0/16" in blocks[0]["except"]


class TestScaling:
    def test_leaves_the_number_of_workers_to_the_one_who_scales(self, helm: str) -> None:
        for kind, there in (("keda", False), ("hpa", False), ("", True)):
            documents = rendered(helm, PLAIN | {"autoscaling": {"kind": kind}})
            [worker] = [
                each
                for each in of_kind(documents, "Deployment")
                if each["metadata"]["name"].endswith("-worker")
            ]
            assert ("replicas" in worker["spec"]) == there
            assert len(of_kind(documents, "ScaledObject")) == (kind == "keda")
            assert len(of_kind(documents, "HorizontalPodAutoscaler")) == (kind == "hpa")
            for scaler in of_kind(documents, "ScaledObject") + of_kind(documents, "HorizontalPodAutoscaler"):
                assert scaler["spec"]["scaleTargetRef"]["name"] == worker["metadata"]["name"]

    @pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Prometheus's promtool")
    def test_counts_shards_that_wait_and_shards_in_work_once_however_many_apis_tell(
        self, full: list[Json], tmp_path: Path
    ) -> None:
        [scaled] = of_kind(full, "ScaledObject")
        [trigger] = scaled["spec"]["triggers"]
        series = [
            {"series": f'{name}{{namespace="{namespace}",instance="{instance}"}}', "values": f"{value}x10"}
            for name, value in (("assay_queue_messages", 30), ("assay_shards_leased", 48))
            for instance in ("a", "b")
            for namespace in ("assay",)
        ]
        series.append({"series": 'assay_queue_messages{namespace="other",instance="c"}', "values": "1000x10"})
        test = {
            "tests": [
                {
                    "interval": "1m",
                    "input_series": series,
                    "promql_expr_test": [
                        {
                            "expr": trigger["metadata"]["query"],
                            "eval_time": "5m",
                            "exp_samples": [{"labels": "{}", "value": 78}],
                        }
                    ],
                }
            ]
        }
        file = tmp_path / "test.yaml"
        file.write_text(yaml.safe_dump(test))
        run = subprocess.run(
            ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False, timeout=60
        )
        assert run.returncode == 0, run.stdout + run.stderr
        assert trigger["metadata"]["threshold"] == str(VALUES["autoscaling"]["shardsPerWorker"])

    def test_a_single_large_job_may_have_several_workers(self) -> None:
        assert VALUES["autoscaling"]["shardsPerWorker"] < Settings.model_fields["shard_window"].default


class TestMonitoring:
    def test_apis_are_told_apart_by_their_instance_alone(self, full: list[Json]) -> None:
        """By a pod's name too, alarms would add up each series once for each API."""
        [monitor] = of_kind(full, "ServiceMonitor")
        [endpoint] = monitor["spec"]["endpoints"]
        assert endpoint["relabelings"] == [{"action": "labeldrop", "regex": "pod"}]
        assert endpoint["authorization"]["credentials"] == {"name": "metrics", "key": "key"}
        [service] = of_kind(full, "Service")
        assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]

    def test_the_rules_arrive_as_they_are(self, full: list[Json]) -> None:
        [rules] = of_kind(full, "PrometheusRule")
        assert rules["spec"] == yaml.safe_load(RULES)
