"""The lines that a training logs, of its stages and epochs."""

from thaw.core.runtime import log
from thaw.evaluation.log_lines import epoch_line
from thaw.training.phase_loop import PhaseTraining
from thaw.training.progress import Progress


def log_stage(runs: list, number: int, stage: dict) -> None:
    """Log what a stage of some runs trains, and from where. Args: the runs; the phase's number; the stage."""
    origin = "text" if stage["boundary"] is None else f"boundary {stage['boundary']}"
    batch = f"; {len(runs)} runs in one batch" if len(runs) > 1 else ""
    components = ", ".join(stage["components"])
    log(f"phase {number}: trains {components}; starts from {origin}; {len(runs[0].rows)} rows{batch}")


def after_epoch(run, training: PhaseTraining, progress: Progress | None) -> None:
    """Log a round of a batch, and write the progress of a run that is alone. Args: the first run; its phase."""
    phase_logs = [state.phase_log for state in training.states if state.phase_log.rows(training.epoch)]
    losses = [phase_log.mean_loss(training.epoch) for phase_log in phase_logs]
    scores = [phase_log.history[-1]["validation"] for phase_log in phase_logs] if training.scored else []
    phase = f"phase {training.states[0].number}, " if len(run.phases) > 1 else ""
    log(phase + epoch_line(training.place, losses, run.context.main_metric, scores))
    if progress:
        progress.write(run, training)
