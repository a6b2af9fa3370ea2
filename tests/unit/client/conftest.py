from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from persona_assay import AssayClient
from tests.unit.client.blocking import blocking

Opens = Callable[..., AbstractContextManager[AssayClient]]


@pytest.fixture(params=[AssayClient, blocking], ids=["sync", "async"])
def opened(request: pytest.FixtureRequest) -> Opens:
    """Opens a client of either kind."""
    made: Opens = request.param
    return made
