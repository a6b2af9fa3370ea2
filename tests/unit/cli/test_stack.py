"""What the command line tells a stack that it starts."""

import pytest

from app.cli import _stack_config
from app.settings import load_settings


@pytest.mark.parametrize("given", [True, False])
def test_the_owner_of_a_given_database_is_nobody_to_a_stacks_own(
    monkeypatch: pytest.MonkeyPatch, *, given: bool
) -> None:
    monkeypatch.setenv("ASSAY_OWNER_DATABASE_URL", "postgresql://owner@db/assay")
    monkeypatch.setenv("DATABASE_URL", "postgresql://service@db/assay")
    settings = load_settings()
    if not given:  # as for a demo
        settings = settings.model_copy(update={"database_url": None})
    owner = _stack_config(settings).owner_database_url
    assert owner == (settings.owner_database_url if given else None)
    assert settings.owner_database_url is not None
