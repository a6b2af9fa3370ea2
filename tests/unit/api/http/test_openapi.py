"""The document is encoded once for each path below which the service is reached."""

import json

from app.main import create_app
from app.settings import Settings


def test_the_document_is_made_once_and_names_the_path_of_a_proxy() -> None:
    app = create_app(Settings(database_url="postgresql://unused", redis_url="redis://unused"))
    assert app.document("") is app.document("")
    assert json.loads(app.document(""))["servers"][0]["url"] == "/"
    assert [each["url"] for each in json.loads(app.document("/assay"))["servers"]] == ["/assay", "/"]
