"""A cell of a table is made again by the one command that the report shows for its number, as it is written there.

The ten random cells: `pytest -s -m slow tests/test_rebuild.py`, which prints each command. A default test takes one.
"""

import html
import json
import random
import re
import shlex
import shutil
import subprocess

import pytest

from thaw.outputs import wording
from tiny import tiny_encoder
from workflow import Workplace

CELLS = 10


def commands(place: Workplace) -> dict[str, str]:
    """Return the command of each number of the report's main table, by cell: task and row."""
    page = (place.folder / "results/outputs/mine/report.html").read_text()
    shown = json.loads(re.search(r'<script type="application/json" id="commands">(.*?)</script>', page, re.DOTALL)[1])
    found = {}
    table = re.search(r'<figure class="table" id="main_table".*?</figure>', page, re.DOTALL)[0]
    for head, row in re.findall(r'<th scope="row"[^>]*>(.*?)</th>(.*?)</tr>', table, re.DOTALL):
        name = html.unescape(re.sub(r"<.*?>", "", head)).replace("\N{NO-BREAK SPACE}", " ")
        for anchor in map(html.unescape, re.findall(r'href="examples.html#(.*?)"', row)):
            if anchor in shown["files"]:
                task = anchor.partition(".")[0]
                found[f"{task}, {name}"] = f"{shown['command']} {shown['files'][anchor]}"
    return found


def printed(place: Workplace, name: str) -> str:
    """Return what a cell of the table says. Args: task, which is the head of its column, and row."""
    task, row = name.split(", ", 1)
    lines = (place.folder / "results/outputs/mine/tables/main_table.md").read_text().replace("\\_", "_").splitlines()
    rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    column = next(place for place, head in enumerate(rows[0]) if head.startswith(f"{task}<br>"))
    return next(cells[column] for cells in rows if cells[0] == row)


def check_rebuilding(place: Workplace, name: str) -> None:
    """Put the runs of a cell aside, make them by its command, and compare: records to the byte, and what is printed."""
    command = commands(place)[name]
    print(f"\n{name}: {printed(place, name)}\n    {command}", end="")
    files = [place.folder / file for file in shlex.split(command.partition(" -- ")[2])]
    for file in files:
        file.parent.rename(file.parent.with_suffix(".aside"))
    subprocess.run(["bash", "-c", command], cwd=place.folder, env=place.environment, capture_output=True, check=True)
    scores = []
    for file in files:
        aside = file.parent.with_suffix(".aside")
        assert file.read_bytes() == (aside / file.name).read_bytes()
        record = json.loads(file.read_text())
        scores.append(record["scores"]["test"][record["spec"]["task"]["metrics"][0]])
        shutil.rmtree(file.parent)
        aside.rename(file.parent)
    assert printed(place, name).startswith(wording.number(100 * sum(scores) / len(scores)))


@pytest.mark.slow
def test_ten_random_cells_are_made_again_by_the_commands_of_their_numbers(tmp_path):
    place = Workplace(tmp_path, tiny_encoder("bert", tmp_path / "tiny"))
    strategies = ["linear_probe", {"short_top": [1, 2]}, "short_full", "short_stack"]
    baselines = ["majority", "bag_of_words"]
    place.write("mine.yaml", place.experiment("mine", strategies=strategies, seeds=[1, 2], baselines=baselines))
    place.snakemake()
    chosen = random.Random(8).sample(sorted(commands(place)), CELLS)
    for name in chosen:
        check_rebuilding(place, name)
    assert place.planned() == {}
    print(f"\ncells made again to the byte: {len(chosen)} of {CELLS}")
