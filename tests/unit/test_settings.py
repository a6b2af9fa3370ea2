import pytest
from pydantic import ValidationError

from app.settings import Settings

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

    def test_passwords_in_urls_are_not_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DATABASE_URL", f"postgresql://assay:{SECRET}@db/assay")
        monkeypatch.setenv("REDIS_URL", f"redis://:{SECRET}@queue")
        settings = Settings()
        assert SECRET in settings.require_database_url()
        assert SECRET in settings.require_redis_url()
        assert SECRET not in repr(settings)
