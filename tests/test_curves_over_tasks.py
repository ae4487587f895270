"""Figures of validation while training and of differences over tasks: the numbers behind them."""

import numpy as np
import pandas as pd
import pytest

import invented
from thaw.core.errors import UserError
from thaw.outputs.frame.output_data import OutputData
from thaw.papers import validation_curves

# of six tasks the probe's score, and the gains of top_k and full
GAINS = {"a": (95, 0, 0), "b": (94, 0.3, 0.4), "c": (70, 8, 9), "d": (72, 7, 9), "e": (93, 0, 0.3), "f": (69, 9, 10)}
HISTORY = "phase,epoch,step,loss,rate,validation_accuracy"


def runs_of(scores: dict, tasks, seeds=range(1, 7)) -> pd.DataFrame:
    """Return rows of runs.csv, one for validation and one for test of each run."""
    rows = []
    for task in tasks:
        for strategy, (validation, test, training, extraction) in scores.items():
            common = {"kind": "run", "task": task, "subset": "all", "encoder": "tiny", "head": "linear"}
            common |= {"strategy": strategy, "variant": "base", "metric": "accuracy", "main": True, "missing": ""}
            common |= {"train_seconds": training, "after_seconds": 0.0, "extraction_whole_seconds": extraction}
            common |= {"extraction_seconds": extraction / 2, "flops": 0.0, "after_flops": 0.0, "flags": ""}
            common |= {"peak_memory_mb": 0.0, "trained_parameters": 0.0, "inference_flops": 0.0, "search_seconds": 0.0}
            common |= {"updates": 0.0, "device": "cpu", "processor_seconds": training, "total_seconds": training}
            common |= {"price_seconds": training + extraction}
            common |= {"thawed": 0, "embeddings": False, "optimizer": "adamw", "pairs": "", "synthetic": False}
            for seed in seeds:
                for role, value in (("validation", validation), ("test", test)):
                    rows.append(common | {"seed": seed, "split": role, "role": role, "value": value / 100})
    return pd.DataFrame(rows)


def progress_of(folder, gains: dict) -> pd.DataFrame:
    """Return runs with histories, whose scores rise with the root of their updates; full costs 16, top k 5."""
    frames = []
    for task, (probe, *more) in gains.items():
        scores = {"frozen": (probe, probe, 1.0, 4.0)}
        for name, gain, seconds in zip(("top_k", "full"), more, (5.0, 16.0), strict=True):
            scores[name] = (probe + gain, probe + gain, seconds, 4.0)
        frames.append(runs_of(scores, [task]))
    runs = pd.concat(frames, ignore_index=True)
    runs["folder"] = ["/".join(map(str, key)) for key in runs[["task", "strategy", "seed"]].to_numpy()]
    for row in runs[(runs["role"] == "validation") & (runs["strategy"] != "frozen")].itertuples():
        start = gains[row.task][0] / 100
        scores = [start + (row.value - start) * share for share in np.sqrt(np.arange(1, 9) / 8)]
        lines = [f"1,1,{10 * n},0.1,1e-4,{score}" for n, score in enumerate(scores, 1)]
        (folder / row.folder).mkdir(parents=True)
        (folder / row.folder / "history.csv").write_text("\n".join([HISTORY, *lines]))
    return runs


def data_of(folder) -> OutputData:
    return OutputData(folder, progress_of(folder, GAINS).assign(n=200))


def spec_of(kind: str, **more) -> dict:
    spec = invented.shown("f", kind, **more)
    spec["order"] = {"tasks": list(GAINS), "strategies": [[name, "base"] for name in ("frozen", "top_k", "full")]}
    return spec


def test_a_curve_is_the_mean_over_seeds_at_each_update(tmp_path):
    data = data_of(tmp_path)
    frame = validation_curves.curves(data)
    mine = frame[(frame["task"] == "c") & (frame["strategy"] == "full")]
    assert mine["update"].tolist() == [10.0 * n for n in range(1, 9)] and set(mine["seeds"]) == {6}
    assert mine["mean"].iloc[1] == pytest.approx(70 + 9 * (2 / 8) ** 0.5)
    assert set(frame["strategy"]) == {"top_k", "full"}, "a convex fit has no curve"
    figure = validation_curves.build(data, spec_of("validation_figure"))
    assert [axis.get_title("left") for axis in figure.drawn.get_axes()] == list(GAINS)
    figure.write(tmp_path / "figure")
    assert len(pd.read_csv(tmp_path / "figure.csv")) == len(frame)


def test_a_curve_counts_the_updates_of_all_phases(tmp_path):
    lines = ["phase,epoch,step,loss,rate,validation_mcc", "1,1,5,0.9,0.1,", "1,1,10,0.7,0.1,0.25", "2,1,4,0.5,0.1,0.5"]
    (tmp_path / "history.csv").write_text("\n".join(lines))
    assert validation_curves.validation_curve(tmp_path, "mcc") == [(10, 25), (14, 50)]
    (tmp_path / "history.csv").write_text("phase,l2,step,loss,validation_mcc\n1,0.1,3,0.5,0.2\n")
    assert validation_curves.validation_curve(tmp_path, "mcc") == [], "a convex fit has no epochs"


def test_runs_without_scores_on_the_way_are_no_curves(tmp_path):
    data = data_of(tmp_path)
    frozen = OutputData(tmp_path, data.runs[data.runs["strategy"] == "frozen"])
    with pytest.raises(UserError, match="a validation_figure needs runs that score validation in training"):
        validation_curves.build(frozen, spec_of("validation_figure"))
