#!/usr/bin/env python3
"""Take a trained run along: write its model into a folder that works without Thaw, and check it.

python scripts/export.py results/runs/sick_e/all/minilm/linear/frozen/base/seed1 my_model

The folder is read again by a fresh process, which predicts the test splits from their texts; how they differ from
the run's is printed and written to check.json. Where they differ too much, nothing is left and the exit code is 1.
docs/export.md says what the folder holds.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from thaw.core.runtime import run_step


def main() -> None:
    """Export the run that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder, results/runs/.../seed<n>")
    parser.add_argument("folder", type=Path, metavar="DIR", help="where to write; new or empty")
    arguments = parser.parse_args()
    from thaw.exporting.export import export, export_summary

    print(export_summary(export(arguments.run, arguments.folder)))
    print(f"written to {arguments.folder}")


if __name__ == "__main__":
    run_step(main)
