"""One answer: all who are asked about finished runs say the same sentences; the README says those of its record.

The demo's runs are asked in .ci/run, which has them.
"""

import re
import subprocess
import sys
import textwrap

import answers
import replay
from one_answer import check, thaw
from thaw.decision import record
from tiny import tiny_encoder
from workflow import HOME, Workplace, fork_servers


def test_on_the_tutorials_file(tmp_path):
    """By its commands, with a tiny encoder and strategies of one epoch."""
    place = Workplace(tmp_path, tiny_encoder("bert", tmp_path / "tiny"))
    (tmp_path / "my/tasks.yaml").unlink()
    tutorial = (HOME / "docs/tutorials/csv.md").read_text(encoding="utf-8")
    made = re.search(r"```python\n(.*?)```", tutorial, re.DOTALL)[1]
    subprocess.run([sys.executable, "-c", made], cwd=tmp_path, check=True)
    few = {"encoders": ["tiny"], "strategies": ["linear_probe", {"short_top": [1]}, "short_full"], "seeds": [1]}
    few |= {"baselines": ["majority"], "outputs": ["advice"], "compute": {"threads": 1}}
    place.write("few.yaml", few)
    given = ["tickets.yaml", "few.yaml", "--cores", "2"]
    with fork_servers() as place.servers:
        thaw(tmp_path, "new", "task", "tickets.csv")
        thaw(tmp_path, "run", *given, environment=place.environment)
        card = check(tmp_path, "tickets", *given, environment=place.environment)
    assert "once more on 480 rows (420 of train and 60 of validation)" in card


def test_on_the_record_of_the_grid(tmp_path):
    made = replay.answer(answers.Record(replay.RECORD), *replay.SHOWN)
    record.write(tmp_path / "results/outputs/grid" / record.ADVISED, [made])
    shown = thaw(tmp_path, "show", "grid").rpartition("\n\n")[0]
    assert textwrap.indent(shown, "    ") in (HOME / "README.md").read_text(encoding="utf-8")
