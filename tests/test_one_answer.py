"""The report, thaw show, thaw advise and the model card name one answer, on the demo and on the tutorial's file."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import forked
from thaw.cli.show_command import summary
from thaw.decision import record
from thaw.exporting.finished_run import open_run
from thaw.exporting.model_card import card
from thaw.words import answer_text
from workflow import HOME, activated

TUTORIAL = HOME / "docs/tutorials/csv.md"


def one_answer(results: Path, experiment: str, advised: str, finished: str) -> None:
    """Check that all who are asked name one answer for each task. Args: what advise and the run printed."""
    outputs = results / "outputs" / experiment
    answers = record.read(outputs)
    page = (outputs / "report.html").read_text(encoding="utf-8")
    for answer in answers:
        shown = answer_text.in_terminal(answer)
        assert shown in advised and shown in finished and shown in summary(outputs)
        assert answer_text.headline(answer) in page
        if cell := answer.cell_of(answer.decision.taken):
            run = next(results.joinpath("runs", *cell.values()).glob("seed*"))
            thaw(results.parent, "export", str(run), f"export_of_{cell['task']}")  # which has its layers kept
            assert answer_text.headline(answer) in card(open_run(run), "encoder_and_head")
    tables = [json.loads((outputs / name).read_text()) for name in (record.ADVISED, "tables/advice.json")]
    assert answers and tables[0]["answers"] == tables[1]["answers"]


def thaw(folder: Path, *words: str) -> str:
    """Run a command in a folder, and return what it printed."""
    environment = activated() | {"PYTHONPATH": str(HOME / "scripts")}
    done = forked.run(["thaw.cli.main", *words], folder, environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.mark.slow
def test_on_the_demo(tmp_path):
    finished = thaw(tmp_path, "demo", "--cores", "2")
    advised = thaw(tmp_path, "advise", str(HOME / "config/config.yaml"), "--cores", "2")
    one_answer(tmp_path / "results", "demo", advised, finished)


@pytest.mark.slow
def test_on_the_tutorials_file(tmp_path):
    """Its commands, with one seed."""
    made = re.search(r"```python\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)[1]
    subprocess.run([sys.executable, "-c", made], cwd=tmp_path, check=True)
    thaw(tmp_path, "new", "task", "tickets.csv")
    given = ["tickets.yaml", "--cores", "2", "--config", "seeds=[1]"]
    advised = thaw(tmp_path, "advise", *given)
    one_answer(tmp_path / "results", "tickets", advised, thaw(tmp_path, "run", *given))
