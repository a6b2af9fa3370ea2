"""Which models a tenant may use."""

from hypothesis import given
from hypothesis import strategies as st

from app.domain.keys.allowed_models import is_allowed, models_of

NAMES = st.sampled_from(["a", "b", "a/b", "*", "b*", ""])
ALLOWED = st.one_of(
    st.none(), st.lists(st.sampled_from(["c/a", "c/*", "c/a/b", "d/a", "d/*", "cc/b", "c/b*", "*/a", "*/*"]))
)


@given(ALLOWED, NAMES, st.one_of(st.none(), st.lists(NAMES, unique=True)))
def test_what_is_listed_is_what_is_allowed(
    allowed: list[str] | None, model: str, offered: list[str] | None
) -> None:
    listed = models_of(allowed, "c", offered)
    if offered is None and listed is None:
        assert is_allowed(allowed, "c", model)
    elif listed is not None and (offered is None or model in offered):
        assert (model in listed) == is_allowed(allowed, "c", model)


def test_names_are_exact_and_only_a_whole_connection_is_a_pattern() -> None:
    assert is_allowed(None, "c", "m")
    assert is_allowed(["c/*"], "c", "m/n")
    for name in ("c/", "c/M", "c/m ", "c/m*", "C/m", "*/m", "*", "*/*", "cc/*", "c/m/n"):
        assert not is_allowed([name], "c", "m"), name
    assert not is_allowed([], "c", "m")
