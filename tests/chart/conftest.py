import shutil
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "build" / "chart" / "bin"


@pytest.fixture(scope="session")
def helm() -> str:
    """The path of helm."""
    found = shutil.which("helm", path=str(TOOLS)) or shutil.which("helm")
    if found is None:
        pytest.skip("needs helm: make test-chart gets it")
    return found
