"""The programs that gpu_check runs beside ours, without PyTorch."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Peers(unittest.TestCase):
    """bench/peers/dcp_load.py and transformers_bench.py, without PyTorch or on a stand-in for it."""

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.dir = Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def script(self, name, *words, **modules):
        for module, text in modules.items():
            path = self.dir / "python" / (module.replace("__", "/") + "/__init__.py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run(
            [sys.executable, ROOT / "bench/peers" / name, *words],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(self.dir / "python"), "PYTHONDONTWRITEBYTECODE": "1"},
        )
        return done.returncode, done.stdout + done.stderr

    def test_no_pytorch_is_one_line(self):
        for name in ("dcp_load.py", "transformers_bench.py"):
            code, text = self.script(name, *(["x"] if name == "dcp_load.py" else []), torch="raise ImportError('none here')\n")
            self.assertEqual((code, text.count("\n")), (1, 1), text)
            self.assertRegex(text, f"^{name[:-3]}: PyTorch .*: none here")

    def test_a_folder_that_is_no_checkpoint_is_one_line(self):
        modules = {
            "torch": "class device:\n  def __init__(self, name): self.type = name\n",
            "torch__distributed": "",
            "torch__distributed__checkpoint": "class FileSystemReader:\n  def __init__(self, path): raise EOFError('cut')\n",
            "torch__distributed__checkpoint__metadata": "class TensorStorageMetadata: pass\n",
        }
        wants = {"none": "no such folder", "empty": r"no \S+/empty/.metadata", "cut": "EOFError: cut"}
        wants |= {"tracker": "holds 'x', expected an iteration number", "iteration": "no .*/iter_0000007/.metadata"}
        for name in ("empty", "cut", "tracker", "iteration"):
            (self.dir / name).mkdir()
        (self.dir / "cut/.metadata").write_text("")
        (self.dir / "tracker/latest_checkpointed_iteration.txt").write_text("x\n")
        (self.dir / "iteration/latest_checkpointed_iteration.txt").write_text("7\n")
        for name, want in wants.items():
            code, text = self.script("dcp_load.py", self.dir / name, "--device", "cpu", **modules)
            self.assertEqual((code, text.count("\n")), (1, 1), text)
            self.assertRegex(text, want)


if __name__ == "__main__":
    unittest.main()
