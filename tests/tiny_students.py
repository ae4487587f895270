"""What a strategy says in addition to its phases, on a bench: its student, its teacher's outputs, its transfer set."""

from pathlib import Path

from thaw.adaptation.selectors import boundary
from thaw.core.boundaries import taught_parts
from thaw.core.files import read_json
from thaw.planning.student_checks import StudentShape
from thaw.schema.strategy import StrategyConfig
from tiny_corpus import Bench, rows, tiny_corpus

KEPT = {"n": 2, "k": 1}  # the points of sweeps: how many of the bench's three layers a student keeps


def with_transfer_set(bench: Bench, folder: Path, task: str) -> Bench:
    """Give a bench a corpus of other rows as its transfer set, read with an encoder of the same weights."""
    corpus = tiny_corpus(folder / "corpus", bench.kind, train=rows(bench.kind, 12, 5), test=rows(bench.kind, 4, 6))
    bench.others[task] = Bench(folder, "bert", corpus, bench.kind)
    return bench


def with_parts(bench: Bench, entry: StrategyConfig, spec: dict) -> dict:
    """Return a spec with the layers that the student keeps, what is matched to its teacher, and transfer sets."""
    kept = list(range(1, bench.layers + 1))
    if entry.student:
        student = entry.student
        if student.layers == bench.layers:  # of an encoder of six; of three it would drop none
            student = student.model_copy(update={"layers": KEPT["n"]})
        layers, start = student.shape(bench.layers, KEPT)
        kept, shape = layers, StudentShape(tuple(layers), start)
        spec = spec | {"student": shape.entry()}
        for phase in spec["phases"]:
            phase["components"] = shape.of_trained(phase["components"])
            phase["boundary"] = None  # weights below what trains may be the earlier run's, or another layer's
    for phase, said in zip(spec["phases"], entry.phases, strict=True) if entry.teacher else ():
        for term, key in (("hidden", "pairs"), ("attention", "attended")):
            if said.distil and (one := getattr(said.distil, term)):
                pairs = one.pairs(kept, bench.layers, boundary(phase["components"], bench.layers))
                phase[key] = [list(pair) for pair in pairs]
    tasks = dict.fromkeys(phase.coral.to for phase in entry.phases if phase.coral)
    return spec | ({"also": [bench.also(task) for task in tasks]} if tasks else {})


def teach(bench: Bench, metrics: Path, phases: list[dict], out: Path) -> Path:
    """Run the step `teach`; return its card. Args: metrics.json of a run that was kept; the student's phases."""
    record = read_json(metrics)
    spec = {key: record["spec"][key] for key in ("version", "task", "subset", "compute", "data", "encoder", "features")}
    spec |= {"run": record["digest"], "dtype": "fp32"}
    return bench.step("teach", spec, out, "--run", metrics, "--boundaries", *taught_parts(phases)) / "card.json"
