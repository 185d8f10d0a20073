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
import sys
import time

try:
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata
except ImportError as error:
    sys.exit(f"dcp_load: PyTorch cannot be used: {error}")


def iteration_folder(folder):
    """The folder with the metadata. Raises OSError or ValueError where there is none."""
    if not folder.is_dir():
        raise ValueError("no such folder")
    tracker = folder / "latest_checkpointed_iteration.txt"
    path = folder
    if tracker.exists():
        text = tracker.read_text(errors="replace").strip()
        if text != "release" and not (text.isascii() and text.isdigit()):
            raise ValueError(f"{tracker.name} holds '{text[:40]}', expected an iteration number or \"release\"")
        path = folder / ("release" if text == "release" else f"iter_{int(text):07}")
    if not (path / ".metadata").is_file():
        raise ValueError(f"no {path / '.metadata'}")
    return path


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


def positive(text):
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def measure(options):
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("no CUDA device: --device cpu loads without one")
    path = iteration_folder(options.folder)
    tensors = empty_tensors(dcp.FileSystemReader(path).read_metadata(), device)
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    if size == 0:
        raise ValueError("no tensors in it")
    print(f"torch {torch.__version__}, {device}, {len(tensors)} tensors, {size * 1e-9:.2f} GB", flush=True)
    for repetition in range(options.repeat):
        if options.cold:
            drop_from_cache(path)
        wait(device)
        begin = time.perf_counter()
        dcp.load(tensors, storage_reader=dcp.FileSystemReader(path), no_dist=True)
        wait(device)
        seconds = time.perf_counter() - begin
        print(f"dcp load {repetition + 1}: {seconds:.3f} s, {size / seconds * 1e-9:.2f} GB/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeat", type=positive, default=2)
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    try:
        measure(options)
    except BaseException as error:  # the reader wraps whatever a damaged file raises in one of its own
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        lines = [line for line in str(error).splitlines() if line.strip()]
        sys.exit(f"dcp_load: {options.folder}: {type(error).__name__}: {lines[-1].strip() if lines else ''}")


if __name__ == "__main__":
    main()
