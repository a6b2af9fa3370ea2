"""A small file of each kind that can be imported, in the form that its tool writes."""

import base64
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from app.instruments.loader import load_atomic
from app.instruments.personagym_loader import load_personagym

WRITTEN = Path(__file__).parents[2] / "golden" / "imports"
"""What tools wrote themselves."""
SERVICE: dict[str, Any] = {
    "gym_tasks": load_personagym().tasks,
    "built_in": load_atomic().personas,
    "atomic_tasks": load_atomic().tasks,
    "dimensions": load_atomic().dimensions,
}
"""What import options have of the service itself."""
SYSTEM = "You are an extraverted person."
ASKED = "How was your weekend?"
SAID = "I love parties. I talk to everybody."
CHAT: list[dict[str, Any]] = [
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


def archive(files: dict[str, Any]) -> bytes:
    """A zip archive of JSON files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, value in files.items():
            opened.writestr(name, json.dumps(value))
    return made.getvalue()


def archive_of_log(log: dict[str, Any]) -> bytes:
    """A log of Inspect as an archive."""
    samples = {f"samples/{n}.json": sample for n, sample in enumerate(log["samples"])}
    return archive({"header.json": {"eval": log["eval"]}, **samples})


def zstandard_archive(files: dict[str, bytes]) -> bytes:
    """The same packed by Zstandard, as Inspect's archives are; Python writes such ones from 3.14 on."""
    locals_, entries = b"", b""
    for name, content in files.items():
        packed = pa.Codec("zstd").compress(content, asbytes=True)
        common = struct.pack("<HHHHHIII", 20, 0, 93, 0, 0, zlib.crc32(content), len(packed), len(content))
        head = struct.pack("<HH", len(name), 0)
        entries += b"PK\x01\x02" + struct.pack("<H", 20) + common + head
        entries += struct.pack("<HHHII", 0, 0, 0, 0, len(locals_)) + name.encode()
        locals_ += b"PK\x03\x04" + common + head + name.encode() + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(files), len(files), len(entries), len(locals_), 0)
    return locals_ + entries + b"PK\x05\x06" + end


SAMPLE = {
    "id": 1,
    "epoch": 1,
    "input": ASKED,
    "messages": CHAT[:3],
    "output": {
        "model": "openai/gpt-5.6",
        "choices": [{"message": CHAT[2], "stop_reason": "stop"}],
        "completion": SAID,
    },
    "scores": {"includes": {"value": "C"}, "length": {"value": 7}},
}
LOG = {
    "version": 2,
    "status": "success",
    "eval": {"task": "t", "model": "openai/gpt-5.6"},
    "samples": [SAMPLE, SAMPLE],
}
INSPECT_FILES = {
    "_journal/start.json": {"eval": LOG["eval"]},
    "samples/1_epoch_1.json": SAMPLE,
    "samples/1_epoch_2.json": SAMPLE,
    "header.json": {"eval": LOG["eval"]},
}
EVALS_ITEM = {
    "object": "eval.run.output_item",
    "id": "outputitem_1",
    "datasource_item": {"question": ASKED, "answer": "What was expected."},
    "results": [{"name": "grader", "score": 0.5, "passed": True}],
    "sample": {
        "model": "gpt-5.6",
        "input": CHAT[:2],
        "output": [{"role": "assistant", "content": SAID}],
        "error": None,
    },
    "status": "pass",
}
PROMPTFOO_ROW = {
    "promptIdx": 0,
    "testIdx": 0,
    "provider": {"id": "openai:gpt-5.6", "label": "bot"},
    "prompt": {"raw": json.dumps(CHAT[:2]), "label": "chat"},
    "response": {"output": SAID},
    "score": 1,
    "namedScores": {"tone": 0.25},
    "vars": {"question": ASKED},
}
PROMPTFOO_CONFIGURATION = """
prompts:
  - 'As {{persona}}: {{ question }}'
providers: [openai:gpt-5.6]
defaultTest: {vars: {persona: a shy person}}
tests:
  - vars: {question: 'How was it?'}
  - vars: {question: 'And then?', persona: a clown}
"""
LM_EVAL_SAMPLE = {
    "doc_id": 0,
    "doc": {"question": ASKED},
    "target": "loud",
    "arguments": {"gen_args_0": {"arg_0": json.dumps(CHAT[:2]), "arg_1": {"until": ["."]}}},
    "resps": [[SAID, "I danced."]],
    "filtered_resps": [SAID],
    "filter": "none",
    "metrics": ["exact_match"],
    "exact_match": 0.0,
}


def spans(*attributes: dict[str, str]) -> dict[str, Any]:
    """A request of spans with these attributes."""
    listed = [
        {
            "name": "chat",
            "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in each.items()],
        }
        for each in attributes
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": listed}]}]}


def any_value(value: Any) -> dict[str, Any]:
    """A value as OTLP's JSON encoding has it."""
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(each) for each in value]}}
    return {"kvlistValue": {"values": key_values(value)}}


def key_values(members: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(value)} for key, value in members.items()]


def span_of_events(*events: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A request of one span whose messages are events, as up to version 1.36 of the conventions."""
    listed = [{"name": name, "attributes": key_values(fields)} for name, fields in events]
    span = {"name": "chat", "attributes": key_values({"gen_ai.request.model": "gpt-5.6"}), "events": listed}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def log_records(*records: dict[str, Any]) -> dict[str, Any]:
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": list(records)}]}]}


BY_EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("gen_ai.system.message", {"content": SYSTEM}),
    ("gen_ai.user.message", {"content": ASKED}),
    ("gen_ai.choice", {"finish_reason": "stop", "message": {"role": "assistant", "content": SAID}}),
]
STRUCTURED: dict[str, Any] = {
    "gen_ai.request.model": "gpt-5.6",
    "gen_ai.system_instructions": [{"type": "text", "content": SYSTEM}],
    "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": ASKED}]}],
    "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": SAID}]}],
}
BY_CONVENTIONS = {
    "gen_ai.request.model": "gpt-5.6",
    "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}]),
    "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": ASKED}]}]),
    "gen_ai.output.messages": json.dumps(
        [{"role": "assistant", "parts": [{"type": "text", "content": SAID}]}]
    ),
}
INDEXED = {
    "gen_ai.response.model": "gpt-5.6",
    "gen_ai.prompt.0.role": "system",
    "gen_ai.prompt.0.content": SYSTEM,
    "gen_ai.prompt.1.role": "user",
    "gen_ai.prompt.1.content": ASKED,
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": SAID,
}
OF_LANGFUSE = {
    "langfuse.observation.type": "generation",
    "langfuse.observation.model.name": "gpt-5.6",
    "langfuse.observation.input": json.dumps(CHAT[:2]),
    "langfuse.observation.output": json.dumps(CHAT[2]),
}
OBSERVATION = {
    "id": "o-1",
    "traceId": "t-1",
    "type": "GENERATION",
    "model": "gpt-5.6",
    "input": CHAT[:2],
    "output": {"role": "assistant", "content": SAID},
}
TRACE = {
    "id": "t-1",
    "input": None,
    "output": None,
    "observations": [OBSERVATION],
    "scores": [{"name": "tone", "value": 0.5}],
}
EXPORTED = [
    {
        "model": "bot",
        "persona": "duo",
        "task": "social_media_post",
        "dimension": dimension,
        "level": level,
        "item": "post",
        "item_text": None,
        "run": 0,
        "instruction": 2,
        "response_id": "res_1",
        "response_status": "answered",
        "persona_description": "a warm but anxious neighbour",
        "text": SAID,
    }
    for dimension, level in (("A", "high"), ("N", "low"))
]

VERDICTS = [
    {name: value for name, value in row.items() if name != "text"}
    | {
        "unit": unit,
        "unit_text": text,
        "judge": "j-1",
        "status": status,
        "score": score,
        "judged": "sentence",
    }
    for row in EXPORTED
    for unit, (text, status, score) in enumerate(
        [("I love parties.", "scored", 5), ("I talk to everybody.", "not_applicable", None)]
    )
]

RAW_RESPONSES = {
    str(n): {
        "raw_response": "I  love parties.\nI don\u2019t talk.",
        "atomic_response": ["I  love parties.", "I don't talk."],
    }
    for n in range(2)
}

COMPLETION: dict[str, Any] = {
    "model": "bot-1",
    "choices": [{"index": 0, "message": CHAT[2], "finish_reason": "stop"}],
}
PHOENIX_ROW = {
    "span_kind": "LLM",
    "context.trace_id": "t",
    "attributes.llm.input_messages": [
        {"message.role": each["role"], "message.content": each["content"]} for each in CHAT[:2]
    ],
    "attributes.llm.output_messages": [{"message.role": "assistant", "message.content": SAID}],
}
PHOENIX_SPAN = {
    "span_kind": "LLM",
    "context": {"trace_id": "t"},
    "attributes": {
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": SYSTEM,
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": ASKED,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": SAID,
    },
}
LANGSMITH_RUN = {
    "run_type": "llm",
    "inputs": {
        "messages": [
            [
                {"lc": 1, "id": ["langchain", "schema", "messages", name], "kwargs": {"content": text}}
                for name, text in (("SystemMessage", SYSTEM), ("HumanMessage", ASKED))
            ]
        ]
    },
    "outputs": {
        "generations": [[{"text": SAID, "message": {"id": ["AIMessage"], "kwargs": {"content": SAID}}}]]
    },
}

FILES: dict[str, dict[str, bytes]] = {
    "inspect": {
        "log.json": json.dumps(LOG).encode(),
        "log.eval": archive(INSPECT_FILES),
        "packed.eval": zstandard_archive(
            {name: json.dumps(each).encode() for name, each in INSPECT_FILES.items()}
        ),
    },
    "openai_evals": {
        "items.jsonl": json_lines(EVALS_ITEM, EVALS_ITEM),
        "items.json": json.dumps({"object": "list", "data": [EVALS_ITEM]}).encode(),
        "source.jsonl": json_lines(
            *[{"item": {"question": n, "persona": "a clown"}} for n in (ASKED, "And?")]
        ),
    },
    "promptfoo": {
        "out.json": json.dumps(
            {"evalId": "e", "results": {"version": 3, "results": [PROMPTFOO_ROW]}}
        ).encode(),
        "out.jsonl": json_lines(PROMPTFOO_ROW, PROMPTFOO_ROW),
        "out.csv": (WRITTEN / "promptfoo.csv").read_bytes(),
    },
    "promptfoo_configuration": {"promptfooconfig.yaml": PROMPTFOO_CONFIGURATION.encode()},
    "lm_eval": {"samples_t.jsonl": json_lines(LM_EVAL_SAMPLE, LM_EVAL_SAMPLE | {"doc_id": 1})},
    "otlp": {
        "traces.json": json.dumps(spans(BY_CONVENTIONS, INDEXED, OF_LANGFUSE)).encode(),
        "traces.jsonl": json_lines(spans(BY_CONVENTIONS), spans(INDEXED)),
        "events.json": json.dumps(span_of_events(*BY_EVENTS)).encode(),
        "openllmetry.json": (WRITTEN / "openllmetry-chat.json").read_bytes(),
        "logs.jsonl": (WRITTEN / "openai-v2-logs.jsonl").read_bytes(),
        "logs.json": json.dumps(
            log_records(
                {
                    "eventName": "gen_ai.client.inference.operation.details",
                    "attributes": key_values(STRUCTURED),
                }
            )
        ).encode(),
    },
    "langfuse": {
        "observations.jsonl": json_lines(OBSERVATION, OBSERVATION),
        "trace.json": json.dumps(TRACE).encode(),
        "page.json": json.dumps({"data": [OBSERVATION], "meta": {"cursor": None}}).encode(),
        "download.json": json.dumps({"trace": {"id": "t-1"}, "observations": [OBSERVATION]}).encode(),
        "traces.json": json.dumps(
            [
                {
                    "id": "t-1",
                    "timestamp": "2026-01-01",
                    "sessionId": None,
                    "input": CHAT[:2],
                    "output": SAID,
                }
            ]
        ).encode(),
    },
    "personagym": {
        "a cowboy_qa.json": json.dumps(
            {"Expected Action": [[ASKED, SAID]], "Toxicity": [["Why?", "No."]]}
        ).encode(),
        "a cowboy.json": json.dumps({"Expected Action": [ASKED], "Linguistic Habits": ["Why?"]}).encode(),
    },
    "assay": {
        "responses.jsonl": json_lines(*EXPORTED),
        "responses.parquet": parquet(EXPORTED),
        "verdicts.jsonl": json_lines(*VERDICTS),
        "verdicts.parquet": parquet(VERDICTS),
        "responses.csv": (
            ",".join(EXPORTED[0])
            + "\r\n"
            + "\r\n".join(
                ",".join("" if each is None else str(each) for each in row.values()) for row in EXPORTED
            )
        ).encode(),
    },
    "atomic_responses": {
        "persona_E_high_5_20250602-154501.json": json.dumps(RAW_RESPONSES).encode(),
        "persona_E_low_0_20250602-154501.json": json.dumps({"0": RAW_RESPONSES["0"]}).encode(),
    },
    "atomic_scores": {
        "atomic_scores.txt": b"[[[5, 1, 9], [4]], [[2, 2], [999, 3]]]",
        "scores.json": b"[[[5, 4, 3, 4]], [[99]], [[]]]",
    },
    "openai_messages": {
        "chat.jsonl": json_lines({"messages": CHAT}, {"messages": CHAT[:3]}),
        "chat.json": json.dumps([{"messages": CHAT, "model": "bot"}]).encode(),
    },
    "sharegpt": {
        "log.json": json.dumps([SHAREGPT, SHAREGPT]).encode(),
        "log.jsonl": json_lines(SHAREGPT, SHAREGPT),
        "log.parquet": parquet([SHAREGPT, SHAREGPT]),
    },
    "mlflow": {
        "traces.jsonl": (WRITTEN / "mlflow-traces.jsonl").read_bytes(),
        "traces.csv": (WRITTEN / "mlflow-traces.csv").read_bytes(),
        "rows.jsonl": json_lines(
            {
                "trace_id": "t",
                "trace_metadata": {},
                "spans": [
                    {
                        "attributes": {
                            "mlflow.spanType": '"CHAT_MODEL"',
                            "mlflow.spanInputs": json.dumps({"model": "bot-1", "messages": CHAT[:2]}),
                            "mlflow.spanOutputs": json.dumps(COMPLETION),
                        }
                    }
                ],
            }
        ),
    },
    "phoenix": {
        "spans.jsonl": json_lines(PHOENIX_ROW, PHOENIX_ROW),
        "spans.json": json.dumps({"data": [PHOENIX_SPAN]}).encode(),
    },
    "langsmith": {"runs.jsonl": json_lines(LANGSMITH_RUN, LANGSMITH_RUN | {"outputs": COMPLETION})},
    "weave": {
        "calls.jsonl": json_lines({"op_name": "chat", "inputs": {"messages": CHAT[:2]}, "output": COMPLETION})
    },
    "helicone": {
        "requests.jsonl": json_lines({"request_body": {"messages": CHAT[:2]}, "response_body": COMPLETION})
    },
    "braintrust": {
        "logs.jsonl": json_lines(
            {
                "span_attributes": {"type": "llm"},
                "input": CHAT[:2],
                "output": COMPLETION["choices"],
                "metadata": {},
            }
        )
    },
    "opik": {
        "spans.jsonl": json_lines(
            {
                "type": "llm",
                "trace_id": "t",
                "project_id": "p",
                "input": {"messages": CHAT[:2]},
                "output": COMPLETION,
            }
        )
    },
    "litellm": {
        "log.jsonl": json_lines({"call_type": "acompletion", "messages": CHAT[:2], "response": COMPLETION})
    },
    "deepeval": {
        "run.json": (WRITTEN / "deepeval-run.json").read_bytes(),
        "conversation.json": (WRITTEN / "deepeval-conversation.json").read_bytes(),
    },
    "batch": {
        "output.jsonl": json_lines(
            {
                "custom_id": "1",
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {"messages": CHAT[:2]},
            },
            {
                "id": "b",
                "custom_id": "1",
                "response": {"status_code": 200, "body": COMPLETION},
                "error": None,
            },
        ),
        "bedrock.jsonl": json_lines(
            {
                "recordId": "1",
                "modelInput": {"system": SYSTEM, "messages": [CHAT[1]]},
                "modelOutput": {
                    "role": "assistant",
                    "model": "bot-1",
                    "content": [{"type": "text", "text": SAID}],
                },
            }
        ),
        "vertex.jsonl": json_lines(
            {
                "status": "",
                "request": {
                    "contents": [{"role": "user", "parts": [{"text": ASKED}]}],
                    "systemInstruction": {"parts": [{"text": SYSTEM}]},
                },
                "response": {
                    "candidates": [{"content": {"role": "model", "parts": [{"text": SAID}]}}],
                    "modelVersion": "bot-1",
                },
            }
        ),
    },
    "sillytavern": {
        "chat.jsonl": json_lines(
            {"user_name": "U", "character_name": "Ada", "create_date": "2026-01-01", "chat_metadata": {}},
            {"name": "U", "is_user": True, "mes": ASKED},
            {"name": "Ada", "is_user": False, "mes": SAID, "swipes": [SAID, "I danced."], "swipe_id": 0},
        )
    },
    "preferences": {
        "pairs.jsonl": json_lines({"prompt": CHAT[:2], "chosen": CHAT[2:3], "rejected": CHAT[2:3]}),
        "openai.jsonl": json_lines(
            {
                "input": {"messages": CHAT[:2]},
                "preferred_output": CHAT[2:3],
                "non_preferred_output": CHAT[2:3],
            }
        ),
        "sharegpt.json": json.dumps(
            [
                {
                    "conversations": SHAREGPT["conversations"][:2],
                    "chosen": SHAREGPT["conversations"][2],
                    "rejected": {"from": "gpt", "value": "I slept."},
                }
            ]
        ).encode(),
    },
    "message_rows": {
        "chat.jsonl": json_lines(*CHAT[:3]),
        "chat.json": json.dumps(
            [{"role": each["role"], "text": each["content"]} for each in CHAT[:3]]
        ).encode(),
        "chat.csv": f"speaker;message;session_id\r\nsystem;{SYSTEM};1\r\nhuman;{ASKED};1\r\nbot;{SAID};1\r\n".encode(),
    },
    "character_card": {
        "card.json": json.dumps(CARD).encode(),
        "card.png": picture(card_chunk(CARD)),
    },
    "table": {
        "rows.jsonl": json_lines(*ROWS),
        "rows.csv": b"persona,response\r\na shy person,I slept.\r\n",
        "spelling.csv": b"Persona,User Input,modelName,Model Response\r\na shy person,And then?,bot-1,I slept.\r\n",
        "model_response.csv": b"persona,user_input,model_response\r\na shy person,And then?,I slept.\r\n",
        "semicolons.csv": b"\xef\xbb\xbfpersona;antwort;bewertung\r\na shy person;I slept, well.;3,5\r\n",
        "rows.tsv": b"Persona\tTask\tModel\tText\na shy person\tSocial media post\tbot-1\tI slept.\n",
        "sep.csv": b"sep=;\r\npersona;response\r\na shy person;I slept.\r\n",
        "utf-16.txt": "persona\tresponse\r\na shy person\tI slept.\r\n".encode("utf-16"),
        "utf-16.csv": "persona,response\r\na shy person,I slept.\r\n".encode("utf-16-le"),
        "rows.parquet": parquet(ROWS),
    },
}
"""Files by name, by kind."""
