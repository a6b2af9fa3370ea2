from pathlib import Path
from typing import get_args

import pytest
from psycopg.pq import Conninfo
from pydantic import SecretStr, ValidationError

from app.bootstrap import load_key_ring, load_operator_connections
from app.guard.targets import TargetRefusedError
from app.settings import Settings, StartError, load_settings, variables

SECRET = "half-a-pepper"


class TestSecrets:
    @pytest.mark.parametrize("variable", ["ASSAY_KEY_PEPPER", "ASSAY_PORT"])
    def test_an_error_does_not_repeat_what_was_set(
        self, monkeypatch: pytest.MonkeyPatch, variable: str
    ) -> None:
        monkeypatch.setenv(variable, SECRET)
        with pytest.raises(ValidationError) as caught:
            Settings()
        assert SECRET not in str(caught.value)
        assert SECRET not in repr(caught.value)

    @pytest.mark.parametrize("variable", ["DATABASE_URL", "REDIS_URL"])
    @pytest.mark.parametrize(
        "form",
        [
            "{scheme}://assay:half/{secret}@host:5432/0",
            "{scheme}://assay:half?{secret}@host/0",
            "{scheme}://assay:half#{secret}@host/0",
            "{scheme}://assay:half@{secret}@host/0",
            "{scheme}://assay:{secret}",
            "{scheme}://assay:12/{secret}@host/0",
            "{scheme}://:12?{secret}@host/0",
            "{scheme}://assay:{secret}@host:{secret}/0",
            "{scheme}://[{secret}@host/0",
        ],
    )
    def test_a_malformed_url_is_refused_and_nothing_of_it_is_shown(
        self, monkeypatch: pytest.MonkeyPatch, variable: str, form: str
    ) -> None:
        scheme = "postgresql" if variable == "DATABASE_URL" else "redis"
        monkeypatch.setenv(variable, form.format(scheme=scheme, secret=SECRET))
        with pytest.raises(StartError) as caught:
            load_settings()
        assert str(caught.value).startswith(f"these settings are wrong:\n  {variable}: is no URL of the form")
        for piece in ("half", "pepper"):
            assert piece not in str(caught.value)

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://assay@/test_1?host=/tmp/assay-dit8pd5n&port=5432",
            "postgresql://assay:p%2Fw%40@db.example:5432/assay?sslmode=verify-full",
            "postgresql+psycopg://assay@[::1]:5432/assay",
            "postgresql:///assay",
        ],
    )
    def test_urls_of_every_ordinary_form_are_taken(self, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
        monkeypatch.setenv("DATABASE_URL", url)
        assert load_settings().require_database_url().partition("://")[2] == url.partition("://")[2]

    def test_every_parameter_of_the_driver_is_accepted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for option in Conninfo.get_defaults():
            monkeypatch.setenv("DATABASE_URL", f"postgresql://a:b@db/x?{option.keyword.decode()}=1")
            load_settings()

    @pytest.mark.parametrize("variable", ["DATABASE_URL", "ASSAY_OWNER_DATABASE_URL"])
    @pytest.mark.parametrize(
        ("url", "reason"),
        [
            ("postgresql://a:b@db/x?pgbouncer=true", "the parameter 'pgbouncer' is unknown to PostgreSQL's client library; remove it and set ASSAY_DATABASE_POOLER=transaction"),
            ("postgres://a:b@db/x?sslmode=require&schema=public", "the parameter 'schema' is unknown to PostgreSQL's client library; remove it and set the role's search_path"),
            ("postgresql://a:b@db/x?ssl=true", "the parameter 'ssl' is unknown to PostgreSQL's client library; use sslmode=require"),
            ("postgresql://a:b@db/x?connection_limit=", "the parameter 'connection_limit' is unknown"),
            ("postgresql://a:b@db/x?sslmod=require", "the parameter 'sslmod' is unknown to PostgreSQL's client library; remove it; did you mean 'sslmode'?"),
            (f"postgresql://a:1?{SECRET}=1@db/x", "a parameter after the question mark is unknown"),
            ("mysql://a:b@db/x", "must be a URL of PostgreSQL, such as postgresql://"),
            ("postgresql+asyncpg://a:b@db/x", "must be a URL of PostgreSQL, such as postgresql://"),
            (" ", "must be a URL of PostgreSQL, such as postgresql://"),
        ],
    )  # fmt: skip
    def test_a_database_url_that_cannot_work_is_refused_in_one_line(
        self, monkeypatch: pytest.MonkeyPatch, variable: str, url: str, reason: str
    ) -> None:
        monkeypatch.setenv(variable, url)
        with pytest.raises(StartError) as caught:
            load_settings()
        [line] = str(caught.value).splitlines()[1:]
        assert line.startswith(f"  {variable}: {reason}")
        assert SECRET not in line

    @pytest.mark.parametrize(
        "url",
        [
            "assay.example", "javascript:alert(1)", "https://assay.example/?a=1", "https://a\nb", "https://",
            "https:///assay", "https://me:secret@assay.example", "https://assay .example",
        ],
    )  # fmt: skip
    def test_where_people_reach_the_service_is_an_address_of_the_web(self, url: str) -> None:
        with pytest.raises(ValidationError, match=r"public_url\n.*must be a URL that begins with https://"):
            Settings(public_url=url)

    def test_passwords_in_urls_are_not_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DATABASE_URL", f"postgresql://assay:{SECRET}@db/assay")
        monkeypatch.setenv("REDIS_URL", f"redis://:{SECRET}@queue")
        settings = Settings()
        assert SECRET in settings.require_database_url()
        assert SECRET in settings.require_redis().url
        assert SECRET not in repr(settings)


SECRETS = {
    name: variables()[name]
    for name, field in Settings.model_fields.items()
    if not name.endswith("_file") and (SecretStr in get_args(field.annotation) or not field.repr)
}
"""The settings that are secrets; a URL may hold a password."""
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "TOGETHER_API_KEY")
CONFIG = "connections: {together: {kind: openai, base_url: https://together.example/v1, api_key_env: TOGETHER_API_KEY}}"
GOOD = {
    "DATABASE_URL": "postgresql+psycopg://assay:half@db/assay",
    "ASSAY_OWNER_DATABASE_URL": "postgresql+psycopg://owner:half@db/assay",
    "REDIS_URL": "redis://:half@queue/0",
    "ASSAY_KEY_PEPPER": "half a pepper that is of more than 32 bytes",
    "ASSAY_ENCRYPTION_KEYS": "ab" * 32,
} | dict.fromkeys(KEYS, "sk-half")


def read(variable: str) -> str:
    """What the service takes a secret for."""
    settings = load_settings()
    connections = load_operator_connections(settings)
    load_key_ring(settings)
    if variable in KEYS:
        key = connections.by_id[variable.partition("_")[0].lower()].api_key
        return "" if key is None else key.get_secret_value()
    return {
        "DATABASE_URL": settings.require_database_url,
        "ASSAY_OWNER_DATABASE_URL": lambda: settings.owner_database_url or "",
        "REDIS_URL": lambda: settings.require_redis().url,
        "ASSAY_KEY_PEPPER": (settings.read_key_pepper() or b"").decode,
        "ASSAY_ENCRYPTION_KEYS": settings.read_encryption_keys,
    }[variable]()


class TestFiles:
    @pytest.fixture(autouse=True)
    def _others_are_set(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "assay.yaml").write_text(CONFIG)
        monkeypatch.setenv("ASSAY_CONFIG", str(tmp_path / "assay.yaml"))
        for variable, value in GOOD.items():
            monkeypatch.setenv(variable, value)

    def test_there_is_a_file_for_each_secret_and_none_is_shown(self) -> None:
        assert {*SECRETS.values(), *KEYS} == GOOD.keys()
        for name in SECRETS:
            assert f"{name}_file" in Settings.model_fields
            assert not Settings.model_fields[name].repr

    @pytest.mark.parametrize("variable", GOOD)
    @pytest.mark.parametrize("end", ["", "\n", "\r\n"])
    def test_a_secret_is_read_from_its_file_without_the_line_break_at_its_end(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, end: str
    ) -> None:
        file = tmp_path / "secret"
        file.write_bytes((GOOD[variable] + end).encode())
        monkeypatch.delenv(variable)
        monkeypatch.setenv(f"{variable}_FILE", str(file))
        assert read(variable) == GOOD[variable]

    @pytest.mark.parametrize("variable", GOOD)
    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (None, "No such file"),
            (b" \n", "is empty"),
            (b"half\n\nline\xff", ""),
            ("a directory", "Is a directory"),
        ],
    )
    def test_a_file_that_cannot_be_used_is_named_and_nothing_of_it_shown(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, content: object, reason: str
    ) -> None:
        file = tmp_path / "secret"
        if isinstance(content, bytes):
            file.write_bytes(content)
        elif content is not None:
            file.mkdir()
        monkeypatch.delenv(variable)
        monkeypatch.setenv(f"{variable}_FILE", str(file))
        with pytest.raises(StartError) as caught:
            read(variable)
        told = str(caught.value)
        assert reason in told
        assert "half" not in told
        assert "line" not in told.replace("line break", "")
        if reason:
            assert told.startswith(("these settings are wrong", f"{variable}_FILE: "))

    @pytest.mark.parametrize("variable", GOOD)
    def test_both_are_refused(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str) -> None:
        (tmp_path / "secret").write_text(GOOD[variable])
        monkeypatch.setenv(f"{variable}_FILE", str(tmp_path / "secret"))
        with pytest.raises(StartError) as caught:
            read(variable)
        assert str(caught.value) == f"{variable} and {variable}_FILE are both set: set one of them"

    def test_a_pepper_may_be_of_any_bytes(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "pepper").write_bytes(bytes(range(0x80, 0xC0)))
        monkeypatch.delenv("ASSAY_KEY_PEPPER")
        monkeypatch.setenv("ASSAY_KEY_PEPPER_FILE", str(tmp_path / "pepper"))
        assert load_settings().read_key_pepper() == bytes(range(0x80, 0xC0))


class TestUnknown:
    @pytest.mark.parametrize(
        ("variable", "told"),
        [
            ("ASSAY_MAX_INFLIGHT", "ASSAY_MAX_INFLIGHT is no setting; did you mean ASSAY_MAX_IN_FLIGHT?"),
            (
                "ASSAY_KEY_PEPPER_FIEL",
                "ASSAY_KEY_PEPPER_FIEL is no setting; did you mean ASSAY_KEY_PEPPER_FILE?",
            ),
            ("ASSAY_ZZZ", "ASSAY_ZZZ is no setting"),
        ],
    )
    def test_a_mistyped_one_is_refused_with_the_name_that_was_meant(
        self, monkeypatch: pytest.MonkeyPatch, variable: str, told: str
    ) -> None:
        monkeypatch.setenv(variable, SECRET)
        with pytest.raises(StartError) as caught:
            load_settings()
        assert str(caught.value) == f"these settings are unknown:\n  {told}"

    @pytest.mark.parametrize(
        "variable",
        [
            "ASSAY_URL",
            "ASSAY_API_KEY",
            "ASSAY_VERSION",
            # beside Kubernetes Services called assay-api and assay
            "ASSAY_API_SERVICE_HOST",
            "ASSAY_SERVICE_PORT_HTTP",
            "ASSAY_API_PORT_8321_TCP_ADDR",
        ],
    )
    def test_what_others_set_is_let_be(self, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
        monkeypatch.setenv(variable, "tcp://10.0.0.1:8321")
        load_settings()

    def test_the_operators_file_may_name_any_as_a_key_s(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "assay.yaml").write_text(CONFIG.replace("TOGETHER_API_KEY", "ASSAY_TOGETHER"))
        (tmp_path / "key").write_text("sk-together\n")
        monkeypatch.setenv("ASSAY_CONFIG", str(tmp_path / "assay.yaml"))
        monkeypatch.setenv("ASSAY_TOGETHER_FILE", str(tmp_path / "key"))
        key = load_operator_connections(load_settings()).by_id["together"].api_key
        assert key is not None
        assert key.get_secret_value() == "sk-together"


class TestTraces:
    @pytest.mark.parametrize(
        ("variables", "wanted"),
        [
            ({}, False),
            ({"OTEL_SERVICE_NAME": "assay", "OTEL_TRACES_SAMPLER": "always_on"}, False),
            ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
            ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
            ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
            ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, False),
            ({"OTEL_TRACES_EXPORTER": "", "OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
            ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, False),
            ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SDK_DISABLED": "TRUE"}, False),
        ],
    )
    def test_are_sent_only_where_the_standard_variables_say_so(
        self, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], wanted: bool
    ) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert load_settings().traces is wanted

    @pytest.mark.parametrize(
        ("variable", "value"), [("OTEL_TRACES_EXPORTER", "zipkin"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]
    )
    def test_what_we_do_not_speak_is_refused_at_the_start(
        self, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
    ) -> None:
        monkeypatch.setenv(variable, value)
        with pytest.raises(StartError, match=variable):
            load_settings()


class TestGuards:
    @pytest.mark.parametrize(
        ("host", "url", "is_let_through"),
        [
            ("127.0.0.1", "http://localhost:8000/v1", True),
            ("::1", "http://[::1]:8000/v1", True),
            ("127.0.0.1", "http://127.0.0.2:8000/v1", False),
            ("127.0.0.1", "http://10.0.0.1/v1", False),
            ("0.0.0.0", "http://localhost:8000/v1", False),
            ("192.168.1.7", "http://127.0.0.1:8000/v1", False),
        ],
    )
    def test_let_this_machine_be_named_only_where_nobody_else_reaches_the_service(
        self, host: str, url: str, *, is_let_through: bool
    ) -> None:
        settings = load_settings(host=host)
        for guard in (settings.connection_guard, settings.webhook_guard):
            if is_let_through:
                assert settings.for_all(guard).target(url)
            else:
                with pytest.raises(TargetRefusedError):
                    settings.for_all(guard).target(url)
            with pytest.raises(TargetRefusedError):
                guard.target(url)
