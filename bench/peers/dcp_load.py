"""Loads a torch_dist checkpoint with PyTorch's distributed checkpoint reader (torch.distributed.checkpoint) into tensors
on a device and prints seconds and GB/s of each repetition. One process, no process group.

    python3 dcp_load.py FOLDER [--device cuda] [--repeat 2] [--cold]

FOLDER holds latest_checkpointed_iteration.txt, or is an iteration folder itself. Tensors are allocated before the clock
starts, with the dtypes that the checkpoint's metadata names; the clock stops when the device has all of them. Bytes
items (arguments, extra states) are left out. The page cache is left as it is (the first repetition may read from the
disk, the others do not); with --cold the files are dropped from it before each repetition, as `assay bench load --cold`
does.
"""
import argparse
import os
import pathlib
import time

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.metadata import TensorStorageMetadata


def iteration_folder(folder):
    tracker = folder / "latest_checkpointed_iteration.txt"
    if not tracker.exists():
        return folder
    text = tracker.read_text().strip()
    return folder / ("release" if text == "release" else f"iter_{int(text):07}")


def empty_tensors(metadata, device):
    return {
        key: torch.empty(entry.size, dtype=entry.properties.dtype, device=device)
        for key, entry in metadata.state_dict_metadata.items()
        if isinstance(entry, TensorStorageMetadata)
    }


def drop_from_cache(path):
    for file in path.glob("*.distcp"):
        handle = os.open(file, os.O_RDONLY)
        os.fdatasync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", type=torch.device, default=torch.device("cuda"))
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()

    path = iteration_folder(options.folder)
    reader = dcp.FileSystemReader(path)
    tensors = empty_tensors(reader.read_metadata(), options.device)
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    print(f"torch {torch.__version__}, {options.device}, {len(tensors)} tensors, {size * 1e-9:.2f} GB", flush=True)
    for repetition in range(options.repeat):
        if options.cold:
            drop_from_cache(path)
        wait(options.device)
        begin = time.perf_counter()
        dcp.load(tensors, storage_reader=dcp.FileSystemReader(path), no_dist=True)
        wait(options.device)
        seconds = time.perf_counter() - begin
        print(f"dcp load {repetition + 1}: {seconds:.3f} s, {size / seconds * 1e-9:.2f} GB/s", flush=True)


if __name__ == "__main__":
    main()
