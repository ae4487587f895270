"""The state of a run after a round, kept in a file until the run ends, so that a killed run resumes from it.

Random numbers are drawn by seed, phase, epoch and round and need no state: a run that resumes ends with the same bits
as one that was never stopped.
"""

import json
import math
import time
from collections import Counter
from pathlib import Path

import torch

from thaw.adaptation.peft_modules import add_inserts
from thaw.core.devices import allow_nondeterministic, nondeterministic_operations
from thaw.core.digests import digest
from thaw.core.files import drop_unfinished, save_tensors
from thaw.core.layout import PROGRESS
from thaw.core.runtime import hardware, log, versions
from thaw.training.run_state import PhaseLog

SPACING = 60.0  # seconds of training between two writes: a short run restarts sooner than its state is written
COUNTED = ("counts", "flops", "added")  # attributes of a run that `end_stage` sums over stages


class Progress:
    """The file of one run, in its results folder."""

    def __init__(self, folder: Path, spec: dict, watch, device: torch.device | None = None):
        """Read the file, if it is of this spec, this version of torch and this kind of GPU: another gives other bits.

        Args: the run's folder, spec and Stopwatch; the device that trains, None for the CPU.
        """
        self.path, self.watch, self.written = folder / PROGRESS, watch, time.monotonic()
        self.identity = {"digest": digest(spec), "torch": versions()["torch"]}
        if device is not None and device.type != "cpu":
            self.identity["device"] = hardware(device)["device"]
        drop_unfinished([self.path])  # of a process that was killed while it wrote
        self.state, self.tensors = self._read()

    def _read(self) -> tuple[dict, dict[str, torch.Tensor]]:
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return {}, {}
        try:
            with safe_open(self.path, "pt") as file:
                state = json.loads(file.metadata()["state"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            log(f"{self.path} cannot be read ({error}); training restarts")
            return {}, {}
        if state.get("identity") != self.identity:
            log(f"{self.path} is of other settings, another torch or another device; training restarts")
            return {}, {}
        return state, tensors

    @property
    def phase(self) -> int:
        """The number of the phase in which the run was stopped; 1 without a file."""
        return self.state.get("phase", 1)

    def restore(self, run) -> None:
        """Restore what a run trained before its phase, its logs and its head."""
        if not self.state:
            return
        run.trained = self._part("trained")
        run.phase_logs = [phase_log_of(values) for values in self.state["phase_logs"]]
        run.heads.load_state_dict(self._part("head"))
        for name in COUNTED:
            setattr(run, name, self.state[name])
        for number, (phase, stages) in enumerate(zip(run.phases, run.stages, strict=True), 1):
            done = len(stages) if number < self.phase else self.state["stage"] if number == self.phase else 0
            for stage in stages[:done]:
                run.inserts = add_inserts(run.inserts, phase, stage["components"], run.spec["seed"])
        for operation in self.state.get("relaxed", []):
            allow_nondeterministic(operation)
        self.watch.start -= sum(self.state["seconds"].values())
        for mine, before in ((self.watch.parts, "seconds"), (self.watch.worked, "worked")):
            for part, seconds in self.state.get(before, {}).items():
                mine[part] = mine.get(part, 0.0) + seconds
        log(f"resumes after update {self.state['steps']} of phase {self.phase}, from {self.path.name}")

    @torch.no_grad()
    def resume(self, training) -> None:
        """Restore the weights and the optimizer of a phase that has just entered the stage of the file.

        All tensors are moved to the device of what trains: the file was read to the CPU.
        """
        (run_state,) = training.states
        device = next(iter(run_state.parameters.values())).device
        training.epoch, training.steps = self.state["epoch"], self.state["steps"]
        run_state.best = -math.inf if self.state["best"] is None else self.state["best"]
        run_state.start, run_state.stale = self._part("start", device), self.state["stale"]
        if self.state["kept"] is not None:
            run_state.kept = self.state["kept"], self._part("kept", device)
        run_state.phase_log.lengths = phase_log_of(self.state["phase_logs"][-1]).lengths
        now, moments = self._part("now"), self._part("optimizer")
        for name, parameter in run_state.parameters.items():
            parameter.copy_(now[name])
            own = {key.rpartition("/")[2]: value for key, value in moments.items() if key.rpartition("/")[0] == name}
            if own:
                training.optimizer.state[parameter] = {key: value.to(device) for key, value in own.items()}
        self.tensors = {}  # else a run would hold its file in memory to its end

    def write(self, run, training) -> None:
        """Write the state of a run after a round, unless the last write is less than a minute old."""
        if time.monotonic() - self.written >= SPACING:
            self._write(run, training)

    def _write(self, run, training) -> None:
        (run_state,) = training.states
        kept, values = run_state.kept or (None, {})
        state = {"identity": self.identity, "phase": run_state.number, "stage": training.stage, "epoch": training.epoch}
        state |= {"steps": training.steps, "stale": run_state.stale, "kept": kept, "seconds": self.watch.parts}
        state |= {"worked": self.watch.worked}
        if met := nondeterministic_operations():
            state["relaxed"] = met
        state |= {"best": run_state.best if math.isfinite(run_state.best) else None}
        state["phase_logs"] = [vars(phase_log) for phase_log in run.phase_logs]
        state |= {name: getattr(run, name) for name in COUNTED}
        named = run_state.parameters.items()
        moments = {name: training.optimizer.state.get(parameter, {}) for name, parameter in named}
        parts = {
            "trained": run.trained,
            "head": run.heads.state_dict(),
            "now": {name: parameter.detach() for name, parameter in run_state.parameters.items()},
            "start": run_state.start,
            "kept": values,
            "optimizer": {f"{name}/{key}": value for name, own in moments.items() for key, value in own.items()},
        }
        tensors = {f"{part}:{name}": value for part, named in parts.items() for name, value in named.items()}
        save_tensors(self.path, tensors, {"state": json.dumps(state)})
        self.written = time.monotonic()

    def end(self) -> None:
        """Remove the file: the run's results are written."""
        self.path.unlink(missing_ok=True)

    def _part(self, part: str, device: torch.device | str = "cpu") -> dict[str, torch.Tensor]:
        named = {name.partition(":")[::2]: value for name, value in self.tensors.items()}
        return {name: value.to(device) for (owner, name), value in named.items() if owner == part}


def phase_log_of(values: dict) -> PhaseLog:
    """Return the log of a phase of what a file has of it, where the keys of `lengths` are strings.

    Earlier files have a list there, with an entry for each sequence.
    """
    lengths = Counter({int(tokens): count for tokens, count in Counter(values["lengths"]).items()})
    return PhaseLog(**values | {"lengths": lengths})
