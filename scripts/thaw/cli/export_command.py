"""Export a trained model into a folder that works without Thaw, and verify it.

thaw export results/runs/sick_e/all/minilm/linear/linear_probe/base/seed1 my_model
thaw export RUN my_model --license mit --language en
thaw export my.yaml my_model                                              the best run of what the answer takes
thaw export RUN my_model --no-all-rows                                    the run as it is
thaw export RUN my_model --exits                                          texts leave at the first layer that is sure

What the answer of an experiment takes is trained once more before, on training and validation rows together. So is
every head that was fitted to convergence. --all-rows does this with any run.

Best is by validation, among seeds. Several tasks have a folder each, as my_model/TASK. A run that is exported as it is,
and did not keep its layers, is trained again. Its scores must be those on record to the last digit; then it keeps
encoder.safetensors.

The folder is read again by a fresh process, which predicts the test splits from their texts; how they differ from
the run's is printed and written to check.json. Where they differ too much, nothing is left and the exit code is 1.
docs/howto/export.md says what the folder holds.
"""

import argparse
from pathlib import Path

from thaw.cli.selection import parser_of
from thaw.cli.show_command import folder_of
from thaw.core.errors import UserError
from thaw.planning.configuration import SUFFIXES


def main(words: list[str]) -> None:
    parser = parser_of("export", __doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder, or the file of a finished experiment")
    parser.add_argument("folder", type=Path, metavar="DIR", help="where to write; new or empty")
    all_rows = "train once more, on training and validation rows together; default: where an answer takes the strategy"
    parser.add_argument("--all-rows", action=argparse.BooleanOptionalAction, help=all_rows)
    exits = "let each text leave at the first layer that is sure; POINTS may be lost on validation, 1 by default"
    parser.add_argument("--exits", type=float, nargs="?", const=1.0, metavar="POINTS", help=exits)
    catalogues = "where a run that is trained uses a part of your own: folders of your catalogues"
    parser.add_argument(
        "--catalogues", type=Path, nargs="*", action="extend", default=[], metavar="FOLDER", help=catalogues
    )
    parser.add_argument("--license", help="licence of the model in its card, as mit; it depends on encoder and data")
    parser.add_argument(
        "--language", nargs="+", action="extend", default=[], metavar="CODE", help="languages of the texts, as en"
    )
    arguments = parser.parse_args(words)
    if arguments.exits is not None and arguments.all_rows:
        raise UserError("--exits and --all-rows: exits need rows that no head has seen")
    from thaw.exporting.export import export, export_summary, recommended_runs
    from thaw.exporting.model_card import Stated

    if arguments.run.suffix in SUFFIXES:
        runs = recommended_runs(folder_of(str(arguments.run), Path("results")))
        folders = {arguments.folder / task if len(runs) > 1 else arguments.folder: run for task, run in runs.items()}
    else:
        folders = {arguments.folder: arguments.run}
    stated = Stated(arguments.license, tuple(arguments.language))
    for folder, run in folders.items():
        report = export(run, folder, stated, arguments.all_rows, arguments.catalogues, arguments.exits)
        print(f"{export_summary(report)}\nwritten to {folder}")
