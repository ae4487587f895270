"""What is on record in the results folder, compared with what is planned: which results are there, under which spec.

The plan is a function of its configuration; here, and only here, it is compared with what earlier runs left. What a
finished run kept beyond what is asked for (the encoder's tensors, norms of gradients) is no part of its identity: such
a run serves. It is known by the spec that it carries, and so is what was made from it. No torch.
"""

from pathlib import Path

from thaw.core.digests import digest
from thaw.core.files import read_json
from thaw.declarations.needs import EXTRA_FILES
from thaw.planning.jobs import JobTable, PlannedDigest, Result


class Records:
    """The records of a plan's jobs, each read once as long as its file stays as it is."""

    def __init__(self, table: JobTable):
        self.table = table
        self._read: dict[str, tuple[int, dict]] = {}

    def spec(self, step: str, key: str) -> dict:
        """Return the spec under which a job runs, or has run: the planned one, but for what follows from the records.

        It names what the job is made from by the digests on record; and what a finished run kept, it keeps.
        """
        job = self.table.job(step, key)
        moved = any(self.digest(planned.result) != planned for planned in job.named)
        spec = self._on_record(job.spec) if moved else job.spec
        kept = self._also_kept(key, spec) if step == "train" else []
        return spec | dict.fromkeys(kept, True) if kept else spec

    def _on_record(self, value):
        """Return a spec with the digests of results as they are on record."""
        if isinstance(value, PlannedDigest):
            return self.digest(value.result)
        if isinstance(value, dict):
            return {name: self._on_record(item) for name, item in value.items()}
        return [self._on_record(item) for item in value] if isinstance(value, list | tuple) else value

    def digest(self, result: Result) -> str:
        """Return the digest that a result carries, or will carry once it is made."""
        spec = self.spec(result.step, result.key)
        if spec is self.table.job(result.step, result.key).spec:
            return self.table.digest(result)
        return digest(spec if result.seed is None else spec | {"seed": result.seed})

    def is_current(self, step: str, key: str) -> bool:
        """Return whether a job's results are there and carry the digest of its spec; for steps up to the runs."""
        if step == "fit_heads":
            return all(self.is_made(Result(step, key, seed)) for seed in self.table.seeds)
        return self._carry(self.table.files(step, key), Result(step, key))

    def is_made(self, result: Result) -> bool:
        """Return whether a result is there and carries the digest of its spec."""
        return self._carry([self.table.file(result)], result)

    def carries(self, file: str, result: Result) -> bool:
        """Return whether a file is there and carries the digest of a result."""
        return self._carry([file], result)

    def _carry(self, files: list[str], result: Result) -> bool:
        digests = [self._record(file).get("digest") for file in files]
        return None not in digests and set(digests) == {self.digest(result)}

    def _also_kept(self, key: str, spec: dict) -> list[str]:
        """Return what the finished run of a spec kept beyond what that asks for; nothing for one of another spec."""
        record = self._record(self.table.paths.file("train", key))
        made = record.get("spec", {})
        more = [name for name in EXTRA_FILES if made.get(name) and not spec.get(name)]
        return more if more and _identity(made) == _identity(spec) else []

    def _record(self, file: str) -> dict:
        try:
            time = Path(file).stat().st_mtime_ns
        except FileNotFoundError:
            return {}
        if self._read.get(file, (None,))[0] != time:
            record = read_json(file)
            self._read[file] = (time, {name: record[name] for name in ("digest", "spec") if name in record})
        return self._read[file][1]


def _identity(spec: dict) -> str:
    """Return a digest of all that a run's numbers depend on."""
    return digest({name: value for name, value in spec.items() if name not in EXTRA_FILES})
