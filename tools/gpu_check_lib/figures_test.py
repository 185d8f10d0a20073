"""The GPU figures of the docs are those of the sources beside them."""

import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Figures(unittest.TestCase):
    def test_the_tree_that_was_measured_is_the_one_that_is_here(self):
        text = (ROOT / "docs/performance.md").read_text()
        section = re.search(r"^## On a GPU$(.*?)^## ", text, re.M | re.S)
        self.assertIsNotNone(section)
        if not re.search(r"^\|", section.group(1), re.M):
            return  # no table of figures: nothing to go with
        named = re.findall(r"\b[0-9a-f]{40}\b", section.group(1))
        self.assertEqual(len(set(named)), 1, "a table of GPU figures names the tree of backends/cuda it was measured on")
        git = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD:backends/cuda"], capture_output=True, text=True)
        if git.returncode != 0:
            self.skipTest("no git here: the tree of backends/cuda is unknown")
        self.assertEqual(named[0], git.stdout.strip(), "backends/cuda is newer than its figures: measure again (tools/gpu_check)")


if __name__ == "__main__":
    unittest.main()
