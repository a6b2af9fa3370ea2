"""The operations of the service's ``/v1`` by which it is set up: schedules, webhooks, API keys and connections, each as a call."""

from collections.abc import Sequence
from typing import Literal

from persona_assay.calls import Call, given, read_json, read_nothing, repetition_key
from persona_assay.notebook import read_figure
from persona_assay.types import (
    ApiKey,
    ApiKeyChangeIn,
    ApiKeyIn,
    ApiKeyList,
    ConnectionChangeIn,
    ConnectionIn,
    Delivery,
    DeliveryList,
    KeptConnection,
    KeptConnectionList,
    Limits,
    NewApiKey,
    NewWebhook,
    Schedule,
    ScheduleChangeIn,
    ScheduleIn,
    ScheduleList,
    ScheduleRunList,
    Webhook,
    WebhookChangeIn,
    WebhookEvent,
    WebhookList,
)

# -- schedules ----------------------------------------------------------------------------------------------------

SCHEDULES = "/v1/schedules"
SCHEDULE = f"{SCHEDULES}/{{schedule_id}}"


def create_schedule(wanted: ScheduleIn, *, idempotency_key: str | None = None) -> Call[Schedule]:
    """Creates a schedule, which runs a job again whenever it is due and watches one of its values.

    Args:
        wanted: The schedule.
        idempotency_key: Repeated calls with the same key and schedule return the same one for 24 hours; default: a new key.
    """
    return Call("POST", SCHEDULES, read_json, body=wanted, headers=repetition_key(idempotency_key))


def schedule(schedule_id: str) -> Call[Schedule]:
    """A schedule with its last run."""
    return Call("GET", SCHEDULE, read_json, {"schedule_id": schedule_id})


def schedules(*, limit: int = 20, after: str | None = None) -> Call[ScheduleList]:
    """A page of schedules, newest first."""
    return Call("GET", SCHEDULES, read_json, query=given(limit=limit, after=after))


def change_schedule(schedule_id: str, change: ScheduleChangeIn) -> Call[Schedule]:
    """Changes a schedule, pauses it or lets it go on; omitted fields stay as they are."""
    return Call("PATCH", SCHEDULE, read_json, {"schedule_id": schedule_id}, body=change)


def delete_schedule(schedule_id: str) -> Call[None]:
    """Deletes a schedule with its runs' values. Their jobs stay."""
    return Call("DELETE", SCHEDULE, read_nothing, {"schedule_id": schedule_id})


def schedule_runs(schedule_id: str, *, limit: int = 20, after: str | None = None) -> Call[ScheduleRunList]:
    """A page of a schedule's runs, newest first: values, limits and alarms."""
    query = given(limit=limit, after=after)
    return Call("GET", f"{SCHEDULE}/runs", read_json, {"schedule_id": schedule_id}, query)


def schedule_figure(
    schedule_id: str,
    *,
    file_format: Literal["svg", "png"] = "svg",
    theme: Literal["light", "dark"] | None = None,
) -> Call[bytes]:
    """The values of a schedule's runs over time as a file; a notebook displays it.

    Args:
        schedule_id: The schedule.
        file_format: The file's format.
        theme: Default: light; an SVG follows the reader's preference.
    """
    names = {"schedule_id": schedule_id, "file_format": file_format}
    route = f"{SCHEDULE}/figures/timeline.{{file_format}}"
    return Call("GET", route, read_figure, names, given(theme=theme))


# -- webhooks -----------------------------------------------------------------------------------------------------

WEBHOOK = "/v1/webhooks/{webhook_id}"


def create_webhook(
    url: str,
    *,
    events: Sequence[WebhookEvent] | None = None,
    description: str | None = None,
    idempotency_key: str | None = None,
) -> Call[NewWebhook]:
    """Creates a webhook. Only this answer has the secret that signs its messages.

    Args:
        url: The URL to post to.
        events: Events to report; default: all.
        description: For people.
        idempotency_key: Repeated calls with the same key and values return the same webhook for 24 hours; default: a new key.
    """
    wanted = {"url": url, "events": events, "description": description}
    body = {name: value for name, value in wanted.items() if value is not None}
    return Call("POST", "/v1/webhooks", read_json, body=body, headers=repetition_key(idempotency_key))


def webhook(webhook_id: str) -> Call[Webhook]:
    """A webhook, without its secret."""
    return Call("GET", WEBHOOK, read_json, {"webhook_id": webhook_id})


def webhooks(*, limit: int = 20, after: str | None = None) -> Call[WebhookList]:
    """A page of webhooks, newest first."""
    return Call("GET", "/v1/webhooks", read_json, query=given(limit=limit, after=after))


def change_webhook(webhook_id: str, change: WebhookChangeIn) -> Call[Webhook]:
    """Changes, enables or disables a webhook; omitted fields stay as they are."""
    return Call("PATCH", WEBHOOK, read_json, {"webhook_id": webhook_id}, body=change)


def rotate_webhook_secret(webhook_id: str) -> Call[NewWebhook]:
    """Creates a new secret for a webhook, shown only here; for a day, the previous one signs as well."""
    return Call(
        "POST", f"{WEBHOOK}/rotate-secret", read_json, {"webhook_id": webhook_id}, is_repeatable=False
    )


def delete_webhook(webhook_id: str) -> Call[None]:
    """Deletes a webhook and its undelivered messages."""
    return Call("DELETE", WEBHOOK, read_nothing, {"webhook_id": webhook_id})


def test_webhook(webhook_id: str) -> Call[Delivery]:
    """Sends a test message; `webhook_deliveries` shows its outcome."""
    return Call("POST", f"{WEBHOOK}/test", read_json, {"webhook_id": webhook_id}, is_repeatable=False)


def webhook_deliveries(webhook_id: str, *, limit: int = 20, after: str | None = None) -> Call[DeliveryList]:
    """A page of a webhook's deliveries, newest first."""
    query = given(limit=limit, after=after)
    return Call("GET", f"{WEBHOOK}/deliveries", read_json, {"webhook_id": webhook_id}, query)


# -- API keys -----------------------------------------------------------------------------------------------------

API_KEYS = "/v1/api-keys"
API_KEY = f"{API_KEYS}/{{key_id}}"


def create_api_key(wanted: ApiKeyIn) -> Call[NewApiKey]:
    """Creates a key, shown only here. Once the first key exists, every request needs one."""
    return Call("POST", API_KEYS, read_json, body=wanted, is_repeatable=False)


def api_key(key_id: str) -> Call[ApiKey]:
    """A key's scopes, limits and status."""
    return Call("GET", API_KEY, read_json, {"key_id": key_id})


def api_keys(*, limit: int = 20, after: str | None = None) -> Call[ApiKeyList]:
    """A page of keys, newest first."""
    return Call("GET", API_KEYS, read_json, query=given(limit=limit, after=after))


def limits() -> Call[Limits]:
    """Shows the limits of the key's tenant and their current use."""
    return Call("GET", "/v1/limits", read_json)


def change_api_key(key_id: str, change: ApiKeyChangeIn) -> Call[ApiKey]:
    """Changes the given fields of a key."""
    return Call("PATCH", API_KEY, read_json, {"key_id": key_id}, body=change)


def rotate_api_key(key_id: str, *, overlap_seconds: int = 86_400) -> Call[NewApiKey]:
    """Replaces a key by a new one; the old one stays valid for this long."""
    body = {"overlap_seconds": overlap_seconds}
    return Call("POST", f"{API_KEY}/rotate", read_json, {"key_id": key_id}, body=body, is_repeatable=False)


def revoke_api_key(key_id: str) -> Call[ApiKey]:
    """Revokes a key permanently."""
    return Call("DELETE", API_KEY, read_json, {"key_id": key_id})


# -- connections --------------------------------------------------------------------------------------------------

CONNECTION = "/v1/connections/{connection_name}"


def create_connection(connection: ConnectionIn) -> Call[KeptConnection]:
    """Creates a connection to a provider. Its key is never returned."""
    return Call("POST", "/v1/connections", read_json, body=connection, is_repeatable=False)


def connection(connection_name: str) -> Call[KeptConnection]:
    """A connection created through the API, without its key."""
    return Call("GET", CONNECTION, read_json, {"connection_name": connection_name})


def connections() -> Call[KeptConnectionList]:
    """All connections created through the API; `models` also lists the operator's."""
    return Call("GET", "/v1/connections", read_json)


def change_connection(connection_name: str, change: ConnectionChangeIn) -> Call[KeptConnection]:
    """Changes a connection or its key; omitted fields stay as they are."""
    return Call("PATCH", CONNECTION, read_json, {"connection_name": connection_name}, body=change)


def delete_connection(connection_name: str) -> Call[None]:
    """Deletes a connection and its keys; jobs that still call it pause."""
    return Call("DELETE", CONNECTION, read_nothing, {"connection_name": connection_name})
