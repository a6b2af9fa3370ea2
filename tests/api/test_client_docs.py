"""The examples of docs/client.md and of the README, run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from persona_assay import AssayClient
from tests.api.service import Service

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "client.md"
EXAMPLES = [
    example
    for page in (PAGE, ROOT / "README.md")
    for example in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
]
TOLD = (
    r"calls, 0.0 dollars.*E-high [01]\.\d+ .*n = .*(pass|inconclusive) \[.*422 invalid \[\('/tasks/0'",
    r"completed (\d+)/\1\n[01]\.\d+",
    r"^(pass|fail|inconclusive)\n$",
)


@pytest.mark.parametrize(("example", "told"), list(zip(EXAMPLES, TOLD, strict=True)))
def test_an_example_does_what_it_says(stack: Service, tmp_path: Path, example: str, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", example],
        env={"ASSAY_URL": stack.url},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(told, done.stdout, re.DOTALL), done.stdout


def test_the_page_names_every_method() -> None:
    methods = {name for name in vars(AssayClient) if not name.startswith("_")} - {"close", "send", "url"}
    table = PAGE.read_text("utf-8").partition("| methods | |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", table)) == methods
