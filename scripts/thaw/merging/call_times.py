"""How fast a merged folder is, against its runs as one model each, in one process and on the same tokens.

n tasks are asked of each text. Where the folder has fewer, its branches are used again in turn ("copies"), by both
ways alike. Tasks that read the two texts of a pair separately are left out. A call is all n tasks on a batch [B, T] of
token ids without padding: the tokenizer is not measured. Both ways are called in turn, so that what else the machine
does falls on both.
"""

import os
import tempfile
import time
from itertools import cycle, islice, product
from pathlib import Path

import numpy as np
import torch

from thaw.compute_cost.stopwatch import wait_for_device
from thaw.core.branch_choice import BranchSize, executed
from thaw.core.errors import UserError
from thaw.core.runtime import log
from thaw.exporting import formats
from thaw.exporting.finished_run import open_run
from thaw.exporting.standalone_model import Model
from thaw.merging.merged_folder import branches_of, stored_bytes
from thaw.merging.merged_model import MergedModel
from thaw.merging.proof import FreshProcess, texts_of

BUSY = 0.5  # load by core from which times are not those of a quiet machine
COLUMNS = "way tasks copies batch tokens layers median p95 p99 queries_per_second calls".split()


def measure(folder: Path, results: Path, spec: dict) -> tuple[dict, list[dict]]:
    """Return what latency.json says, and a row of `COLUMNS` for each way, number of tasks, batch and length.

    Args: a merged folder; the results folder that its runs are in; the keys of `latency:` under "latency".
    """
    settings, abouts = spec["latency"], branches_of(folder)
    together = [task for task, about in abouts.items() if about["pairs"] != "separate"]
    if not together:
        raise UserError("latency: every task of the merge reads the two texts of a pair separately; none is measured")
    before = list(os.getloadavg())
    if before[0] > BUSY * (os.cpu_count() or 1):
        log(f"this machine is busy (load {before[0]:.1f}), so times are longer than they need be; measure again later")
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        singles = {task: _single(results / about["run"], Path(place) / task) for task, about in abouts.items()}
        memory = _memory(folder, singles, abouts)
        merged, separate = MergedModel(folder), {task: Model(single) for task, single in singles.items()}
        stored = {"merged": stored_bytes(folder), "separate": sum(map(stored_bytes, singles.values()))}
        rows = []
        for count, batch, tokens in product(settings["tasks"], settings["batch"], settings["tokens"]):
            names = list(islice(cycle(together), count))
            rows += _rows(merged, separate, names, batch, tokens, settings["calls"])
            shown = "; ".join(f"{row['way']}: {1e3 * row['median']:.1f} ms" for row in rows[-2:])
            log(f"{count} tasks, batch {batch}, {tokens} tokens: {shown}")
    load = {"before": before, "after": list(os.getloadavg())}
    left_out = sorted(set(abouts) - set(together))
    return {
        "not_measured": left_out,
        "bytes": stored,
        "peak_mib": memory,
        "load": load,
    }, rows


def _single(run: Path, folder: Path) -> Path:
    """Export a run as a model of its own."""
    folder.mkdir()
    formats.write(open_run(run), folder)
    return folder


def _rows(merged: MergedModel, separate: dict[str, Model], names: list[str], batch: int, tokens: int, calls: int):
    """Return the row of each way. Args: the tasks of a call, one of them several times where there are copies."""
    inputs = _inputs(merged, batch, tokens)
    ways = {
        "merged": lambda: _call_merged(merged, inputs, names),
        "separate": lambda: [separate[name]._logits(inputs) for name in names],
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    with torch.inference_mode():
        for number in range(calls + calls // 10):
            for way, call in ways.items():
                start = time.perf_counter()
                call()
                wait_for_device()  # a GPU computes after the call has returned
                if number >= calls // 10:
                    seconds[way].append(time.perf_counter() - start)
    branches = [merged.branches[name] for name in names]
    sizes = [BranchSize(branch.frozen, len(branch.own)) for branch in branches]
    layers = {"merged": executed(sizes), "separate": sum(size.frozen + size.own for size in sizes)}
    facts = {"tasks": len(names), "copies": len(names) - len(set(names)), "batch": batch, "tokens": tokens}
    return [{"way": way, **facts, "layers": layers[way], **summary(taken, batch)} for way, taken in seconds.items()]


def summary(seconds: list[float], batch: int) -> dict:
    """Return the median, P95 and P99 of the seconds of calls, and the texts a second."""
    median, p95, p99 = np.percentile(seconds, [50, 95, 99])
    rate = batch * len(seconds) / sum(seconds)
    percentiles = {"median": float(median), "p95": float(p95), "p99": float(p99)}
    return percentiles | {"queries_per_second": rate, "calls": len(seconds)}


def _call_merged(merged: MergedModel, inputs, names: list[str]) -> None:
    """Run the trunk once and a branch for each name, a copy for each further one of the same name."""
    states = merged.trunk.states(inputs, {merged.branches[name].frozen for name in names})
    for name in names:
        branch = merged.branches[name]
        branch.logits(inputs, states[branch.frozen])


def _inputs(merged: MergedModel, batch: int, tokens: int) -> dict[str, torch.Tensor]:
    """Return token ids [B, T] and a mask of ones."""
    size = merged.trunk.model.config.vocab_size
    ids = torch.randint(5, size, (batch, tokens), generator=torch.Generator().manual_seed(1))
    return {"input_ids": ids.to(merged.device), "attention_mask": torch.ones_like(ids).to(merged.device)}


def _memory(folder: Path, singles: dict[str, Path], abouts: dict[str, dict]) -> dict[str, float]:
    """Return by way the peak memory in MiB of a fresh process that has answered once for each task."""
    peaks = {}
    for way, folders in {"merged": dict.fromkeys(abouts, folder), "separate": singles}.items():
        with FreshProcess(1) as process:
            for task, about in abouts.items():
                peaks[way] = process.ask(texts_of(about["reads"])[5:7], folders[task], tasks=[task])["peak_mib"]
    return peaks
