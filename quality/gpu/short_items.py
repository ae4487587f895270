"""What short.py measures: `python short_items.py ITEM DEVICE`, each item in a process of its own."""

import functools
import gc
import importlib.util
import os
import platform
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

from short import HOME, found

HERE = Path.cwd()  # an empty folder
ALONE = "without a server"


@dataclass(frozen=True)
class Sizes:
    """How large what is measured is: on a card as people have it, in a rehearsal as small as can be."""

    shapes: dict[str, tuple[int, int, int, int]]  # layers, width, heads, width of the feed-forward layers
    batch: int
    lengths: tuple[int, ...]  # tokens of a row
    updates: int
    rows: int  # of an extraction
    tests: tuple[str, ...]  # further arguments of pytest
    precisions: tuple[str, ...]
    jobs: tuple[str, ...]  # of the fork server, one after the other


ON_CARD = Sizes(
    shapes={"bert_base": (12, 768, 12, 3072), "minilm": (6, 384, 12, 1536)},
    batch=32,
    lengths=(22, 128),
    updates=20,
    rows=4000,
    tests=(),
    precisions=("fp32", "tf32", "bf16"),
    jobs=("first", "second", "third", ALONE),
)
REHEARSAL = Sizes(
    shapes={"tiny": (2, 32, 4, 48)},
    batch=4,
    lengths=(8,),
    updates=2,
    rows=64,
    tests=("-k", "test_8 or test_17 or test_18"),
    precisions=("fp32", "bf16"),
    jobs=("first", "second"),
)
TRAINED = {"top 2": {"train": ["head", {"top": "k"}], "k": 2}, "full": {"train": ["all"]}}


def sizes(device) -> Sizes:
    return ON_CARD if device.type == "cuda" else REHEARSAL


def attempt(measure: Callable[[], dict], **of) -> None:
    """Note what is measured, or the error in its place, and go on."""
    try:
        found(**of, **measure())
    except Exception as error:
        traceback.print_exc()
        found(**of, error=f"{type(error).__name__}: {error}"[:400])


def wait(device) -> None:
    """Wait for a card's work."""
    if device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)


def milliseconds(update: Callable[[], object], count: int, device) -> float:
    """Return the milliseconds of one of so many updates, after a few that make what is made once."""
    for _ in range(3):
        update()
    wait(device)
    begin = time.perf_counter()
    for _ in range(count):
        update()
    wait(device)
    return 1000 * (time.perf_counter() - begin) / count


# --- what is here --------------------------------------------------------------------------------------------------


def versions(device) -> None:
    """Note the libraries, the driver, the cards, and which import of the fork server initialises CUDA, if one does."""
    from importlib.metadata import PackageNotFoundError, version

    from thaw.core import fork_server

    libraries = "torch transformers tokenizers safetensors numpy pandas pyarrow pydantic peft snakemake pytest".split()
    for name in libraries:
        try:
            found(what=name, value=version(name))
        except PackageNotFoundError:
            found(what=name, value="not installed")
    found(what="python", value=platform.python_version())
    found(what="kernel, cores", value=f"{platform.release()}, {len(os.sched_getaffinity(0))}")
    attempt(lambda: {"value": smi("--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")}, what="smi")
    attempt(lambda: {"value": smi("-L")}, what="cards, MIG")
    before, begin = fork_server.driver_answer(), time.perf_counter()
    found(what="driver's answer at the start (3: not initialised; None: no driver)", value=str(before))
    for name in fork_server.LIBRARIES["models"]:
        fork_server._import(name)
        if (answer := fork_server.driver_answer()) != before:
            found(what="driver's answer", value=f"{answer}, after the import of {name}")
        before = answer
    found(what="the server's imports, seconds", value=round(time.perf_counter() - begin, 1))
    found(what="forks of the server have CUDA", value=fork_server.forks_have_cuda(before))
    if device.type == "cuda":
        attempt(card, what="torch")


def smi(*query: str) -> str:
    """Return what nvidia-smi says."""
    try:
        done = subprocess.run(["nvidia-smi", *query], capture_output=True, text=True, timeout=20)
    except FileNotFoundError:
        return "no nvidia-smi"
    return "; ".join((done.stdout or done.stderr).strip().splitlines())


def card() -> dict:
    """Return what torch says of the first card."""
    import torch

    if not torch.cuda.is_available():
        return {"card": "none", "error": f"torch {torch.__version__} sees no card"}
    of = torch.cuda.get_device_properties(0)
    built = f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}, {' '.join(torch.cuda.get_arch_list())}"
    return {"value": f"{of.name}, {of.major}.{of.minor}, {of.total_memory / 2**30:.0f} GiB, {of.uuid}; {built}"}


def tests(device) -> None:
    """Run the tests for a card: whole runs first, which say most."""
    files = [HOME / f"quality/gpu/test_gpu_{name}.py" for name in ("runs", "heads", "probes", "machine")]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", "-p", "short"]
    command += [f"--basetemp={HERE / 'pytest'}", "--tb=short", *sizes(device).tests]
    if device.type == "cuda" and importlib.util.find_spec("xdist"):
        command += ["-n", "4", "--dist", "load"]
    dry = {} if device.type == "cuda" else {"THAW_TEST_DEVICE": "cpu"}
    done = subprocess.run([*command, *files], cwd=HOME, env=os.environ | dry)
    if done.returncode not in (0, 1):  # 1: some test failed, which is noted
        sys.exit(f"pytest ended with {done.returncode}")


# --- a small corpus and an encoder of a published shape -------------------------------------------------------------


def texts(count: int, tokens: int, seed: int) -> list[dict]:
    """Return rows of so many tokens, with the two that the tokenizer adds."""
    from tiny import KNOWN

    draw, words = random.Random(seed), [word for word in KNOWN if word.islower()]
    return [
        {"text": " ".join(draw.choices(words, k=tokens - 2)), "label": ("yes", "no")[row % 2]} for row in range(count)
    ]


def bench_of(name: str, shape: tuple[int, int, int, int], tokens: int, count: int):
    """Return rows and a BERT of a shape with random weights, and its stored states, made as the rules make them."""
    import tiny
    from tiny_corpus import Bench, tiny_corpus
    from tiny_own import STATED

    layers, width, heads, inner = shape
    tiny.SIZES.update(hidden_size=width, num_attention_heads=heads, intermediate_size=inner, initializer_range=0.02)
    folder = HERE / f"{name}{tokens}"
    splits = {split: texts(8, tokens, seed) for seed, split in enumerate(("validation", "test"))}
    corpus = tiny_corpus(folder / "data", "classification", train=texts(count, tokens, 7), **splits)

    def family(source: Path) -> dict:
        tiny.tiny_encoder("bert", source, layers)
        return {"folder": str(source), "layers": layers, **STATED, "width": width}

    return Bench(folder, family, corpus, "classification", dtype="bf16", max_length=tokens)


# --- an update -----------------------------------------------------------------------------------------------------


def updates(device) -> None:
    """Note what an update takes: by shape, length, what trains, and precision."""
    size = sizes(device)
    for tokens in size.lengths:
        for name, shape in size.shapes.items():
            begin = time.perf_counter()
            try:
                bench = bench_of(name, shape, tokens, 4 * size.batch)
            except Exception as error:
                traceback.print_exc()
                found(shape=name, error=f"{type(error).__name__}: {error}"[:400])
                continue
            print(f"{name} of {tokens} tokens: made in {time.perf_counter() - begin:.1f} s")
            for trains in TRAINED:
                for precision in size.precisions:
                    of = {"shape": name, "batch": f"{size.batch} x {tokens}", "trains": trains, "precision": precision}
                    attempt(functools.partial(an_update, bench, trains, precision, device), **of)


def an_update(bench, trains: str, precision: str, device) -> dict:
    """Return milliseconds, launches, the share of them in which the card works, and memory of Thaw's own update."""
    import torch

    from thaw.training.phase_loop import PhaseTraining
    from thaw.training.run_state import RunState
    from thaw.training.training_run import TrainingRun

    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    size = sizes(device)
    spec = bench.spec({**TRAINED[trains], "precision": precision, "batch_size": size.batch, "epochs": 1})
    run = TrainingRun(spec, replace(bench.inputs(), device=device))
    run.head.to(device)
    state = RunState(1, run.phases[0], run.seed, run.score)
    training = PhaseTraining([state], run.stages[0], len(run.rows))
    run.phase_logs.append(state.phase_log)
    stage = run.stages[0][0]
    trainable = run.trainable(state, stage, [run])
    training.enter(trainable, stage["components"], run.shape.layers, run.context.kept)
    batches = training._batches(4)
    trainable.begin(batches)

    def update() -> None:
        training._update(batches[training.steps % len(batches)], [1.0])
        training.steps += 1

    took = milliseconds(update, size.updates, device)
    loading = milliseconds(lambda: trainable.loader("train", run.rows[batches[0]]), size.updates, device)
    with torch.profiler.profile() as profile:
        for _ in range(3):
            update()
        wait(device)
    launches, busy = on_card(profile.events())
    of = {"ms": round(took, 2), "ms of its batch": round(loading, 2), "launches": round(launches / 3)}
    of |= {"ms on the card": round(busy / 3, 2), "busy": round(busy / 3 / took, 2)}
    return of | {"MiB": round(torch.cuda.max_memory_allocated(device) / 2**20) if device.type == "cuda" else 0}


def on_card(events) -> tuple[int, float]:
    """Return how many kernels ran on a card, and the milliseconds in which one did, of what a profiler saw."""
    from torch.autograd import DeviceType

    there = [event for event in events if event.device_type == DeviceType.CUDA]
    # what a library names a part of its work stands there too, around kernels
    there = [event for event in there if not getattr(event, "is_user_annotation", False)]
    spans = sorted((event.time_range.start, event.time_range.end) for event in there)
    busy, until = 0.0, 0.0
    for start, end in spans:
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    return sum(not event.name.startswith("Mem") for event in there), busy / 1000


# --- extraction ----------------------------------------------------------------------------------------------------


def extraction(device) -> None:
    """Note tokens a second of an extraction of all boundaries, and its seconds by part."""
    size = sizes(device)
    name, shape = next(iter(size.shapes.items()))
    bench = bench_of(name, shape, size.lengths[0], size.rows)
    for computed in ("fp32", "bf16"):
        attempt(functools.partial(an_extraction, bench, computed, device, False), shape=name, computed=computed)
        attempt(functools.partial(an_extraction, bench, computed, device, True), shape=name, computed=computed)


def an_extraction(bench, computed: str, device, by_part: bool) -> dict:
    """Return the seconds of an extraction, and tokens a second; by part the card is waited for in between."""
    from thaw.encoders.transformers import Encoder
    from thaw.features import extract, parts, payload
    from thaw.features.store import FeatureStore

    seconds: dict[str, float] = {}
    watched = [(extract.Pass, "_states", "compute"), (parts.TokenStates, "values", "gather")]
    watched += [(extract, "tensors_to_host", "copy"), (payload.Payload, "put", "write")]
    watched += [(extract, "file_sha256", "hash")]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in watched]
    store, encoder = FeatureStore(bench.features), Encoder.load(bench.encoder)
    form = extract.StatesFormat("bf16", computed if device.type == "cuda" else "fp32")
    try:
        for owner, name, part in watched if by_part else ():
            setattr(owner, name, timed(getattr(owner, name), part, seconds, device))
        begin = time.perf_counter()
        extract.extract(store, encoder, list(range(bench.layers + 1)), form, device)
        total = time.perf_counter() - begin
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)
    tokens = sum(store.tokens(split) for split in store.splits)
    rounded = {part: round(value, 3) for part, value in seconds.items()}
    return {"tokens": tokens, "seconds": round(total, 3), "tokens a second": round(tokens / total)} | rounded


def timed(function, part: str, seconds: dict[str, float], device):
    """Return a function that adds its seconds to a part, a card's work included."""

    def measured(*args, **kwargs):
        wait(device)
        begin = time.perf_counter()
        result = function(*args, **kwargs)
        wait(device)
        seconds[part] = seconds.get(part, 0.0) + time.perf_counter() - begin
        return result

    return measured


# --- the users' way ------------------------------------------------------------------------------------------------


def fork_server(device) -> None:
    """Note a training that the fork server forks, and on a card one without it: where it computed, and the lock."""
    from thaw.core import fork_server as server
    from thaw.core.digests import canonical

    size, code = sizes(device), os.environ["PYTHONPATH"]
    os.environ.update(server.environment_of_jobs(code, 1))
    server.start(code, 1, ("models",))  # which imports meanwhile
    as_started = dict(os.environ)  # to which torch adds as it opens a card in this process
    name, shape = list(size.shapes.items())[-1]
    bench = bench_of(name, shape, size.lengths[0], 4 * size.batch)
    spec = canonical(bench.spec({"train": ["all"], "batch_size": size.batch, "epochs": 4}))
    folders = ("--data", bench.corpus.folder, "--encoder", bench.encoder, "--features", bench.features)
    command = [sys.executable, "-m", "thaw.steps", "train", "--spec", spec, *map(str, folders), "--out"]
    for job in size.jobs:
        environment = as_started | ({server.ADDRESS: ""} if job == ALONE else {})
        attempt(functools.partial(a_job, [*command, str(HERE / job)], environment, device), job=job)


def a_job(command: list[str], environment: dict[str, str], device) -> dict:
    """Run a step as a rule does; return its seconds by part, and whether a card was locked while it ran and is free."""
    from thaw.core.files import read_json

    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    begin, locked = time.perf_counter(), False
    with subprocess.Popen(command, env=environment, **pipes) as job:
        while job.poll() is None:
            locked = locked or not is_free(device)
            time.sleep(0.01)
        said = job.stdout.read()
    took = time.perf_counter() - begin
    print(said)
    if job.returncode:
        return {"error": said.strip()[-400:]}
    cost = read_json(Path(command[-1], "cost.json"))
    of = {"seconds": round(took, 1)} | cost["seconds"] | {"device": cost["hardware"]["device"]}
    of |= {"forked": bool(environment["THAW_FORK_SERVER"]) and "imports its libraries itself" not in said}
    if device.type == "cuda":
        of |= {"locked": locked, "free afterwards": is_free(device)}
        if not locked or not of["free afterwards"] or of["device"] == "cpu":
            of["error"] = "it did not compute on the card while it held its lock"
    return of


def is_free(device) -> bool:
    """Return whether no process has memory of the first card."""
    if device.type == "cpu":
        return True
    import torch

    from thaw.core import devices

    of = torch.cuda.get_device_properties(device)
    name, total = str(of.uuid), of.total_memory >> 20
    with devices._open_lock(name) as file:
        return devices.try_lock(file) and devices.memory_left(name, total) == total


def thaw_run(device) -> None:
    """Note what `thaw run` makes of a small experiment: Snakemake, the fork server, a lock for each job."""
    from thaw.core.files import read_json
    from tiny import tiny_encoder
    from workflow import Workplace

    place = Workplace(HERE, tiny_encoder("bert", HERE / "tiny"))
    strategies = [{"short_top": [1]}, "short_full", "short_stack"]
    place.write("mine.yaml", place.experiment("mine", tasks=["colour"], strategies=strategies, outputs=["main_table"]))
    command = [sys.executable, "-c", "from thaw.cli.main import main; main()", "run", "mine.yaml", "--cores", "2"]
    begin = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(HOME / "scripts")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    took = time.perf_counter() - begin
    print(done.stdout)
    of = {"run": "thaw run", "seconds": round(took, 1)}
    if done.returncode:
        broken = [line for line in done.stdout.splitlines() if "rror" in line][:4]
        found(**of, error=f"exit code {done.returncode}: {' | '.join(broken)}"[:600])
        return
    logs = " ".join(path.read_text(errors="replace") for path in HERE.glob("logs/**/*.log"))
    alone = logs.count("imports its libraries itself")
    found(**of, **({"error": f"{alone} jobs imported for themselves"} if alone else {}))
    costs = sorted(HERE.glob("results/runs/**/cost.json"))
    for path in costs:
        cost = read_json(path)
        name = path.parent.relative_to(HERE / "results/runs").as_posix()
        found(run=name, seconds=cost["seconds"]["total"], device=cost["hardware"]["device"])
    if len(costs) < 4:
        found(run="records of runs", error=f"{len(costs)} where 4 are due")


# --- runs side by side ---------------------------------------------------------------------------------------------


def side_by_side(device) -> None:
    """Note the time of an update of 1, 4 and 8 LoRA runs on the same frozen matrices: a prototype, not Thaw's code."""
    size = sizes(device)
    for name, shape in size.shapes.items():
        for runs in (1, 4, 8):
            of = {"shape": name, "batch": f"{size.batch} x {size.lengths[0]}", "runs": runs}
            attempt(functools.partial(an_update_of, shape, runs, size, device), **of)


def an_update_of(shape: tuple[int, int, int, int], runs: int, size: Sizes, device) -> dict:
    """Return milliseconds of an update of several runs, by its calls and, on a card, in a CUDA graph."""
    update = together(shape, runs, size, device)
    took = {"ms": milliseconds(update, size.updates, device)}
    if device.type == "cuda":
        took["ms in a graph"] = milliseconds(in_a_graph(update), size.updates, device)
    return {what: round(value, 2) for what, value in took.items()} | {"ms a run": round(took["ms"] / runs, 2)}


def in_a_graph(update: Callable[[], None]) -> Callable[[], None]:
    """Return a function that makes an update as one launch. Source: torch's notes on CUDA, whole-network capture."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            update()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        update()
    return graph.replay


def together(shape: tuple[int, int, int, int], runs: int, size: Sizes, device) -> Callable[[], None]:
    """Return a function that makes an update of several runs: rank 8 in query and value of each layer, in bf16.

    A frozen matrix is multiplied once with the tokens of all runs. R runs, B rows, T tokens, d width, r rank.
    """
    import torch
    from torch import nn
    from torch.nn import functional

    layers, width, heads, inner = shape
    batch, tokens = size.batch, size.lengths[0]
    torch.manual_seed(1)
    make = functools.partial(nn.Linear, device=device)
    frozen = [
        [make(width, 3 * width), make(width, width), make(width, inner), make(inner, width)] for _ in range(layers)
    ]
    lora = [torch.randn(2, runs, 2, width, 8, device=device).mul_(0.02).requires_grad_() for _ in range(layers)]
    head = torch.zeros(runs, width, 2, device=device, requires_grad=True)
    for matrix in (matrix for layer in frozen for matrix in layer):
        matrix.requires_grad_(False)
    begin = torch.randn(runs, batch * tokens, width, device=device)  # [R, BT, d]
    targets = torch.randint(2, (runs * batch,), device=device)
    on_a_card = device.type == "cuda"
    optimizer = torch.optim.AdamW([*lora, head], lr=1e-4, fused=on_a_card, capturable=on_a_card)

    def change(states, pair):  # [R, BT, d] times [R, d, r] times [R, r, d]
        return states @ pair[0] @ pair[1].transpose(1, 2)

    def layer(states, matrices, pairs):
        query, key, value = matrices[0](states).chunk(3, -1)
        query, value = query + change(states, pairs[0].unbind(1)), value + change(states, pairs[1].unbind(1))
        split = [x.reshape(runs * batch, tokens, heads, -1).transpose(1, 2) for x in (query, key, value)]
        mixed = functional.scaled_dot_product_attention(*split).transpose(1, 2).reshape(states.shape)
        states = functional.layer_norm(states + functional.dropout(matrices[1](mixed), 0.1), (width,))
        wide = functional.gelu(matrices[2](states))
        return functional.layer_norm(states + functional.dropout(matrices[3](wide), 0.1), (width,))

    def update() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=on_a_card, cache_enabled=False):
            states = begin
            for matrices, pairs in zip(frozen, lora, strict=True):
                states = layer(states, matrices, pairs)
            first = states.view(runs, batch, tokens, width)[:, :, 0]
            logits = (first @ head).flatten(0, 1).float()
        loss = functional.cross_entropy(logits, targets) * runs
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return update


def main() -> None:
    """Measure one item on one device."""
    item, name = sys.argv[1:]
    device = SimpleNamespace(type=name)  # of those that import torch in other processes alone
    if item not in ("versions", "tests"):
        import torch

        from thaw.core.runtime import set_threads

        device = torch.device(name, 0) if name == "cuda" else torch.device(name)
        set_threads(1)
        torch.use_deterministic_algorithms(name == "cuda")  # as where a job has claimed a card
    every = (versions, tests, updates, extraction, fork_server, side_by_side, thaw_run)
    {measure.__name__: measure for measure in every}[item](device)


if __name__ == "__main__":
    main()
