"""Download the files of an experiment that have a public address: data sets and encoders with `url:`.

thaw fetch my.yaml            into data_dir and the places of encoders; a file that is there already stays

What the Hub has is downloaded by the run. After a cut the same command goes on from where it was.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from thaw.cli.selection import configuration, parsed, selecting
from thaw.core.download import download, unpack
from thaw.core.errors import UserError
from thaw.core.home import HOME
from thaw.planning.configuration import chosen
from thaw.schema.catalogue import Catalogue
from thaw.schema.entry import UrlConfig
from thaw.schema.experiment import ExperimentConfig


def main(words: list[str]) -> None:
    given = parsed(selecting("fetch", __doc__), words)
    experiment, catalogue = chosen(configuration(given.files, given.config), HOME, given.files)
    found, failed = 0, 0
    for place, folder, url in addresses(experiment, catalogue):
        found += 1
        try:
            bring(place, folder, url)
        except UserError as error:  # what can be had of the others is
            failed += 1
            print(f"error: {error}", file=sys.stderr)
    if not found:
        print("no data set or encoder of this experiment has an address at `url:`; the run downloads those of the Hub")
    sys.exit(bool(failed))


def addresses(experiment: ExperimentConfig, catalogue: Catalogue) -> Iterator[tuple[str, Path, UrlConfig]]:
    """Yield each address of an experiment: the place of its entry, the folder of its files, and itself."""
    tasks = [catalogue.get("tasks", name, "tasks") for name in (*experiment.tasks, *experiment.probe_tasks)]
    tasks += [catalogue.get("tasks", other.task, "transfer_sets") for task in tasks for other in task.also]
    entries = {("corpora", task.corpus): Path(experiment.data_dir) for task in tasks if "files" in experiment.sources}
    entries |= {("encoders", name): Path() for name in experiment.encoders}
    for (block, name), folder in entries.items():
        for url in catalogue.get(block, name, block).url:
            yield catalogue.place(block, name, "url"), folder, url


def bring(place: str, folder: Path, url: UrlConfig) -> None:
    """Download what a folder lacks of an address, and print what is there now. Args: place of its entry."""
    members = {folder / url.to: ""} if isinstance(url.to, str) else {folder / path: of for path, of in url.to.items()}
    missing = {path: of for path, of in members.items() if not path.exists() and not Path(f"{path}.gz").exists()}
    listed = ", ".join(map(str, members))
    if not missing:
        print(f"{listed}: here already")
        return
    first = next(iter(members))
    target = first if isinstance(url.to, str) else first.with_name(url.address.rpartition("/")[2])
    found = download(url.address, target, url.sha256)
    if target != first:
        try:
            unpack(target, missing)
        finally:
            target.unlink()
    print(f"{listed}: from {url.address}")
    if not url.sha256:
        print(f"  it was not checked, since no sha256 is stated; to have the same file again add, at {place}:")
        print(f"    sha256: {found}")
