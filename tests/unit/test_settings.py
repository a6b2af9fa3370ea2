import pytest
from pydantic import ValidationError

from app.settings import Settings, StartError, load_settings

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

    def test_passwords_in_urls_are_not_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DATABASE_URL", f"postgresql://assay:{SECRET}@db/assay")
        monkeypatch.setenv("REDIS_URL", f"redis://:{SECRET}@queue")
        settings = Settings()
        assert SECRET in settings.require_database_url()
        assert SECRET in settings.require_redis().url
        assert SECRET not in repr(settings)
