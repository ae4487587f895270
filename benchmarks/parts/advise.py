"""`thaw advise` on a CSV file of 600 short texts, in a fresh folder: when it has printed what.

Beside it, until their scores on the same file: a script with sentence-transformers and scikit-learn, and full
fine-tuning by the tuned Trainer in three epochs.
"""

import csv
import shutil
import statistics
from dataclasses import replace
from pathlib import Path

from .. import rivals, work
from ..measuring import interleaved, timed
from ..options import Options
from ..ours import THAW
from ..texts import Texts, tasks

ROWS = 600
BEGINS = {  # what a line of Thaw begins with
    "the first score, a baseline's": "texts: ",
    "the linear probe": "texts: Linear probe  ",
    "the linear probe on all layers": "texts: Linear probe, all layers",
    "the answer": "texts, ",
    "the report": "report: ",
}
STAMP = 'set -o pipefail; "$@" 2>&1 | while IFS= read -r line; do echo "${EPOCHREALTIME/,/.} $line"; done'


def measure(options: Options) -> dict:
    """Return the median seconds until each of BEGINS, and until the scores of the others."""
    used = {"rows": ROWS, "seeds": 1, "quick": True}  # one task
    text = tasks(replace(options, **used))[0]
    rows = text.rows["train"]
    text = Texts(
        text.name, text.columns, text.labels, {"test": rows[:120], "validation": rows[120:180], "train": rows[180:]}
    )
    folder = options.folder("advise")
    told = {text.name: text.for_peers(folder / text.name)}
    text.write(folder / text.name)
    cells = work.cells([text.name], {work.FULL: work.full()}, [1], work.LAYERS)
    file = folder / "texts.csv"
    with open(file, "w", newline="") as stream:
        lines = csv.DictWriter(stream, [*text.columns, "label"])
        lines.writeheader()
        lines.writerows(rows)

    def ours() -> dict:
        place = folder / "ours"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        shutil.copy(file, place)
        lines = stamped([THAW, "advise", file.name], place)
        found = {
            what: next(second for second, line in lines if line.startswith(words)) for what, words in BEGINS.items()
        }
        return found | {"said": next(line.strip() for _, line in lines if line.strip().startswith("→"))}

    sides = {
        "ours": ours,
        "script": lambda: rivals.ask("script", folder, options, {}, file=str(file), text=text.columns[0]),
        "trainer": lambda: rivals.trainer("tuned", folder, options, told, cells, splits=["test"]),
    }
    rounds = interleaved(sides, options.rounds)
    ends = {f"Thaw: {what}": [record[what] for record in rounds["ours"]] for what in BEGINS}
    ends["sentence-transformers with scikit-learn: its score"] = [record["wall"] for record in rounds["script"]]
    ends["Trainer, tuned: the score of full fine-tuning"] = [record["wall"] for record in rounds["trainer"]]
    said = {"Thaw": rounds["ours"][-1]["said"], "script": rounds["script"][-1]["found"]["score"]}
    said["Trainer"] = rounds["trainer"][-1]["found"]["cells"][0]["scores"]["test"]
    found = {what: statistics.median(seconds) for what, seconds in ends.items()}
    return {"numbers": {}, "used": used, "advise": found, "said": said}


def stamped(command: list[str], folder: Path) -> list[tuple[float, str]]:
    """Run a command and return its lines, each with the seconds after which it was printed."""
    log = folder / "lines.log"
    record = timed(["bash", "-c", STAMP, "bash", *command], log, folder)
    lines = (line.partition(" ") for line in log.read_text().splitlines())
    return [(float(second) - record["started"], line) for second, _, line in lines]
