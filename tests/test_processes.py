"""Processes of a job: the batches of a pass are the same, whoever computes them, and so are the bits."""

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load
from torch import nn

import forked
from jobs_of_server import until
from plans import plan_of
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.processes import Processes
from thaw.planning import job_request
from thaw.training import seeds_together
from thaw.training.checkpoints import Trained
from tiny_corpus import Bench, rows, tiny_corpus

HOME = Path(__file__).resolve().parents[1]
PARTS = [0, 3, "pooled"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    """An encoder, and a corpus of several batches."""
    folder = tmp_path_factory.mktemp("shares")
    corpus = tiny_corpus(folder / "data", "classification", train=rows("classification", 900, 1))
    return Bench(folder, "bert", corpus, "classification", dtype="fp32")


@pytest.fixture(scope="module")
def benches(tmp_path_factory) -> dict[str, Bench]:
    """A bench of texts with another task on which its runs are scored, and one of words."""
    folder = tmp_path_factory.mktemp("heads")
    made = {}
    for name, kind in (("classification", "classification"), ("spans", "spans"), ("other", "classification")):
        made[name] = Bench(folder / name, "bert", tiny_corpus(folder / name / "data", kind), kind)
    made["classification"].others["other"] = made["other"]
    return made


def extract(bench: Bench, out: Path, threads: int, *more: str) -> tuple[dict[str, bytes], dict]:
    """Run the step in a process of its own; return the payloads by name, and the card of boundary 3."""
    spec = bench.features_spec | {"compute": {"threads": threads}}
    words = ["--spec", canonical(spec), "--boundaries", *PARTS, "--data", bench.corpus.folder, "--out", out]
    words = [*words, "--encoder", bench.encoder, *more]
    done = forked.run(["thaw.steps.features", *words])
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_bytes() for path in out.glob("*.safetensors")}, read_json(out / "b3.json")


@pytest.mark.parametrize(("threads", "some"), [(1, False), (2, True)])
def test_processes_that_share_a_pass_write_the_bits_of_one(bench, tmp_path, threads, some):
    """Also of some rows, whose bits are compared with those among all rows before the pass."""
    chosen = canonical([{"task": bench.spec({})["task"], "subset": {"rows": 300}}])
    more = ("--rows", chosen) if some else ()
    alone, card = extract(bench, tmp_path / "alone", threads, *more)
    shared, other = extract(bench, tmp_path / "shared", threads, "--cores", str(3 * threads), *more)
    assert shared == alone and len(alone) == len(PARTS)
    assert card | {"seconds": 0, "passes": []} == other | {"seconds": 0, "passes": []}


@pytest.mark.parametrize(("kind", "threads"), [("classification", 2), ("spans", 1)])
def test_processes_that_share_heads_leave_the_bits_of_one(benches, tmp_path, kind, threads):
    """Of a search and of seeds, of texts, which train in one batch, and of words, which train one after the other."""
    bench = benches[kind]
    spec = bench.spec({"head_rate": None, "epochs": 1}, compute={"threads": threads})
    of_cell = {key: spec[key] for key in spec.keys() - {"seed"}}
    grid = [{"rate": rate, "epochs": epochs} for rate, epochs in ((1e-3, 2), (1e-1, 3))]
    search = of_cell | {"grid": grid, "seeds": [1, 5], "trial": True}
    seeds = of_cell | {"also": [bench.also("other")]} if bench.others else of_cell
    more = [
        word
        for other in bench.others.values()
        for word in ("--also-data", other.corpus.folder / "card.json", "--also-tokens", other.features / "tokens.json")
    ]
    for name, wanted, words in (("search_heads", search, []), ("fit_heads", seeds, ["--seeds", 1, 2, 3, *more])):
        alone, shared = tmp_path / f"{name}_alone", tmp_path / f"{name}_shared"
        heads(bench, name, wanted, alone, *words)
        heads(bench, name, wanted, shared, *words, "--cores", 3 * threads)
        costs = [path.relative_to(alone) for path in alone.rglob("cost.json")]
        assert contents(alone) == contents(shared) and len(contents(alone)) == (2 if name == "search_heads" else 15)
        for cost in costs:
            one, other = read_json(alone / cost), read_json(shared / cost)
            assert {key: one[key] for key in ("steps", "tokens", "flops")} == {
                key: other[key] for key in ("steps", "tokens", "flops")
            }
            assert other["seconds"]["train"] > 0 and other["processor_seconds"] > 0
            assert other["hardware"] == one["hardware"] and other["hardware"]["threads"] == threads
            assert other["processes"] == 3 and "processes" not in one
            assert other["seconds"]["total"] >= other["seconds"]["train"]


@pytest.mark.parametrize("seeds", [[1], [1, 2]])
def test_heads_of_a_store_that_was_freed_are_trained_by_processes_that_share_them(bench, tmp_path, seeds):
    """The states are made again with two threads, after which their process could not fork: a fork makes them."""
    spec = bench.spec({"head_rate": None, "epochs": 1}, compute={"threads": 2}, seed=None)
    of_cell = {key: spec[key] for key in spec.keys() - {"seed"}}
    two_threads = bench.features_spec | {"compute": {"threads": 2}}
    store = tmp_path / "store"
    words = ["--spec", canonical(two_threads), "--boundaries", 3, "--data", bench.corpus.folder, "--out", store]
    assert forked.run(["thaw.steps.features", *words, "--encoder", bench.encoder]).returncode == 0
    of_cell |= {"features": read_json(store / "tokens.json")["digest"]}
    heads(bench, "fit_heads", of_cell, tmp_path / "alone", "--seeds", *seeds, features=store)
    payload = (store / "b3.safetensors").read_bytes()
    (store / "b3.safetensors").unlink()
    heads(bench, "fit_heads", of_cell, tmp_path / "shared", "--seeds", *seeds, "--cores", 4, features=store)
    assert (store / "b3.safetensors").read_bytes() == payload
    assert contents(tmp_path / "alone") == contents(tmp_path / "shared")


def heads(bench: Bench, name: str, spec: dict, out: Path, *more, features: Path | None = None) -> None:
    """Run a step that trains heads in a process of its own."""
    given = ["--data", bench.corpus.folder, "--encoder", bench.encoder, "--features", features or bench.features]
    done = forked.run([f"thaw.steps.{name}", "--spec", canonical(spec), *given, "--out", out, *map(str, more)])
    assert done.returncode == 0, done.stderr


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder but for costs."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "cost.json"
    }


def test_results_come_in_order_from_forks_and_their_seconds_count():
    processes = Processes(1, 3)
    begin = time.monotonic()
    found = processes.run(lambda share: (share, os.getpid(), time.sleep(0.5)), 3)
    assert processes.worked < 0.5, "sleep is no work"
    assert [share for share, *_ in found] == [0, 1, 2] and len({pid for _, pid, _ in found} | {os.getpid()}) == 4
    assert processes.spared > 1.5 - (time.monotonic() - begin) - 0.1


def test_what_forks_work_is_counted():
    processes, begin = Processes(1, 2), time.process_time()
    processes.run(lambda share: sum(range(10_000_000)), 2)
    assert time.process_time() - begin < processes.worked


def test_one_process_computes_here():
    processes = Processes(2, 3)
    assert processes.run(lambda share: os.getpid(), 2) == [os.getpid()] * 2
    assert (processes.count, processes.own_threads, processes.spared) == (1, 2, 0.0)
    assert Processes(2, 1).count == Processes(4).count == 1 and Processes(2, 8).own_threads == 1


def test_a_gpu_is_used_by_the_jobs_own_process(monkeypatch):
    processes = Processes(2, 8)
    assert processes.on(SimpleNamespace(type="cpu")) is processes
    alone = processes.on(SimpleNamespace(type="cuda"))
    assert (alone.count, alone.own_threads, alone.threads) == (1, 2, 2)


def test_what_a_fork_raises_is_raised_here_and_the_others_end():
    def work(share: int) -> None:
        if share:
            raise UserError("disk full")
        time.sleep(0.1)

    with pytest.raises(UserError, match="disk full"):
        Processes(1, 2).run(work, 2)


class Odd(Exception):
    """An error that cannot be made again from its message."""

    def __init__(self, layer, place):
        super().__init__(f"layer {layer}")
        self.place = lambda: place  # and cannot be pickled


def test_an_error_of_a_fork_says_where_it_was_raised():
    def divide(share: int) -> float:
        return 1 / share

    with pytest.raises(ZeroDivisionError) as raised:
        Processes(1, 2).run(divide, 2)
    assert "in divide" in raised.value.__notes__[0]

    def odd(share: int) -> None:
        raise Odd(3, 4)

    with pytest.raises(RuntimeError, match="Odd: layer 3") as raised:
        Processes(1, 2).run(odd, 2)
    assert "in odd" in str(raised.value)


def test_a_fork_that_leaves_is_told_by_its_exit_code():
    with pytest.raises(UserError, match="was ended with exit code 3"):
        Processes(1, 2).run(lambda share: os._exit(3), 2)


def test_a_fork_that_is_killed_is_one_sentence():
    with pytest.raises(UserError, match="was ended by signal 9"):
        Processes(1, 2).run(lambda share: os.kill(os.getpid(), signal.SIGKILL), 2)


def test_forks_end_with_the_process_that_made_them(tmp_path):
    (tmp_path / "made").mkdir()
    script = tmp_path / "share_and_wait.py"
    code = f"""
import os, time
from thaw.core.processes import Processes
def work(share):
    open("{tmp_path}/made/" + str(os.getpid()), "w").close()
    time.sleep(60)
Processes(1, 2).run(work, 2)
"""
    script.write_text(code)
    made = forked.start([script], [os.devnull] * 3)
    until(lambda: len(list((tmp_path / "made").iterdir())) == 2)
    made.kill()
    made.join()
    until(lambda: not any(Path("/proc", path.name).exists() for path in (tmp_path / "made").iterdir()))


@pytest.mark.parametrize(
    "cores, stores, threads, expected", [(2, 1, 1, 2), (2, 4, 1, 1), (16, 3, 2, 5), (1, 1, 2, 2), (None, 1, 2, 2)]
)
def test_passes_share_the_cores_of_this_machine(monkeypatch, cores, stores, threads, expected):
    monkeypatch.setattr(job_request, "gpu_evidence", lambda *given: None)
    plan = SimpleNamespace(threads=threads, jobs={"features": [str(n) for n in range(stores)]})
    assert job_request.extraction_cores(plan, cores) == expected
    monkeypatch.setattr(job_request, "gpu_evidence", lambda *given: "this machine has an NVIDIA card")
    assert job_request.extraction_cores(plan, cores) == threads


def test_a_machine_of_many_cores_has_a_bounded_number_of_processes():
    assert [Processes(1, cores).count for cores in (1, 2, 16, 128)] == [1, 2, 16, 16]
    assert Processes(8, 128).count == 16


@pytest.mark.parametrize(
    "cores, threads, seeds, expected",
    [
        (2, 1, 5, 2),
        (2, 2, 5, 2),
        (16, 1, 5, 5),
        (16, 2, 5, 10),
        (3, 1, 5, 3),
        (5, 2, 5, 4),
        (1, 1, 5, 1),
        (None, 2, 5, 2),
    ],
)
def test_jobs_of_heads_share_the_cores(monkeypatch, cores, threads, seeds, expected):
    """Two jobs, of which each has at most a process for each seed, and as many as their vectors leave room for."""
    wish = {"tasks": ["acceptability"], "baselines": [], "strategies": ["frozen_sgd"], "outputs": ["main_table"]}
    wish |= {"heads": ["linear", "mlp"], "seeds": list(range(1, seeds + 1)), "compute": {"threads": threads}}
    plan = plan_of(**wish)

    def found() -> set[int]:
        cores_of = job_request.head_cores(plan, cores)
        return {cores_of("fit_heads", key) for key in plan.jobs["fit_heads"]}

    monkeypatch.setattr(job_request, "gpu_evidence", lambda *given: None)
    assert found() == {expected} and len(plan.jobs["fit_heads"]) == 2
    monkeypatch.setattr(job_request, "ROOM", 2.5 * 8 * 384 * 1087)  # for the vectors of two processes
    assert found() == {min(expected, 2 * threads)}
    monkeypatch.setattr(job_request, "gpu_evidence", lambda *given: "this machine has an NVIDIA card")
    assert found() == {threads}


def test_heads_for_which_layers_are_computed_are_of_one_process(tmp_path, monkeypatch):
    """Where no boundary is stored each process would run the encoder over the dataset."""
    monkeypatch.setattr(job_request, "gpu_evidence", lambda *given: None)
    wish = {"tasks": ["acceptability"], "strategies": ["frozen_sgd"], "outputs": ["main_table"], "baselines": []}
    wish |= {"compute": {"threads": 1}, "seeds": list(range(1, 41))}
    (tmp_path / "heads.yaml").write_text("heads:\n  middle: {label: Middle, kind: mlp, layers: {layer: 4}}\n")
    wish |= {"heads": ["mlp", "middle"], "catalogues": [str(tmp_path)]}
    found = {}
    for room in (0, 20):
        plan = plan_of(**wish | {"store": {"max_gib": room}})
        found[room] = {job_request.head_cores(plan, 16)("fit_heads", key) for key in plan.jobs["fit_heads"]}
    assert len(plan.jobs["fit_heads"]) == 2
    assert found[0] == {1} and min(found[20]) > 1


def test_a_parameter_that_is_a_view_crosses_a_fork():
    head = nn.Linear(3, 2)
    head.weight = nn.Parameter(torch.arange(6.0).view(3, 2).t())
    _, sent, _ = seeds_together._without_inputs(Trained(head, {}, None, {}, [], {}, [], {}))
    assert torch.equal(load(sent)["weight"], head.weight)


def test_heads_that_share_one_fit_have_the_cores_of_any_job(monkeypatch):
    monkeypatch.setattr(job_request, "gpu_evidence", lambda *given: None)
    wish = {"tasks": ["acceptability"], "strategies": ["frozen"], "outputs": ["main_table"], "compute": {"threads": 1}}
    plan = plan_of(**wish | {"seeds": [1, 2, 3, 4, 5]})
    cores_of = job_request.head_cores(plan, 16)
    assert {cores_of("fit_heads", key) for key in plan.jobs["fit_heads"]} == {1}
