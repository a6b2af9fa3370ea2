"""Refused keys are reported to the operator."""

import asyncio

import pytest
from structlog.testing import capture_logs

from app.services.keys.refused_keys import REPORT_SECONDS, RefusedKeys
from app.telemetry.metrics import REGISTRY

pytestmark = pytest.mark.usefixtures("virtual_time")


async def test_a_flood_of_wrong_keys_is_counted_and_is_one_line_of_the_log() -> None:
    before = REGISTRY.get_sample_value("assay_keys_refused_total") or 0.0
    refused = RefusedKeys()
    with capture_logs() as lines:
        for _ in range(2000):
            refused.note("unknown API key", "192.0.2.1")
        await asyncio.sleep(REPORT_SECONDS)
        refused.note("the key has expired", None)
        await asyncio.sleep(REPORT_SECONDS)
    assert [(line["event"], line["number"], line["reason"], line["client"]) for line in lines] == [
        ("API keys refused", 2000, "unknown API key", "192.0.2.1"),
        ("API keys refused", 1, "the key has expired", None),
    ]
    assert REGISTRY.get_sample_value("assay_keys_refused_total") == before + 2001
