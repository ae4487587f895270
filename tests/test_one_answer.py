"""What documents show of an answer: the tutorial's file, and the README's record."""

import re
import subprocess
import sys
import textwrap

import answers
import replay
from one_answer import thaw
from thaw.decision import record
from workflow import HOME


def test_the_tutorials_file_is_drafted_and_planned(tmp_path):
    """By its commands; what is said of such a run is asked in tests/test_workflow.py, and of the demo in .ci/run."""
    tutorial = (HOME / "docs/tutorials/csv.md").read_text(encoding="utf-8")
    made = re.search(r"```python\n(.*?)```", tutorial, re.DOTALL)[1]
    subprocess.run([sys.executable, "-c", made], cwd=tmp_path, check=True)
    thaw(tmp_path, "new", "task", "tickets.csv")
    assert "\nruns 15: " in thaw(tmp_path, "plan", "tickets.yaml")


def test_on_the_record_of_the_grid(tmp_path):
    made = replay.answer(answers.Record(answers.recorded("grid")), *replay.SHOWN)
    record.write(tmp_path / "results/outputs/grid" / record.ADVISED, [made])
    shown = thaw(tmp_path, "show", "grid").rpartition("\n\n")[0]
    assert textwrap.indent(shown, "    ") in (HOME / "README.md").read_text(encoding="utf-8")
