"""Whether Thaw's loop scores as a plain loop does: trains the plain loop on the rows of Thaw's runs, and records both.

thaw run config/experiments/loop_equivalence.yaml --config data_dir=path/to/data
PYTHONPATH=.:scripts:tests python quality/loop_equivalence.py

What the plain loop has scored is kept in results/plain_loop: a second call goes on where the first one stopped. With
--finished nothing is trained, and the seeds that both loops have are recorded. The record is
docs/results/loop_equivalence, its page docs/results/loop_equivalence.md.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import record
from benchmarks.quality import equivalence
from plain_loop import fine_tune
from thaw.core.files import read_json, write_json, write_text
from thaw.core.runtime import log, run_step
from thaw.data.corpus import Corpus
from thaw.training.rows_read import read_rows

HOME = Path(__file__).parents[1]
NAME, MARGIN = "loop_equivalence", 0.5  # points
RUNS = "*/n1000_wide/minilm/linear_mean/loop_top_k/k02/seed*/metrics.json"
SPLITS = ("test", "reserved")
LABELS = {"trec6": "TREC-6", "sst2_sentences": "SST-2, sentences", "sick_e": "SICK-E"}


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


def pooled(frame: pd.DataFrame) -> dict[str, tuple[list[float], list[float]]]:
    """Return by task the scores of Thaw and of the plain loop in points, over the rows of all splits together."""
    rows = sum(frame[f"{split}_rows"] for split in SPLITS)
    points = 100 * sum(frame[split] * frame[f"{split}_rows"] for split in SPLITS) / rows
    return {
        task: tuple(points[(frame["task"] == task) & (frame["loop"] == loop)].tolist() for loop in ("thaw", "plain"))
        for task in LABELS
        if (frame["task"] == task).any()
    }


def table(frame: pd.DataFrame) -> str:
    """Return the record's table in Markdown. Args: what `scores` returns."""
    by_task = pooled(frame)
    lines = [
        "**Accuracy of Thaw's loop and of a plain loop of torch, top two layers of MiniLM, 200 updates of 16.**\n",
        "| | Rows scored | Seeds | Thaw | Plain loop | Difference [90 % CI] | Within half a point |",
        "|:--|--:|--:|--:|--:|--:|:--|",
    ]
    for task, pair in by_task.items():
        scored = int(sum(frame.loc[frame["task"] == task, f"{split}_rows"].iloc[0] for split in SPLITS))
        lines.append(_line(LABELS[task], f"{scored:,}", len(pair[0]), [pair]))
    if len(by_task) > 1 and len({len(ours) for ours, _ in by_task.values()}) == 1:
        lines.append(_line("Mean of the tasks", "", "", list(by_task.values())))
    lines += [
        "",
        "- After ±: the standard deviation over seeds. Two one-sided tests at 5 %: the loops are equivalent",
        "",
    ]
    lines[-2] += " where the whole 90 % interval (Welch's t) is within half a point."
    return "\n".join(lines)


def _line(label: str, rows: str, seeds: int | str, pairs: list[tuple[list[float], list[float]]]) -> str:
    found, sides = equivalence(pairs), []
    for side in (0, 1):
        spread = f" ± {np.std(pairs[0][side], ddof=1):.2f}" if len(pairs) == 1 else ""
        sides.append(f"{np.mean([np.mean(pair[side]) for pair in pairs]):.2f}{spread}")
    shown = f"{found.difference:+.2f} [{found.low:+.2f}, {found.high:+.2f}]".replace("-", "−")
    verdict = "yes" if found.within(MARGIN) else "not shown"
    return f"| {label} | {rows} | {seeds} | {' | '.join(sides)} | {shown} | {verdict} |"


def main() -> None:
    """Train what is missing, and write the record and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--finished", action="store_true", help="record what both loops have, and train nothing")
    frame = scores(HOME / "results", parser.parse_args().finished)
    record.record(NAME)
    kept = record.RECORDS / NAME
    write_text(kept / "scores.csv", frame.to_csv(index=False))
    write_text(kept / "tables/equivalence.md", table(pd.read_csv(kept / "scores.csv")))
    page = record.RECORDS / f"{NAME}.md"
    write_text(page, record.with_records(page.read_text(encoding="utf-8")))


if __name__ == "__main__":
    run_step(main)
