"""Merge finished runs of several tasks into one folder on one trunk, and prove it.

thaw merge my_service results/runs/sick_e/.../seed1 results/runs/trec6/.../seed1

The runs share an encoder and leave its lower layers frozen: these are stored and run once. A fresh process that cannot
import Thaw then reads the test splits, and each task must predict what its run does, to the bit; where one does not,
nothing is written and the exit code is 1. See docs/howto/merge.md.
"""

from pathlib import Path

from thaw.cli.selection import parser_of


def main(words: list[str]) -> None:
    parser = parser_of("merge", __doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="the merged folder; new or empty")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="runs' folders, results/runs/.../seed<n>")
    arguments = parser.parse_args(words)
    from thaw.merging.merge_runs import merge, merge_summary

    report = merge(arguments.runs, arguments.folder)
    print(merge_summary(arguments.folder, report))
    print(f"written to {arguments.folder}")
