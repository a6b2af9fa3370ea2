"""Sets a process' clock ahead by `CLOCK_OFFSET` seconds, before anything is imported, when this directory is on its path."""

import os
import time

_offset = float(os.environ.get("CLOCK_OFFSET", "0"))
_right_time = time.time

if _offset:
    time.time = lambda: _right_time() + _offset
