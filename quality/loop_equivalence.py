"""Whether Thaw's loop scores as a plain loop does: trains the plain loop on the rows of Thaw's runs, and records both.

thaw run config/experiments/loop_equivalence.yaml --config data_dir=path/to/data
PYTHONPATH=.:scripts:tests python quality/loop_equivalence.py

What the plain loop has scored is kept in results/plain_loop: a second call goes on where the first one stopped. With
--finished nothing is trained, and the seeds that both loops have are recorded. `python scripts/record.py` then writes
the page docs/results/loop_equivalence.md.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import record
import record_tables
from plain_loop import fine_tune
from thaw.core import layout
from thaw.core.files import read_json, write_json
from thaw.core.runtime import log, run_step
from thaw.data.corpus import Corpus
from thaw.evaluation.result_files import read_rows
from thaw.outputs.frame.runs_frame import read_runs

HOME = Path(__file__).parents[1]
NAME = "loop_equivalence"
RUNS = "*/n1000_wide/minilm/linear_mean/loop_top_k/k02/seed*/metrics.json"
SPLITS = record_tables.LOOP_SPLITS


def plain_scores(metrics: Path, results: Path) -> dict[str, float]:
    """Train the plain loop on the rows of a run, with its seed; return accuracies by split. Args: its metrics.json."""
    spec = read_json(metrics)["spec"]
    corpus, (phase,) = Corpus(results / "data" / spec["task"]["corpus"]), spec["phases"]
    rows, task = read_rows(spec, corpus), spec["task"]

    def part(split: str) -> tuple[list[tuple[str, ...]], list[int]]:
        frame = corpus.frame(split).iloc[rows[split]]
        texts = list(frame[corpus.card["texts"]].itertuples(index=False, name=None))
        return texts, np.asarray(corpus.targets(task, split))[rows[split]].tolist()

    recipe = {"rate": phase["rate"], "head_rate": phase["head_rate"], "size": phase["batch_size"]}
    classes = len(corpus.labels(task["target"]))
    predict = fine_tune(results / "encoders/minilm", *part("train"), classes, spec["seed"], phase["updates"], **recipe)
    scores = {}
    for split in SPLITS:
        texts, gold = part(split)
        scores[split] = float(np.mean(np.array(predict(texts)) == gold))
    return scores


def scores(results: Path, finished: bool = False) -> pd.DataFrame:
    """Return a line for each run of either loop: task, seed, loop, and accuracy and rows of each split.

    Args: the results folder; whether to leave out what the plain loop has not trained, rather than train it.
    """
    lines = []
    for metrics in sorted(results.glob(f"runs/{RUNS}")):
        outcome = read_json(metrics)
        task, seed = outcome["spec"]["task"]["id"], outcome["spec"]["seed"]
        kept = results / "plain_loop" / f"{task}_{seed}.json"
        if finished and not kept.exists():
            continue
        if not kept.exists():
            write_json(kept, plain_scores(metrics, results))
        log(f"{task}, seed {seed}: plain loop {read_json(kept)}")
        fast = {split: outcome["scores"][split]["accuracy"] for split in SPLITS}
        for loop, found in (("thaw", fast), ("plain", read_json(kept))):
            counts = {f"{split}_rows": outcome["rows"][split] for split in SPLITS}
            lines.append({"task": task, "seed": seed, "loop": loop} | found | counts)
    return pd.DataFrame(lines)


def main() -> None:
    """Train what is missing, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--finished", action="store_true", help="record what both loops have, and train nothing")
    results = HOME / "results"
    frame = scores(results, parser.parse_args().finished)
    runs = read_runs(results / layout.file("collect", {"experiment": NAME}))
    record.write(record.RECORDS / f"{NAME}.parquet", frame, record.circumstances(runs, results))


if __name__ == "__main__":
    run_step(main)
