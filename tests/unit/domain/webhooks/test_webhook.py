from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from app.domain.webhooks.webhook import MOST_ATTEMPTS, encode_secret, retry_delay, sign

SECRET = encode_secret(bytes(range(32)))
BODY = '{"type":"job.completed","data":{"name":"Tuesday’s – α"}}'


def headers(signature: str, timestamp: int) -> dict[str, str]:
    return {"webhook-id": "msg_1", "webhook-timestamp": str(timestamp), "webhook-signature": signature}


class TestSignature:
    def test_the_reference_library_accepts_it(self) -> None:
        now = int(datetime.now(UTC).timestamp())
        Webhook(SECRET).verify(BODY, headers(sign([SECRET], "msg_1", now, BODY), now))

    def test_it_is_the_reference_librarys_own(self) -> None:
        moment = datetime(2026, 11, 22, tzinfo=UTC)
        expected = Webhook(SECRET).sign("msg_1", moment, BODY)
        assert sign([SECRET], "msg_1", int(moment.timestamp()), BODY) == expected

    def test_the_examples_signature_of_the_specification(self) -> None:
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        signature = sign([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, '{"test": 2432232314}')
        assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

    def test_the_reference_library_accepts_it_by_either_of_two_secrets(self) -> None:
        former, now = encode_secret(bytes(32)), int(datetime.now(UTC).timestamp())
        sent = headers(sign([SECRET, former], "msg_1", now, BODY), now)
        for secret in (SECRET, former):
            Webhook(secret).verify(BODY, sent)
        with pytest.raises(WebhookVerificationError):
            Webhook(encode_secret(bytes(range(1, 33)))).verify(BODY, sent)

    @pytest.mark.parametrize("changed", ["id", "time", "body"])
    def test_it_covers_id_time_and_body(self, changed: str) -> None:
        now = int(datetime.now(UTC).timestamp())
        sent = headers(sign([SECRET], "msg_1", now, BODY), now)
        sent |= {"webhook-id": "msg_2"} if changed == "id" else {}
        sent |= {"webhook-timestamp": str(now + 1)} if changed == "time" else {}
        with pytest.raises(WebhookVerificationError):
            Webhook(SECRET).verify(BODY + " " if changed == "body" else BODY, sent)


class TestRetries:
    def test_waits_grow_from_seconds_to_a_day_and_end_after_ten_attempts(self) -> None:
        waits = [retry_delay(attempts, 0.0) for attempts in range(1, MOST_ATTEMPTS + 1)]
        hour = 3600
        assert waits == [
            *(5, 300, 1800, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour),
            None,
        ]

    def test_jitter_only_makes_them_longer_by_a_fifth_at_most(self) -> None:
        assert retry_delay(1, 0.5) == pytest.approx(5.5)
        assert retry_delay(9, 0.999) < 86_400 * 1.2  # type: ignore[operator]  # there is a wait
