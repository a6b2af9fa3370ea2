"""Writes a llama model of one layer with random weights, whose tokens are bytes: `python tiny_model.py FILE`.

It runs in the environment of llama.cpp's server, so it imports nothing of the project.
"""

import sys

import gguf
import numpy as np

SPECIAL = (b"<unk>", b"<s>", b"</s>")
NORMAL_TYPES = {"unknown": 2, "control": 3, "byte": 6}
TOKENS = len(SPECIAL) + 256
WIDTH, HEADS, HIDDEN = 32, 2, 64
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def write(path: str) -> None:
    """Writes the model; the same one every time."""
    writer, random = gguf.GGUFWriter(path, "llama"), np.random.default_rng(0)
    writer.add_context_length(8192)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(TOKENS)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([*SPECIAL, *(f"<0x{byte:02X}>".encode() for byte in range(256))])
    writer.add_token_scores([0.0] * TOKENS)
    kinds = NORMAL_TYPES
    writer.add_token_types([kinds["unknown"], kinds["control"], kinds["control"], *[kinds["byte"]] * 256])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    shapes = {
        "token_embd": (TOKENS, WIDTH),
        "output": (TOKENS, WIDTH),
        **{f"blk.0.attn_{part}": (WIDTH, WIDTH) for part in ("q", "k", "v", "output")},
        "blk.0.ffn_gate": (HIDDEN, WIDTH),
        "blk.0.ffn_up": (HIDDEN, WIDTH),
        "blk.0.ffn_down": (WIDTH, HIDDEN),
    }
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", (random.standard_normal(shape) * 0.5).astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(sys.argv[1])
