#!/usr/bin/env python3
"""Hugging Face transformers on a GPU, in the shapes of the 16B mixture of experts: the yardstick beside our decode and
prefill. Class Glm4Moe (the one of the library with these shapes: sigmoid router, shared expert), random bf16 weights
made on the device, batch 1.

  decode   static cache, torch.compile, one CUDA graph a step: seconds a token at a context, median of rounds
  prefill  eager: ids on the device to the argmax of the last position, median

Prints one JSON object a line: {"what", "tokens", "ms", "lowest_ms", "way", ...}; the first one says what ran. A way
that fails is a line with "error", and the exit code is 1.
"""

import argparse
import json
import statistics
import sys
import time

# What goes through torch.compile, and how the library multiplies experts. "layers": each layer alone (their code is the
# same, so compiling is short), the step captured in a CUDA graph by this script. "model": the whole step, with mode
# reduce-overhead. "generate": the library's own loop with its static cache, which compiles the step in that mode.
WAYS = [("layers", "batched_mm"), ("layers", "grouped_mm"), ("model", "batched_mm"), ("generate", "batched_mm")]
SHAPES = {
    "16b": dict(
        vocab_size=131072,
        hidden_size=2048,
        num_hidden_layers=27,
        num_attention_heads=16,
        num_key_value_heads=16,
        head_dim=128,
        intermediate_size=10944,
        moe_intermediate_size=1408,
        n_shared_experts=2,
        n_routed_experts=64,
        num_experts_per_tok=6,
        max_position_embeddings=8192,
    ),
    "tiny": dict(  # to see that this script runs, on any device
        vocab_size=512,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=16,
        intermediate_size=96,
        moe_intermediate_size=32,
        n_shared_experts=2,
        n_routed_experts=8,
        num_experts_per_tok=2,
        max_position_embeddings=8192,
    ),
}


def say(**line):
    print(json.dumps(line), flush=True)


def make_model(torch, args, device):
    from transformers import Glm4MoeConfig, Glm4MoeForCausalLM
    from transformers.models.glm4_moe.modeling_glm4_moe import Glm4MoeRotaryEmbedding

    config = Glm4MoeConfig(
        **SHAPES[args.shapes],
        first_k_dense_replace=0,
        n_group=1,
        topk_group=1,
        num_nextn_predict_layers=0,
        partial_rotary_factor=1.0,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 1.0},
    )
    config._attn_implementation = "sdpa"
    with torch.device("meta"):
        model = Glm4MoeForCausalLM(config)
    model = model.to(torch.bfloat16).to_empty(device=device).eval()
    generator = torch.Generator(device=device).manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.fill_(1)
            else:
                parameter.normal_(0, 0.02, generator=generator)
        for name, buffer in model.named_buffers():
            if "correction_bias" in name:
                buffer.zero_()
    model.model.rotary_emb = Glm4MoeRotaryEmbedding(config).to(device)
    for layer in model.model.layers:  # fp32, as the library keeps it
        layer.mlp.gate.e_score_correction_bias = torch.nn.Buffer(
            torch.zeros(config.n_routed_experts, dtype=torch.float32, device=device)
        )
    return model


def use_experts(model, way):
    for module in model.modules():
        if hasattr(module, "config"):
            module.config._experts_implementation = way


class Clock:
    """Milliseconds between two points of the stream, or of the processor where there is no GPU."""

    def __init__(self, torch, device):
        self.cuda = torch.cuda if device == "cuda" else None

    def time(self, work):
        if self.cuda is None:
            begin = time.perf_counter()
            work()
            return (time.perf_counter() - begin) * 1000
        begin, end = self.cuda.Event(enable_timing=True), self.cuda.Event(enable_timing=True)
        self.cuda.synchronize()
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)


class Decoder:
    """One greedy step after another over a static cache. The token and the position stay on the device."""

    def __init__(self, torch, model, longest, device):
        from transformers import StaticCache

        self.torch = torch
        self.model = model
        self.cache = StaticCache(config=model.config, max_cache_len=longest)
        self.token = torch.full((1, 1), 7, dtype=torch.long, device=device)
        self.position = torch.zeros((1, 1), dtype=torch.long, device=device)
        self.forward()  # the cache takes its memory

    def forward(self):
        logits = self.model(
            input_ids=self.token,
            position_ids=self.position,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits
        return logits[:, -1].argmax(-1, keepdim=True)

    def step(self):
        self.token.copy_(self.forward())
        self.position.add_(1)

    def go_to(self, context):
        self.position.fill_(context)
        for layer in self.cache.layers:
            layer.cumulative_length.fill_(context)


def measure_decode(torch, args, model, device, context, way):
    compiled, experts = way
    if compiled == "generate":
        return measure_generate(torch, args, model, device, context, experts)
    use_experts(model, experts)
    torch._dynamo.reset()
    clock = Clock(torch, device)
    begin = time.perf_counter()
    decoder = Decoder(torch, model, -(-(context + args.steps + 64) // 128) * 128, device)
    layers = list(model.model.layers)
    original = [layer.forward for layer in layers]
    try:
        if compiled == "layers":
            for layer in layers:
                layer.forward = torch.compile(layer.forward, dynamic=False)
            step = decoder.step
            if device == "cuda":
                decoder.go_to(context)
                side = torch.cuda.Stream()
                with torch.cuda.stream(side):
                    for _ in range(3):
                        decoder.step()
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    decoder.step()
                step = graph.replay
        else:
            decoder.forward = torch.compile(decoder.forward, mode="reduce-overhead", dynamic=False)
            step = decoder.step
        for _ in range(5):
            decoder.go_to(context)
            step()
        made = time.perf_counter() - begin

        def steps():
            for _ in range(args.steps):
                step()

        found = []
        for _ in range(args.rounds):
            decoder.go_to(context)
            found.append(clock.time(steps) / args.steps)
    finally:
        for layer, forward in zip(layers, original):
            layer.forward = forward
    say(
        what="decode",
        tokens=context,
        ms=statistics.median(found),
        lowest_ms=min(found),
        way=f"static cache, torch.compile of {compiled}, {experts}",
        compile_seconds=round(made, 1),
    )


def measure_generate(torch, args, model, device, context, experts):
    use_experts(model, experts)
    torch._dynamo.reset()
    clock = Clock(torch, device)
    begin = time.perf_counter()
    ids = torch.randint(0, model.config.vocab_size, (1, context), device=device)
    settings = dict(do_sample=False, cache_implementation="static", eos_token_id=None, pad_token_id=0)

    def generate(tokens):  # one cache size for both lengths: it is made for the longest call so far
        model.generate(ids, max_new_tokens=tokens, min_new_tokens=tokens, **settings)

    for tokens in (args.steps + 1, 2, args.steps + 1):
        generate(tokens)
    made = time.perf_counter() - begin
    found = [
        (clock.time(lambda: generate(args.steps + 1)) - clock.time(lambda: generate(1))) / args.steps
        for _ in range(args.rounds)
    ]
    say(
        what="decode",
        tokens=context,
        ms=statistics.median(found),
        lowest_ms=min(found),
        way=f"generate with a static cache, {experts}",
        compile_seconds=round(made, 1),
    )


def measure_prefill(torch, args, model, device, tokens):
    from transformers import StaticCache

    use_experts(model, "grouped_mm")
    clock = Clock(torch, device)
    ids = torch.randint(0, model.config.vocab_size, (1, tokens), device=device)
    found = []
    for number in range(args.rounds + 2):
        cache = StaticCache(config=model.config, max_cache_len=tokens)

        def work():
            out = model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
            out.logits[:, -1].argmax(-1)

        taken = clock.time(work)
        if number >= 2:  # the first ones warm up
            found.append(taken)
    say(what="prefill", tokens=tokens, ms=statistics.median(found), lowest_ms=min(found), way="eager, grouped_mm")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", choices=SHAPES, default="16b")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--decode", type=int, nargs="*", default=[128], metavar="CONTEXT")
    parser.add_argument("--prefill", type=int, nargs="*", default=[128, 512, 1024, 4096], metavar="TOKENS")
    parser.add_argument("--ways", type=int, nargs="*", default=[0], help=f"of decode, from {list(enumerate(WAYS))}")
    parser.add_argument("--steps", type=int, default=64, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if not all(0 <= way < len(WAYS) for way in args.ways):
        parser.error(f"--ways: expected numbers of 0 .. {len(WAYS) - 1}")
    if min([1, args.steps, args.rounds, *args.decode, *args.prefill]) < 1:
        parser.error("--decode, --prefill, --steps, --rounds: expected numbers of at least 1")
    begin = time.perf_counter()
    try:
        import torch
        import transformers
    except ImportError as error:
        sys.exit(f"transformers_bench: PyTorch and transformers are needed: {error}")

    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("transformers_bench: no CUDA device; --device cpu --shapes tiny shows that the script runs")
    torch.set_grad_enabled(False)
    torch._dynamo.config.recompile_limit = 64  # a layer's number is a constant of its code: one variant a layer
    imported = time.perf_counter() - begin
    model = make_model(torch, args, args.device)
    if args.device == "cuda":
        torch.cuda.synchronize()
    say(
        what="transformers",
        version=transformers.__version__,
        torch=torch.__version__,
        device=torch.cuda.get_device_name() if args.device == "cuda" else "cpu",
        shapes=args.shapes,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        import_seconds=round(imported, 1),
        seconds=round(time.perf_counter() - begin, 1),
    )
    failed = False
    todo = [(measure_decode, context, (WAYS[way],)) for context in args.decode for way in args.ways]
    todo += [(measure_prefill, tokens, ()) for tokens in args.prefill]
    for measure, tokens, more in todo:
        try:
            measure(torch, args, model, args.device, tokens, *more)
        except Exception as error:  # one way that does not work must not cost the others their figures
            failed = True
            say(what=measure.__name__[8:], tokens=tokens, error=f"{type(error).__name__}: {str(error)[:500]}")
    say(what="end", seconds=round(time.perf_counter() - begin, 1))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
