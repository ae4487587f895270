"""An export from first to last: built in a temporary folder, checked, and moved to its target whole."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json, write_text
from thaw.core.phrases import plural
from thaw.core.runtime import log
from thaw.decision import record
from thaw.evaluation.result_files import whole_task
from thaw.exporting import formats
from thaw.exporting.all_rows import last_fit
from thaw.exporting.checking import check
from thaw.exporting.early_exits import add_exits, check_exits, exits_text
from thaw.exporting.finished_run import LayersNotKept, command_of, finished, refit_text, replaced, require_new
from thaw.exporting.model_card import Stated, card


def export(
    run: Path,
    target: Path,
    stated: Stated | None = None,
    all_rows: bool | None = None,
    catalogues: Sequence[Path] = (),
    exits: float | None = None,
) -> dict:
    """Write a run's model into a folder that is new or empty, and return its check.

    A run that did not keep its layers, and is exported as it is, is trained again.

    Args: the run's folder; where to write; what its model card shall say of licence and languages; whether it is
    trained once more on the rows of train and validation together (`last_fit`); folders of catalogues with plug-ins
    that it uses; the points that early exits may lose, None for no exits. A model that predicts otherwise than its run
    did is a UserError, and leaves nothing behind.
    """
    require_new(target)
    if exits is not None:
        check_exits(run, exits)
        all_rows = False  # thresholds hold for heads that have not seen the rows of validation
    with tempfile.TemporaryDirectory() as made, replaced(target) as folder:
        try:
            source = last_fit(run, Path(made), all_rows, catalogues)
        except LayersNotKept:
            keep(run, catalogues)
            source = last_fit(run, Path(made), all_rows, catalogues)
        form = formats.write(source, folder, apart=exits is not None)
        described = card(source, form, stated)
        log(f"written in the form {form}; reading the test splits again, from text, in a fresh process")
        report = check(source, folder)
        refit = source.refit
        report["refit"] = refit and {"rows": refit.rows, "folds": source.folds, "layers": refit.layers}
        if not report["passed"]:
            raise UserError(
                f"the export does not predict what its run did, so {target} was not written\n{export_summary(report)}"
            )
        if exits is not None:
            report["exits"] = add_exits(source, folder, exits)
            said = "\n".join(f"- {line.strip()}" for line in exits_text(report["exits"]))
            described += f"\n## Early exits\n\nThe scores above are without exits.\n\n{said}\n"
        write_text(folder / "README.md", described)
        write_json(folder / "check.json", report)
    return report


def keep(run: Path, catalogues: Sequence[Path]) -> None:
    """Train a run again and keep its layers, and say so in its record: so nothing else is made again.

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


def export_summary(report: dict) -> str:
    """Return the outcome of a check in words, some lines for each split."""
    lines = [refit_text(**report["refit"])] if report["refit"] else []
    for split, part in report["splits"].items():
        changed, allowed = part["changed"], report["may_change"]
        lines.append(
            f"{split}: {changed} of {part['answers']} predictions are others than recorded (at most {allowed:.0%})"
        )
        lines.append(
            f"  largest difference from the run's own tensors in Thaw, both in fp32: {part['largest_difference']:.1e} "
            f"(at most {report['tolerance']:g})"
        )
        for name, value in part["scores"].items():
            lines.append(f"  {name}: {_shown(value['run'])} in the run, {_shown(value['export'])} in the export")
    if "exits" in report:
        lines += exits_text(report["exits"])
    return "\n".join(lines)


def _shown(score: float | None) -> str:
    return "undefined" if score is None else f"{score:.4f}"
