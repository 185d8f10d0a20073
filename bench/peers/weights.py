"""The weights of one of our checkpoints (torch_dist), read by PyTorch itself."""
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp


def read(folder):
    """Tensors by their names in the checkpoint; layers stacked: (layers, ...)."""
    step = (Path(folder) / "latest_checkpointed_iteration.txt").read_text().strip()
    place = Path(folder) / f"iter_{int(step):07d}"
    reader = dcp.FileSystemReader(str(place))
    wanted = {
        name: torch.empty(entry.size, dtype=entry.properties.dtype)
        for name, entry in reader.read_metadata().state_dict_metadata.items()
        if hasattr(entry, "size")
    }
    dcp.load(wanted, storage_reader=dcp.FileSystemReader(str(place)), no_dist=True)
    return wanted


def layer(tensors, index):
    """One layer's tensors under short names. qkv: (groups, queries a group + 2, channels, hidden), flattened."""
    short = {
        "attention_norm": "self_attention.linear_qkv.layer_norm_weight",
        "qkv": "self_attention.linear_qkv.weight",
        "proj": "self_attention.linear_proj.weight",
        "mlp_norm": "mlp.linear_fc1.layer_norm_weight",
        "fc1": "mlp.linear_fc1.weight",  # gate rows, then up rows
        "fc2": "mlp.linear_fc2.weight",
        "router": "mlp.router.weight",
        "expert_fc1": "mlp.experts.experts.linear_fc1.weight",  # (experts, 2 width, hidden)
        "expert_fc2": "mlp.experts.experts.linear_fc2.weight",  # (experts, hidden, width)
    }
    found = {name: tensors.get("decoder.layers." + long) for name, long in short.items()}
    if found["mlp_norm"] is None:
        found["mlp_norm"] = tensors.get("decoder.layers.pre_mlp_layernorm.weight")
    return {name: stacked[index] for name, stacked in found.items() if stacked is not None}
