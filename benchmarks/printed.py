"""How what the records name is called in print: sides, strategies, rows of tables; what has no name here is its own."""

from collections.abc import Iterable

from . import work

SIDES = {
    "ours": "Thaw",
    "ours_again": "Thaw, a later command of one shell",
    "default": "Trainer, defaults",
    "tuned": "Trainer, tuned",
    "trainer_tuned": "Trainer, tuned",
    "trainer_tuned_side_by_side": "Trainer, tuned, two processes",
    "tuned_side_by_side": "Trainer, tuned, two processes",
    "compiled": "Trainer, torch.compile",
    "peft_side_by_side": "Trainer with PEFT, two processes",
    "boundary_loop": "torch loop that keeps frozen layers' states",
    "compiled_loop": "the same loop, torch.compile",
    "cached_loop": "torch loop on kept features",
    "sentence_vectors": "sentence-transformers with scikit-learn, 24 heads",
    "sklearn_loop": "scikit-learn loop",
    "pipeline": "scikit-learn pipeline",
    "boosting": "gradient boosting on sentence vectors",
    "setfit": "SetFit",
}
DRY_RUNS = {
    "dry_run_1000": "1,000 jobs",
    "dry_run_10000": "10,000 jobs",
    "dry_run_finished": "finished experiment",
    "without_list_1000": "1,000 jobs, which are not listed",
    "without_list_10000": "10,000 jobs, which are not listed",
}
STRATEGIES = {name: entry["label"] for name, entry in work.table(work.LAYERS).items()}
STRATEGIES |= {f"bench_lora_{top}": work.lora(top)["label"] for top in (2, work.LAYERS)}
NAMES = SIDES | DRY_RUNS | STRATEGIES | {"bench_sst2_sentences": "SST-2", "memory_mb": "memory, MB"}


def name(key: str) -> str:
    """Return a name in print."""
    return NAMES.get(key, key)


def of_rows(keys: Iterable[str]) -> dict[str, str]:
    """Return rows in print: task/strategy is the strategy's name, after its task's where there are several tasks."""
    several = len({key.rpartition("/")[0] for key in keys if "/" in key}) > 1
    return {key: ": ".join(map(name, key.split("/")[0 if several else -1 :])) for key in keys}
