"""What a page says of a job in a few words."""

from app.api.console.summaries import summary


def test_verdicts_that_were_imported_are_told() -> None:
    texts = {"tasks": ["essay"], "responses": [{"text": "x"}]}
    assert summary(texts | {"judges": ["a/b"]}) == "existing texts · essay"
    assert (
        summary(texts | {"judges": ["a/b", {"imported": "c"}]})
        == "existing texts · essay · imported verdicts"
    )
