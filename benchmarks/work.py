"""The work: strategies of the table and of the grid, written once, for Thaw as YAML and for the peers as stages.

Both sides have one rate a strategy, batches of 32, a linear fall without warm-up, no weight decay, and gradients
clipped at norm 1: what transformers' Trainer does by default, apart from the size of the batch. Like the tuned Trainer
we compute in bf16 where the machine does.
"""

from thaw.adaptation.selectors import components
from thaw.adaptation.stages import stages
from thaw.schema.phases import PhaseConfig

from .measuring import has_bf16

BATCH = 32
PRECISION = {"precision": "bf16"} if has_bf16() else {}  # of phases, and of the states that they start from
SHARED = {"batch_size": BATCH, "warmup": 0.0, "weight_decay": 0.0} | PRECISION
EPOCHS = 3
GRID_EPOCHS, GRID_SEEDS, GRID_RATES, GRID_HEADS = 10, 5, [5e-4, 1e-3, 3e-3, 1e-2], ["linear", "mlp"]
STRENGTHS = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0]  # of the L2 penalty, those of linear_probe_all_layers
TABLE_HEAD = "linear_pooler"  # the head of AutoModelForSequenceClassification
FROZEN, FULL, GRID = "bench_frozen", "bench_full", "bench_grid"
LAYERS = 6  # of MiniLM


def phase(train: list, rate: float, epochs: int = EPOCHS, **more) -> dict:
    """Return a phase as it stands in a catalogue."""
    return {"train": train, "rate": rate, "epochs": epochs} | SHARED | more


def top(k: int, epochs: int = EPOCHS) -> dict:
    """Return the strategy that trains the last k layers and the head."""
    return {"label": f"Top {k}", "phases": [phase(["head", {"top": k}], 3e-4, epochs)]}


def full(epochs: int = EPOCHS) -> dict:
    """Return the strategy that trains everything."""
    return {"label": "Full", "phases": [phase(["all"], 1e-4, epochs)]}


def lora(top: int) -> dict:
    """Return the strategy that trains matrices of rank 8 in the last layers, and the head."""
    insert = {"kind": "lora", "rank": 8, "alpha": 16, "targets": "query_value", "top": top}
    return {"label": f"LoRA, top {top}", "phases": [phase(["head"], 1e-3, insert=insert)]}


def table(layers: int) -> dict[str, dict]:
    """Return the strategies of the table by id.

    `half` is the last half of the layers; with six layers that is top 3, and is then computed once on both sides.
    """
    half = (layers + 1) // 2
    tops = {f"bench_top_{k}": top(k) for k in sorted({1, 2, 3, half}) if k <= layers}
    return {
        FROZEN: {"label": "Frozen", "phases": [phase(["head"], 1e-3)]},
        **tops,
        FULL: full(),
        "bench_stack": {"label": "Stack, then fine-tune", "after": FROZEN, "phases": [phase(["all"], 1e-4)]},
        "bench_gradual": {
            "label": "Gradual unfreezing",
            "phases": [phase(["all"], 1e-4, 1, unfreeze={"layers": 1, "epochs": 1})],
        },
    }


def depths() -> dict[str, dict]:
    """Return the strategies of the table in one phase with one set of layers: frozen, top 1, 2 and 3, full."""
    return {name: entry for name, entry in table(LAYERS).items() if name not in ("bench_stack", "bench_gradual")}


def in_fp32(strategies: dict[str, dict]) -> dict[str, dict]:
    """Return strategies with the precision that Thaw has by default."""

    def plain(one: dict) -> dict:
        return {key: value for key, value in one.items() if key != "precision"}

    return {name: entry | {"phases": list(map(plain, entry["phases"]))} for name, entry in strategies.items()}


def grid() -> dict[str, dict]:
    """Return the head-only grid: a search over rates, each with all seeds."""
    search = {"grid": {"rate": GRID_RATES}, "seeds": list(range(1, GRID_SEEDS + 1))}
    return {GRID: {"label": "Frozen, grid", "phases": [phase(["head"], 1e-3, GRID_EPOCHS)], "search": search}}


def all_layers() -> dict[str, dict]:
    """Return the linear probe on the means of all layers side by side, fitted to convergence."""
    phases = [{"train": ["head"], "optimizer": "lbfgs", "l2": STRENGTHS}]
    reads = {"layers": {"combine": "concat"}, "pooling": "mean"}
    return {"bench_all_layers": {"label": "Linear probe, all layers", "reads": reads, "phases": phases}}


def peer_phases(name: str, strategies: dict[str, dict], layers: int) -> list[dict]:
    """Return a strategy as the peers read it: phases with `rate` and `stages`, each of `components` and `epochs`.

    A strategy that starts from another one's run has that one's phases before its own. A phase with matrices of LoRA
    has them as `lora`, and the numbers of their layers, from 0, as `layers`.
    """
    entry = strategies[name]
    found = peer_phases(entry["after"], strategies, layers) if "after" in entry else []
    for given in entry["phases"]:
        one = PhaseConfig.model_validate(given)
        parts = [{"epochs": one.epochs} | stage for stage in stages(one, components(one.train, layers, {}))]
        found.append({"rate": one.rate, "stages": parts})
        if (lora := given.get("insert", {})).get("kind") == "lora":
            found[-1] |= {"lora": lora, "layers": list(range(layers - lora["top"], layers))}
    return found


def cells(tasks: list[str], strategies: dict[str, dict], seeds: list[int], layers: int, **more) -> list[dict]:
    """Return one cell for each task, strategy and seed, as peers/trainer.py reads them; `more` is added to each."""
    return [
        {"task": task, "strategy": name, "seed": seed, "head": "pooler", "batch_size": BATCH}
        | {"phases": peer_phases(name, strategies, layers)}
        | more
        for task in tasks
        for name in strategies
        for seed in seeds
    ]


def grid_cells(task: str, seeds: list[int]) -> list[dict]:
    """Return the cells of the head-only grid for some of its seeds."""
    stage = {"components": ["head"], "epochs": GRID_EPOCHS}
    return [
        {"task": task, "strategy": GRID, "seed": seed, "head": head, "batch_size": BATCH}
        | {"phases": [{"rate": rate, "stages": [stage]}]}
        for head in GRID_HEADS
        for rate in GRID_RATES
        for seed in seeds
    ]
