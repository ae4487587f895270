"""Merge finished runs of several tasks into one folder on one trunk, and prove it.

thaw merge my_service results/runs/sick_e/.../seed1 results/runs/trec6/.../seed1
thaw merge my_service --add results/runs/mrpc/.../seed1 --remove trec6

The runs share an encoder and leave its lower layers frozen: these are stored and run once. A fresh process that cannot
import Thaw then reads the test splits, and each task must predict what its run does, to the bit; where one does not,
nothing is written and the exit code is 1. --add replaces the branch of a task that is there; docs/howto/merge.md.
"""

from pathlib import Path

from thaw.cli.selection import parser_of
from thaw.core.errors import UserError


def main(words: list[str]) -> None:
    parser = parser_of("merge", __doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="the merged folder; new or empty, or one to change")
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="runs' folders, results/runs/.../seed<n>")
    parser.add_argument(
        "--add", nargs="+", action="extend", default=[], type=Path, metavar="RUN", help="add or replace their tasks"
    )
    parser.add_argument("--remove", nargs="+", action="extend", default=[], metavar="TASK", help="remove these tasks")
    arguments = parser.parse_args(words)
    changes = arguments.add or arguments.remove
    if bool(arguments.runs) == bool(changes):
        raise UserError("name runs for a new folder, or what changes in one that is there: --add RUN, --remove TASK")
    from thaw.merging.merge_runs import change, merge, merge_summary

    folder = arguments.folder
    report = change(folder, arguments.add, arguments.remove) if changes else merge(arguments.runs, folder)
    print(merge_summary(folder, report))
    print(f"written to {folder}")
