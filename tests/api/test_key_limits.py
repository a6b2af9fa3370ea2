"""A limited administrator's key gives nobody, itself included, more than it has."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from app.domain.keys.api_key import Scope
from tests.api.keys import KeyMaker, bearer, guarded_alone
from tests.api.service import Json, Service
from tests.databases import Databases

ENDS = datetime.now(UTC).replace(microsecond=0) + timedelta(days=10)


@pytest.fixture(scope="module")
def service(databases: Databases, template_database: str) -> Iterator[Service]:
    with guarded_alone(databases, template_database, "key_limits") as running:
        yield running


@pytest.fixture
def limited(service: Service) -> Json:
    """An administrator's key with a cap of $1, an end and a rate."""
    return KeyMaker(service.database_url).make(Scope.ADMIN, usd=1.0, expires_at=ENDS, requests_per_minute=600)


WITHIN: Json = {
    "name": "within",
    "scopes": ["submit"],
    "expires_at": ENDS.isoformat(),
    "requests_per_minute": 600,
    "spending": {"usd_limit": 0.4},
}


def make(service: Service, key: Json, **changes: Any) -> httpx2.Response:
    return service.post("/v1/api-keys", WITHIN | changes, headers=bearer(key))


def refused(answer: httpx2.Response, *fields: str) -> bool:
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (403, "beyond_own_limits")
    return [error["pointer"] for error in problem["errors"]] == list(fields)


class TestNewKeys:
    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"spending": None}, "/spending"),
            ({"spending": {"usd_limit": 1.01}}, "/spending"),
            ({"expires_at": None}, "/expires_at"),
            ({"expires_at": (ENDS + timedelta(seconds=1)).isoformat()}, "/expires_at"),
            ({"requests_per_minute": None}, "/requests_per_minute"),
            ({"requests_per_minute": 601}, "/requests_per_minute"),
        ],
    )
    def test_have_no_fewer_limits(self, service: Service, limited: Json, changes: Json, field: str) -> None:
        assert refused(make(service, limited, **changes), field)

    def test_share_one_cap_however_many_they_are(self, service: Service, limited: Json) -> None:
        assert [make(service, limited).status_code for _ in range(2)] == [201, 201]
        assert refused(make(service, limited), "/spending"), "of $1, $0.80 are given away"
        assert make(service, limited, spending={"usd_limit": 0.2}).status_code == 201
        own = service.get(f"/v1/api-keys/{limited['id']}", headers=bearer(limited)).json()
        assert own["spending"] == {"usd_limit": 1.0, "usd_spent": 1.0}

    def test_of_a_key_without_limits_have_what_they_are_given(self, service: Service) -> None:
        free = KeyMaker(service.database_url).make(Scope.ADMIN)
        body = {"spending": None, "expires_at": None, "requests_per_minute": None}
        assert make(service, free, **body).status_code == 201


class TestChanges:
    def test_raise_no_cap(self, service: Service, limited: Json) -> None:
        other = KeyMaker(service.database_url).make(Scope.SUBMIT, usd=0.5)
        for key, usd, allowed in (
            (limited, 2.0, False),
            (limited, 0.9, True),
            (other, 0.6, False),
            (other, 0.1, True),
        ):
            body = {"spending": {"usd_limit": usd}}
            answer = service.http.patch(f"/v1/api-keys/{key['id']}", json=body, headers=bearer(limited))
            assert answer.status_code == 200 if allowed else refused(answer, "/spending")

    def test_raise_no_rate_beyond_their_own(self, service: Service, limited: Json) -> None:
        for rate in (601, None):
            body = {"requests_per_minute": rate}
            answer = service.http.patch(f"/v1/api-keys/{limited['id']}", json=body, headers=bearer(limited))
            assert refused(answer, "/requests_per_minute")


class TestRotation:
    def test_shows_no_key_of_more_rights(self, service: Service, limited: Json) -> None:
        free = KeyMaker(service.database_url).make(Scope.ADMIN)
        path = f"/v1/api-keys/{free['id']}/rotate"
        answer = service.post(path, {}, headers=bearer(limited))
        assert refused(answer, "/expires_at", "/requests_per_minute", "/spending")
        assert service.get("/v1/jobs", headers=bearer(free)).status_code == 200

    def test_of_itself_is_allowed(self, service: Service, limited: Json) -> None:
        rotated = service.post(f"/v1/api-keys/{limited['id']}/rotate", {}, headers=bearer(limited))
        assert rotated.status_code == 200
        assert rotated.json()["spending"] == {"usd_limit": 1.0, "usd_spent": 0.0}
