"""The rows of the table: what is measured, what it must be and what is aimed at. The one place for these numbers."""

from dataclasses import dataclass

STAGE_NAMES = ["tests", "cases", "sanitize", "replay", "bench", "vendor", "peers", "load"]
LEAST_BANDWIDTH = 4.2  # TB/s: a device that reads slower says nothing about ours
SLOWEST_PEER = 8.0  # ms a token: a compiled run of transformers that is slower is no yardstick


@dataclass(frozen=True)
class Row:
    key: str  # of the value, or of what derive() makes of several
    what: str
    unit: str
    stage: str
    must: float | None = None  # None: reported
    aim: float | None = None
    more: bool = False  # more is better; else less
    digits: int = 2
    ratio: bool = False  # void where the device or the peer is no yardstick


ROWS = [
    Row("read_bandwidth", "read bandwidth of the device", "TB/s", "bench", LEAST_BANDWIDTH, None, more=True),
    Row("decode_128", "16B: decode, batch 1, context 128", "ms/token", "bench", 1.60, 1.40, digits=3),
    Row("decode_128_fraction", "… of the read bandwidth", "%", "bench", 75, 86, more=True, digits=1, ratio=True),
    Row("decode_1024", "16B: decode at context 1,024", "ms/token", "bench", digits=3),
    Row("decode_1024_fraction", "… of the read bandwidth", "%", "bench", more=True, digits=1, ratio=True),
    Row("decode_4096", "16B: decode at context 4,096", "ms/token", "bench", digits=3),
    Row("decode_4096_fraction", "… of the read bandwidth", "%", "bench", 72, 85, more=True, digits=1, ratio=True),
    Row("prefill_128", "16B: prefill of 128 tokens", "ms", "bench", 13, 10),
    Row("prefill_512", "16B: prefill of 512 tokens", "ms", "bench", 13, 10),
    Row("prefill_1024", "16B: prefill of 1,024 tokens", "ms", "bench", 13, 10),
    Row("prefill_4096", "16B: prefill of 4,096 tokens", "ms", "bench", 70, 45, digits=1),
    Row("engine_64", "16B: engine buffered, 64 requests, decode", "tokens/s", "bench", 5500, 6900, more=True, digits=0),
    Row("fast_prefill_128", "prefill=fast: 128 tokens", "ms", "bench"),
    Row("fast_prefill_1024", "prefill=fast: 1,024 tokens", "ms", "bench"),
    Row("fast_prefill_4096", "prefill=fast: 4,096 tokens", "ms", "bench", digits=1),
    Row("peer_decode", "transformers, compiled: decode at context 128", "ms/token", "peers", SLOWEST_PEER, digits=3),
    Row("peer_ratio", "decode at 128: times as fast as transformers", "×", "peers", 4, None, more=True, ratio=True),
    Row("peer_prefill_128", "transformers, eager: prefill of 128 tokens", "ms", "peers", digits=1),
    Row("peer_prefill_512", "transformers, eager: prefill of 512 tokens", "ms", "peers", digits=1),
    Row("peer_prefill_1024", "transformers, eager: prefill of 1,024 tokens", "ms", "peers", digits=1),
    Row("peer_prefill_4096", "transformers, eager: prefill of 4,096 tokens", "ms", "peers", digits=1),
    Row(
        "vectors_delta",
        "fp32 models: largest difference of a logprob to Megatron-LM's",
        "nats",
        "tests",
        1e-4,
        1e-5,
        digits=7,
    ),
    Row("load", "16B: load of a torch_dist checkpoint", "GB/s", "load", digits=1, more=True),
    Row("load_fraction", "… of a parallel raw read of its files", "%", "load", 80, None, more=True, digits=1),
    Row("load_ratio", "… times as fast as PyTorch's reader", "×", "load", 2, None, more=True),
    Row("load_memory", "… host memory above the mapping, peak", "GB", "load", 2.0, None),
    Row(
        "load_cold_fraction",
        "3 layers of it from the disk: of a parallel raw read",
        "%",
        "load",
        80,
        more=True,
        digits=1,
    ),
]


def derive(values):
    """Values that stages give, and the ratios that follow from values of several stages."""
    found = dict(values)

    def ratio(key, above, below):
        if above in values and below in values and values[below]["value"] > 0:
            quotient = values[above]["value"] / values[below]["value"]
            found[key] = {"value": quotient, "command": "from the rows above", "note": ""}

    ratio("peer_ratio", "peer_decode", "decode_128")
    ratio("load_ratio", "load", "peer_load")
    return found


def why_void(row, values):
    """Why a ratio says nothing; "" where it does."""
    if not row.ratio:
        return ""
    bandwidth = values.get("read_bandwidth")
    if bandwidth is None:
        return "void: the read bandwidth was not measured"
    if bandwidth["value"] < LEAST_BANDWIDTH:
        return f"void: the device reads below {LEAST_BANDWIDTH} TB/s"
    peer = values.get("peer_decode")
    if row.key == "peer_ratio" and peer is not None and peer["value"] > SLOWEST_PEER:
        return f"void: the compiled transformers run is slower than {SLOWEST_PEER:g} ms"
    return ""


def misses(values):
    """Keys of values that miss their must. Ratios that are void count as missed only in the merged table."""
    return [
        row.key
        for row in ROWS
        if row.key in values and not why_void(row, values) and judge(row, values[row.key]["value"])[1]
    ]


def judge(row, value):
    """(word for the table, missed)"""
    if row.must is None:
        return "reported", False
    reaches = (lambda limit: value >= limit) if row.more else (lambda limit: value <= limit)
    if not reaches(row.must):
        return "**MISSED**", True
    if row.aim is not None and reaches(row.aim):
        return "met, aim met", False
    return "met", False
