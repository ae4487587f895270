"""Have the trained layers of a run whose strategy did not keep them: the run trains again, by itself.

thaw keep results/runs/sst2/all/minilm/linear/full/base/seed1    one run
thaw keep my.yaml                                                of each task the recommended strategy's best run

Its scores must be those on record to the last digit; then encoder.safetensors is put into its folder, and thaw export
takes it. Everything else stays as it is. Best is by validation, among seeds.
"""

from pathlib import Path

from thaw.cli.selection import parser_of
from thaw.cli.show_command import folder_of
from thaw.planning.config_files import SUFFIXES


def main(words: list[str]) -> None:
    """Keep the layers of the runs that the command line names."""
    parser = parser_of("keep", __doc__)
    parser.add_argument("what", metavar="RUN", help="a run's folder, or the file or name of a finished experiment")
    parser.add_argument("--results", default="results", metavar="FOLDER", help="the folder of all results")
    catalogues = "folders of your catalogues, where the run uses a part of your own"
    parser.add_argument(
        "--catalogues", type=Path, nargs="*", action="extend", default=[], metavar="FOLDER", help=catalogues
    )
    given = parser.parse_args(words)
    from thaw.exporting.keeping import keep, recommended_runs

    runs = [Path(given.what)]
    if given.what.endswith(SUFFIXES) or not runs[0].exists():
        runs = recommended_runs(folder_of(given.what, Path(given.results)))
    for run in runs:
        print(keep(run, given.catalogues))
