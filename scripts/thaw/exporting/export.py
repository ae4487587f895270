"""An export from first to last: built in a temporary folder, checked, and moved to its target whole."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import write_json, write_text
from thaw.core.runtime import log
from thaw.exporting import formats
from thaw.exporting.all_rows import last_fit
from thaw.exporting.checking import check
from thaw.exporting.early_exits import add_exits, check_exits, exits_text
from thaw.exporting.finished_run import LayersNotKept, refit_text, replaced, require_new
from thaw.exporting.keeping import keep
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
