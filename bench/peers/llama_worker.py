"""llama.cpp on the processor as a worker of compare.py, through the C interface that llama_cpp binds.

llama_worker.py GGUF_FILE VOCABULARY THREADS
"""
import ctypes
import json
import sys

import llama_cpp as llama
import numpy as np

import worker

MOST_TOKENS = 1024
PROMPT_TOKENS = 512  # of one pass

_silent = llama.llama_log_callback(lambda level, text, data: None)


class Model:
    def __init__(self, file, vocab, threads):
        llama.llama_log_set(_silent, ctypes.c_void_p(0))
        llama.llama_backend_init()
        settings = llama.llama_model_default_params()
        settings.use_mmap = False  # read into memory of its own, as the others do
        self.model = llama.llama_model_load_from_file(file.encode(), settings)
        if not self.model:
            sys.exit(f"llama_worker: llama.cpp cannot load {file}")
        context = llama.llama_context_default_params()
        context.n_ctx = MOST_TOKENS
        context.n_batch = context.n_ubatch = PROMPT_TOKENS
        context.n_threads = context.n_threads_batch = threads
        context.no_perf = True
        self.context = llama.llama_init_from_model(self.model, context)
        if not self.context:
            sys.exit("llama_worker: llama.cpp cannot make a context")
        self.vocab = vocab
        self.batch = llama.llama_batch_init(MOST_TOKENS, 0, 1)
        self.past = 0

    def restart(self):
        llama.llama_memory_clear(llama.llama_get_memory(self.context), False)
        self.past = 0

    def logits(self, ids, all_rows=False):
        batch = self.batch
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i] = token
            batch.pos[i] = self.past + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = all_rows or i + 1 == len(ids)
        if llama.llama_decode(self.context, batch) != 0:
            sys.exit("llama_worker: llama_decode failed")
        self.past += len(ids)
        rows = [i for i in range(len(ids)) if batch.logits[i]]
        found = [llama.llama_get_logits_ith(self.context, i) for i in rows]
        return np.array([np.ctypeslib.as_array(row, (self.vocab,)) for row in found])

    def feed(self, ids):
        return int(self.logits(ids)[-1].argmax())

    def score(self, ids):
        rows = self.logits(ids, True).astype(np.float64)
        top = rows.max(-1, keepdims=True)
        logprobs = rows - top - np.log(np.exp(rows - top).sum(-1, keepdims=True))
        following = ids[1:] + ids[:1]
        return [(int(row.argmax()), row.max(), row[f]) for row, f in zip(logprobs, following)]


def main():
    model = Model(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    flags = llama.llama_print_system_info().decode()
    version = f"llama.cpp of llama-cpp-python {llama.__version__}"
    print(json.dumps({"device": version, "flags": flags}), flush=True)
    worker.serve(model, model.vocab)


if __name__ == "__main__":
    main()
