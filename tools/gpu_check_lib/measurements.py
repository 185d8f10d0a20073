"""The stages that measure: the 16B benchmark, vendor libraries, transformers, loading."""

import re
import shutil
import sys

from gpu_check_lib import program
from gpu_check_lib.place import assay_run, json_lines

# MODEL_ARGS of the 16B case, with positions for a decode at context 4,096.
SHAPES = (
    "--num-layers 27 --hidden-size 2048 --num-attention-heads 16 --kv-channels 128 --ffn-hidden-size 10944"
    " --num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 1408 --moe-shared-expert-intermediate-size 2816"
    " --moe-router-score-function sigmoid --normalization RMSNorm --swiglu --position-embedding-type rope"
    " --rotary-base 1000000 --untie-embeddings-and-output-weights --disable-bias-linear"
    " --max-position-embeddings 8192 --vocab-size 131072 --tokenizer-type NullTokenizer --bf16"
)
SHAPES_NAME = "SIXTEEN_B"  # of these words in the commands of the table
TWIN = "testcases/gpt/gpt_static_inference_tp1_pp1_16b_random_weights"
CHECKPOINT = (  # of that case, see its README
    "--layers 27 --hidden 2048 --heads 16 --kv-channels 128 --ffn 10944 --vocab 131072 --max-positions 4096"
    " --rotary-base 1000000 --experts 64 --topk 6 --moe-ffn 1408 --shared 2816 --router sigmoid --dtype bf16"
    " --seed 16 --std 0.03 --residual-std 0.00002 --files 16"
)


def bench(place, report, words, what, name):
    """The lines of `assay bench ... --json`; none where it failed, which is a check of the report then."""
    shapes = SHAPES.replace("--num-layers 27", "--num-layers 2") if place.quick else SHAPES
    command = [place.program("assay"), "bench", *words, "--random-weights", "--backend", "cuda"]
    done = program.run([*command, "--no-kernels", "--json", "--", *shapes.split()], place, name, 200)
    shown = f"{program.shown(command, place)} -- ${SHAPES_NAME}"
    lines = json_lines(done.output)
    if done.code != 0 or not lines:
        report.check(f"benchmark: {what}", False, done.trouble() or "it printed nothing", shown)
        return [], shown
    return lines, shown


def stage_bench(place, report):
    """the 16B benchmark: decode, prefill, 64 requests at once, prefill=fast"""
    rounds = ["--rounds", "2", "--steps", "8"] if place.quick else []
    bandwidths = []
    jobs = (
        ("decode", ["decode", "--context", "128,1024,4096", *rounds], ""),
        ("prefill", ["prefill", "--context", "128,512,1024,4096", *rounds], ""),
        ("64 requests", ["decode", "--context", "128", "--concurrency", "64", *rounds], ""),
        (
            "prefill=fast",
            ["prefill", "--context", "128,1024,4096", "--backend-options", '{"prefill":"fast"}', *rounds],
            "fast_",
        ),
    )
    for what, words, prefix in jobs:
        lines, shown = bench(place, report, words, what, f"bench_{what.replace(' ', '_').replace('=', '_')}")
        before = len(report.data["values"])
        for line in lines:
            if line.get("read_bandwidth"):
                bandwidths.append((line["read_bandwidth"] / 1e12, shown))
            if line["what"] == "decode":
                report.value(f"decode_{line['context']}", line["ms"], shown)
                report.value(f"decode_{line['context']}_fraction", 100 * line["fraction"], shown)
            elif line["what"] == "prefill":
                report.value(f"{prefix}prefill_{line['tokens']}", line["ms"], shown)
            elif line["what"] == "engine":
                report.value(f"engine_{line['requests']}", line["tokens_per_second"], shown)
        if lines and len(report.data["values"]) == before:
            report.check(f"benchmark: {what}", False, "it printed no measurement", shown)
    if bandwidths:
        value, shown = min(bandwidths)
        report.value("read_bandwidth", value, shown, f"lowest of {len(bandwidths)}" if len(bandwidths) > 1 else "")


def stage_vendor(place, report):
    """cuBLASLt and cuDNN beside our own kernels, layer by layer"""
    tokens = ["128"] if place.quick else []
    done = program.run([place.program("cuda_vendor_bench"), *tokens], place, "vendor", 120)
    found = {"cublaslt": 0, "cudnn": 0}
    for line in done.output.splitlines():
        words = line.split()
        if line.startswith("#") or len(words) != 3:
            continue
        try:
            value = float(words[1])
        except ValueError:
            continue
        report.value(words[0], value, done.command, words[2])
        for library in found:
            found[library] += library in words[0]
    for library, count in found.items():
        detail = f"{count} measurements" if count else done.trouble() or "no line of it was printed"
        report.check(f"vendor: {library} was measured", count > 0 and done.code == 0, detail, done.command)


def stage_peers(place, report):
    """Hugging Face transformers on the same GPU, same shapes: compiled decode, eager prefill"""
    command = [sys.executable, place.root / "bench/peers/transformers_bench.py"]
    command += ["--shapes", "tiny", "--rounds", "2", "--steps", "8"] if place.quick else []
    done = program.run(command, place, "peers", 200)
    lines = json_lines(done.output)
    about = next((line for line in lines if line["what"] == "transformers"), {})
    for line in lines:
        if "error" in line:
            report.check(f"transformers: {line['what']} of {line['tokens']}", False, line["error"], done.command)
        elif line["what"] == "decode":
            note = f"{line['way']}; transformers {about.get('version')}, PyTorch {about.get('torch')}"
            report.value("peer_decode", line["ms"], done.command, note)
        elif line["what"] == "prefill":
            report.value(f"peer_prefill_{line['tokens']}", line["ms"], done.command, line["way"])
    if not lines or done.code is None:
        report.check("transformers: the run", False, done.trouble(), done.command)


def stage_load(place, report):
    """loading the 16B checkpoint: raw read, ours, PyTorch's; then the random-weight case on it"""
    if place.checkpoint is not None:
        use_checkpoint(place, report, place.checkpoint)
    else:
        use_new_checkpoint(place, report)
    measure_cold_load(place, report)


def use_new_checkpoint(place, report):
    folder = place.scratch / "gpu_check_16b"
    shapes = CHECKPOINT.replace("--layers 27", "--layers 1") if place.quick else CHECKPOINT
    try:
        command = [place.program("make_checkpoint"), "-o", folder, *shapes.split()]
        made = program.run(command, place, "make_checkpoint", 200)
        detail = made.trouble() or f"{made.seconds:.0f} s"
        report.check("load: a checkpoint is written", made.code == 0, detail, made.command)
        if made.code == 0:
            use_checkpoint(place, report, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def bench_load(place, report, folder, words, name):
    """The line of `assay bench load` and its command; None where it failed, which is a check of the report then."""
    command = [place.program("assay"), "bench", "load", "--checkpoint", folder, "--backend", "cuda", *words, "--json"]
    done = program.run(command, place, name, 200)
    lines = [line for line in json_lines(done.output) if line.get("what") == "load"]
    if done.code == 0 and lines:
        return lines[-1], done.command
    what = " ".join(["load: assay bench load", *words])
    report.check(what, False, done.trouble() or "it printed no measurement", done.command)
    return None, done.command


def measure_cold_load(place, report):
    """A smaller checkpoint that comes from the disk: files in memory can be read faster than the device takes them."""
    folder = place.out / "cold_checkpoint"
    shapes = CHECKPOINT.replace("--layers 27", "--layers 1" if place.quick else "--layers 3")
    try:
        made = program.run([place.program("make_checkpoint"), "-o", folder, *shapes.split()], place, "make_cold", 100)
        line, command = bench_load(place, report, folder, ["--rounds", "1", "--cold"], "load_cold")
        if line is not None:
            raw = f"raw read {line['raw_gb_per_s']:.2f} GB/s, {line['tensor_bytes'] / 1e9:.1f} GB"
            report.value("load_cold_fraction", 100 * line["fraction"], command, raw)
        elif made.code != 0:
            report.check("load: a checkpoint is written to the disk", False, made.trouble(), made.command)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def use_checkpoint(place, report, folder):
    measure_load(place, report, folder)
    if not place.quick:
        words = [TWIN, "--set", f"RANDOM_16B_CHECKPOINT={folder}"]
        assay_run(place, report, "16B with random weights: cuda against cpu's golden", words, 200, "twin")


def measure_load(place, report, folder):
    line, command = bench_load(place, report, folder, ["--rounds", "2"], "load")
    if line is not None:
        report.value("load", line["gb_per_s"], command, f"{line['seconds']:.2f} s, files in memory")
        report.value("load_fraction", 100 * line["fraction"], command, f"raw read {line['raw_gb_per_s']:.1f} GB/s")
        report.value("load_memory", line["host_peak_bytes"] / 1e9, command)
    peer = program.run(
        [sys.executable, place.root / "bench/peers/dcp_load.py", folder, "--repeat", "1"], place, "dcp_load", 200
    )
    rates = [float(rate) for rate in re.findall(r"dcp load \d+: [\d.]+ s, ([\d.]+) GB/s", peer.output)]
    if peer.code != 0 or not rates:
        report.check("load: PyTorch's reader", False, peer.trouble() or "it printed no measurement", peer.command)
    else:
        report.value("peer_load", max(rates), peer.command, "GB/s")
