"""One process of the service by itself, which is to end at once."""

import os
import subprocess
from pathlib import Path

from embedded.services import StackConfig, StackUrls, service_commands


def started_alone(
    part: str, data_dir: Path, database_url: str, redis_url: str
) -> subprocess.CompletedProcess[str]:
    """Starts a worker or the sweeper as the supervisor does, and waits until it has ended."""
    config = StackConfig(host="127.0.0.1", port=0, data_dir=data_dir, workers=1)
    urls = StackUrls("127.0.0.1", 0, database_url, redis_url, 9)
    [spec] = [each for each in service_commands(config, urls) if each.name == part]
    return subprocess.run(
        spec.argv,
        env=os.environ | urls.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
