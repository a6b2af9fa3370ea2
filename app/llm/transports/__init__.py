"""How a request gets to a provider and a reply back: through the official SDK, or a lean HTTP/1.1 client beside it."""

from typing import Literal

TransportKind = Literal["lean", "sdk"]
