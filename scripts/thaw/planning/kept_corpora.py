"""Prepared corpora that are about to be prepared again are kept until that went well.

Snakemake deletes what a job declares before it runs: a file of the user's that became wrong would else leave finished
runs without the texts that they are exported and scored with. No torch.
"""

import os
import shutil
from pathlib import Path

from thaw.core import layout

ENDING = ".aside"  # no id of a corpus has a dot


def set_aside(folders: list[Path]) -> None:
    """Keep prepared corpora next to their folders, as links to the same files where the disk has them."""
    for folder in folders:
        if (folder / "card.json").exists():
            shutil.copytree(folder, folder.with_name(folder.name + ENDING), copy_function=_link)


def put_back(results) -> None:
    """End what `set_aside` began: where a corpus was not prepared, what was kept of it takes its place."""
    for aside in Path(results, layout.top_folders(("prepare",))[0]).glob(f"*{ENDING}"):
        folder = aside.with_name(aside.name.removesuffix(ENDING))
        if (folder / "card.json").exists():
            shutil.rmtree(aside)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            aside.rename(folder)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)
