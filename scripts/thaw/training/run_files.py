"""What a run leaves in its folder."""

from pathlib import Path

from thaw.evaluation.result_files import save_tensors, write_result
from thaw.evaluation.transfer_sets import all_predictions


def write_run(out: Path, spec: dict, run, left, outcome: dict, cost: dict) -> None:
    """Write a run's files: tensors first, metrics.json last.

    Args: folder; the run's spec; the run, for its task and corpus; what it left, for head, history and answers; its
    outcome and cost.
    """
    import pandas

    save_tensors(out / "head.safetensors", left.head.state_dict())
    main = run.task["metrics"][0]
    columns = {split: f"{split}_{main}" for split in ("train", "validation")}
    predictions = all_predictions(run.task, run.corpus, left.answers, left.further)
    write_result(out, spec, outcome, cost, predictions, pandas.DataFrame(left.history).rename(columns=columns))
