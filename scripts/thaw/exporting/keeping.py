"""The trained layers of a run that did not keep them: it trains again by itself, and must score as it did.

Its results stay: only where every score is the one on record are the layers put into its folder, and its record says
that they are kept. So nothing else is made again.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from thaw.core import layout
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.phrases import plural
from thaw.core.runtime import log
from thaw.decision import record
from thaw.declarations.needs import NEEDS, stated_needs
from thaw.evaluation.result_files import whole_task
from thaw.exporting.finished_run import finished, result_with


def keep(run: Path, catalogues: Sequence[Path]) -> None:
    """Train a run again and keep its layers.

    Args: its folder; folders of catalogues with plug-ins that it uses. Raises UserError where it was made of results
    that are gone, or scores otherwise than on record.
    """
    run, results, record = finished(run)
    command = command_of(record["spec"] | {"keep": True}, results, catalogues)
    with tempfile.TemporaryDirectory(prefix=f".{run.name}.", dir=run.parent) as folder:
        again = Path(folder, run.name)
        log(f"training {run.relative_to(results)} again")
        if subprocess.run([*command, "--out", str(again)], check=False).returncode:
            raise UserError(f"{run}: training again failed, see above; nothing was changed")
        moved = differences(record, read_json(again / "metrics.json"))
        if moved:
            raise UserError(
                f"{run}: trained again it scores otherwise ({moved[0]}), since the machine, its threads or a library "
                "are others than they were; nothing was changed. keep: true in the strategy's entry trains all its "
                "runs again"
            )
        for name in (layout.ENCODER, "head.safetensors", "metrics.json"):
            (again / name).replace(run / name)


def differences(record: dict, again: dict) -> list[str]:
    return [
        f"{split} {metric} {again['scores'].get(split, {}).get(metric)}, on record {value}"
        for split, scores in record["scores"].items()
        for metric, value in scores.items()
        if again["scores"].get(split, {}).get(metric) != value
    ]


def command_of(spec: dict, results: Path, catalogues: Sequence[Path]) -> list[str]:
    """Return the command of step `train` for a spec, without --out: all that it reads is located by its digests."""
    features = spec["features"] if isinstance(spec["features"], list) else [spec["features"]]
    command = [sys.executable, "-m", "thaw.steps.train", "--spec", canonical(spec)]
    command += ["--data", str(result_with(results, "prepare", spec["data"], "dataset").parent)]
    command += ["--encoder", str(result_with(results, "fetch", spec["encoder"], "encoder").parent), "--features"]
    command += [str(result_with(results, "features", digest, "store of features").parent) for digest in features]
    command += ["--catalogues", *map(str, catalogues)]
    for role, digest in stated_needs(spec).items():
        made = result_with(results, NEEDS[role].step, digest, f"result that it needs ({role})")
        command += ["--need", role, str(made)]
    also = [*spec.get("also", []), *spec.get("auxiliary", [])]
    data = [result_with(results, "prepare", entry["data"], "dataset") for entry in also for _ in entry["features"]]
    tokens = [result_with(results, "features", one, "store of features") for entry in also for one in entry["features"]]
    return [*command, "--also-data", *map(str, data), "--also-tokens", *map(str, tokens)]


def recommended_runs(folder: Path) -> dict[str, Path]:
    """Return for each task the best run, by validation, of the strategy that an experiment recommends.

    Args: the experiment's folder of outputs. Raises UserError where it recommends no strategy, or several for a task.
    """
    answers = record.read(folder)
    if not answers:
        raise UserError(f"{folder} has no recommendation; name advice under outputs: and run again")
    cells = [cell for answer in answers if (cell := answer.cell_of(answer.decision.taken))]
    if not cells:
        raise UserError(f"{folder}: the recommendation is to take no encoder; name a run's folder")
    found = {cell["task"]: folder.absolute().parents[1].glob(layout.pattern("train", **cell)) for cell in cells}
    runs = {task: max(sorted(files), key=_validation).parent for task, files in found.items()}
    if len(runs) < len(cells):
        raise UserError(f"{folder}: has {len(cells)} answers on {plural(len(runs), 'task')}; name a run's folder")
    return runs


def _validation(file: Path) -> float:
    record = read_json(file)
    task = whole_task(record["spec"])
    value = record["scores"][task["validation"]][task["metrics"][0]]
    return float("-inf") if value is None else value
