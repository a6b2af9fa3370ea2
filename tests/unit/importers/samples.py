"""A small file of each kind that can be imported, in the form that its tool writes."""

import base64
import io
import json
import struct
import zlib
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SYSTEM = "You are an extraverted person."
ASKED = "How was your weekend?"
SAID = "I love parties. I talk to everybody."
CHAT = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": ASKED},
    {"role": "assistant", "content": SAID},
    {"role": "user", "content": "And then?"},
    {"role": "assistant", "content": [{"type": "text", "text": "I danced until four."}]},
]
SHAREGPT = {
    "id": "1",
    "conversations": [
        {"from": "system", "value": SYSTEM},
        {"from": "human", "value": ASKED},
        {"from": "gpt", "value": SAID},
    ],
}
CARD = {
    "spec": "chara_card_v2",
    "spec_version": "2.0",
    "data": {
        "name": "Ada",
        "description": "{{char}} is a blunt critic of {{user}}.",
        "personality": "blunt, witty",
        "scenario": "A theatre.",
        "first_mes": "Well?",
        "mes_example": "",
        "extensions": {},
    },
}
ROWS = [
    {"persona": "a shy person", "prompt": ASKED, "response": "I read at home.", "model": "bot-1"},
    {"persona": "a shy person", "prompt": ASKED, "response": "I slept.", "model": "bot-2"},
]


def chunk(kind: bytes, body: bytes) -> bytes:
    """A chunk of a PNG picture."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def picture(*texts: bytes) -> bytes:
    """A picture of one pixel with chunks of text."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    image = chunk(b"IDAT", zlib.compress(b"\0\0"))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(texts) + image + chunk(b"IEND", b"")


def card_chunk(card: Any, keyword: bytes = b"chara") -> bytes:
    return chunk(b"tEXt", keyword + b"\0" + base64.b64encode(json.dumps(card).encode()))


def json_lines(*values: Any) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


FILES: dict[str, dict[str, bytes]] = {
    "openai_messages": {
        "chat.jsonl": json_lines({"messages": CHAT}, {"messages": CHAT[:3]}),
        "chat.json": json.dumps([{"messages": CHAT, "model": "bot"}]).encode(),
    },
    "sharegpt": {
        "log.json": json.dumps([SHAREGPT, SHAREGPT]).encode(),
        "log.jsonl": json_lines(SHAREGPT, SHAREGPT),
    },
    "character_card": {
        "card.json": json.dumps(CARD).encode(),
        "card.png": picture(card_chunk(CARD)),
    },
    "table": {
        "rows.jsonl": json_lines(*ROWS),
        "rows.csv": b"persona,response\r\na shy person,I slept.\r\n",
        "rows.parquet": parquet(ROWS),
    },
}
"""Files by name, by kind."""
