"""Write the curves of finished runs for TensorBoard.

thaw log tensorboard results/runs/sst2 logs/sst2     all runs below a folder; then tensorboard --logdir logs/sst2

Loss, learning rate and scores by update come from each run's history.csv. It needs the package tensorboard:
pip install tensorboard.
"""

from pathlib import Path

from thaw.cli.selection import parser_of


def main(words: list[str]) -> None:
    """Write the event files that the command line asks for."""
    parser = parser_of("log", __doc__)
    parser.add_argument("form", choices=["tensorboard"], help="what reads them")
    parser.add_argument("folder", type=Path, metavar="RUNS", help="a run's folder, or a folder above runs")
    parser.add_argument("target", type=Path, metavar="DIR", help="where to write; new or empty")
    given = parser.parse_args(words)
    from thaw.exporting.tensorboard_log import write_events

    written = write_events(given.folder, given.target)
    print(f"{len(written)} runs written; tensorboard --logdir {given.target}")
