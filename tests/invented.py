"""A results folder of invented records, written on the spot, and the specs that select and show them.

Two tasks: `entities` (spans, SYNTHETIC), and `odd`, on pairs, whose validation is carved and whose test split is called
dev. Five points of four strategies, all kinds of baselines, one result from elsewhere, two seeds.
"""

from itertools import product
from pathlib import Path

import pandas

from thaw.core import layout
from thaw.core.files import write_json, write_text
from thaw.decision.record import VERSION
from thaw.declarations.task_types import PAIR_TYPES
from thaw.outputs.frame import collection, runs_frame
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.render import table_formats
from thaw.outputs.report import report_page, runs_page
from thaw.outputs.tables import scores
from thaw.schema.catalogue import Catalogue
from thaw.schema.corpora import TaskConfig
from thaw.schema.encoder import EncoderConfig

ROOT = Path(__file__).parents[1]
SEEDS = [1, 2]
ENTITIES = TaskConfig(corpus="grammar", target="label", type="spans", metrics=["span_f1"])
ODD = TaskConfig(corpus="real", target="label", type="pair_classification", metrics=["accuracy"], test=["dev"])
TASKS = {"entities": ENTITIES, "odd": ODD}
POINTS = [  # strategy, variant, thawed layers, embeddings, score in hundredths, seconds
    ("frozen", "base", 0, False, 60, 2.0),
    ("top_k", "k01", 1, False, 70, 20.0),
    ("top_k", "k03", 3, False, 80, 40.0),
    ("full", "base", 6, True, 80, 90.0),
    ("stack_then_finetune", "base", 6, True, 75, 80.0),
]
BASELINE_RUNS = [  # baseline, encoder, head, strategy, tasks, score in hundredths
    ("cosine", "tiny", "cosine", "frozen_separate", ["odd"], 40),
    ("random_encoder", "tiny_random", "linear", "frozen", ["entities", "odd"], 45),
]
LABELS = {
    "tasks": {"entities": "Entities (synthetic)", "odd": "R&D_50%"},
    "encoders": {"tiny": "Tiny"},
    "heads": {"linear": "linear"},
    "subsets": {"all": "all"},
    "strategies": {"frozen": "Frozen", "top_k": "Top k", "full": "Full", "stack_then_finetune": "Stack"},
    "ensembles": {"all_full": "All full"},
}


def score(points: int, seed: int, task: str) -> float:
    """Return an invented score: the point's own, one hundredth apart between seeds (not for the convex fit)."""
    return (points + (0 if points == 60 else seed) - (5 if task == "odd" else 0)) / 100


def metrics(task: str, value: float | None, flags=(), phases=(), **more) -> dict:
    """Return a metrics.json with scores on every split; `odd` is scored on another task too."""
    entry = {"id": task, **TASKS[task].model_dump(mode="json", exclude_defaults=True)}
    test = TASKS[task].test[0]
    rows = {"train": 1000, "validation": 100, test: 200, f"{test}_unseen": 150}
    rows |= {"third/test": 50} if task == "odd" and phases else {}
    scores = {split: {entry["metrics"][0]: value} for split in rows}
    spec = {"task": entry, "phases": list(phases)}
    return {"spec": spec, "digest": "0" * 16, "scores": scores, "rows": rows, "flags": list(flags), **more}


def cost(seconds: float, thawed: int, torch: str = "2.13.0") -> dict:
    """Return a cost.json."""
    return {
        "seconds": {"load": 1.0, "train": seconds, "evaluate": 1.0, "total": seconds + 2},
        "flops": 1e9 * (1 + thawed),
        "peak_memory_mb": 500.0,
        "parameters": {"trained": 1000 * (1 + thawed), "total": 10000},
        "versions": {"python": "3.11", "torch": torch},
        "hardware": {"device": "cpu", "cpu": "a processor", "threads": 2},
        "date": "2026-01-02T03:04:05+00:00",
    }


def write_run(folder: Path, record: dict, costs: dict) -> None:
    """Write the two records of a run that outputs read."""
    write_json(folder / "metrics.json", record)
    write_json(folder / "cost.json", costs)


def write_runs(results: Path) -> None:
    """Write every result. Flagged: top_k k01 of seed 1 on `odd`; made with another torch: full of seed 2 on `odd`."""
    for task in TASKS:
        for name, value in (("majority", None if task == "odd" else 0.0), ("bag_of_words", 0.5)):
            flags = ["undefined"] if value is None else []
            write_json(results / f"baselines/{task}/all/{name}/metrics.json", metrics(task, value, flags))
        for strategy, variant, thawed, embeddings, points, seconds in POINTS:
            phase = {"components": ["head"], "boundary": None if embeddings else 6 - thawed}
            phase |= {"optimizer": "lbfgs"} if strategy == "frozen" else {}
            for seed in SEEDS:
                folder = results / f"runs/{task}/all/tiny/linear/{strategy}/{variant}/seed{seed}"
                flags = ["one_class"] if (task, variant, seed) == ("odd", "k01", 1) else []
                chosen = {"chosen": {"pairs": "separate"}} if (task, strategy) == ("odd", "frozen") else {}
                record = metrics(task, score(points, seed, task), flags, [phase], **chosen)
                other = (task, strategy, seed) == ("odd", "full", 2)
                write_run(folder, record, cost(seconds, thawed, "2.12.0" if other else "2.13.0"))
    for _, encoder, head, strategy, tasks, points in BASELINE_RUNS:
        phase = {"components": ["head"], "boundary": 6, "optimizer": "lbfgs"}
        for task, seed in ((task, seed) for task in tasks for seed in SEEDS):
            folder = results / f"runs/{task}/all/{encoder}/{head}/{strategy}/base/seed{seed}"
            write_run(folder, metrics(task, points / 100, phases=[phase]), cost(1.0, 0))
    write_json(results / "ensembles/odd/all/all_full/metrics.json", metrics("odd", 0.77))


def write_cards(results: Path) -> None:
    """Write the cards of corpora, encoder and stores.

    All boundaries of a store come from one pass of six seconds, of `odd` read apart one of three. Nine of the ten
    texts of `odd` that joint pairs cut have one label.
    """
    split = {"rows": 1000, "duplicates": 1, "carved_from": None}
    for task, entry in TASKS.items():
        splits = {name: dict(split) for name in ("train", "validation", *entry.test)}
        splits["validation"]["carved_from"] = "train" if task == "odd" else None
        splits[entry.test[0]]["overlap_train"] = {"rows": 50, "share": 0.25}
        card = {"corpus": entry.corpus, "synthetic": task == "entities", "labels": {}, "splits": splits}
        write_json(results / f"data/{entry.corpus}/card.json", card | {"source": {"kind": "files"}, "digest": "d" * 16})
        for encoder, view in (("tiny", "joint"), ("tiny", "separate"), ("tiny_random", "joint")):
            store, cut = results / f"features/{encoder}/{entry.corpus}/{view}", 10 * (task == "odd" and view == "joint")
            for n in (3, 5, 6):
                write_json(store / f"b{n}.json", {"boundary": n, "seconds": 6.0 if view == "joint" else 3.0})
            labels = {"label": {"x": cut - 1, "y": 1}} if cut else {"label": {}}
            tokens = {"examples": 200, "tokens": 1800, "truncated": cut, "truncated_labels": labels}
            write_json(store / "tokens.json", {"splits": {name: tokens for name in splits}})
    card = {"architecture": "BertModel", "layers": 6, "width": 32, "parameters": 10000, "source": "a folder"}
    write_json(results / "encoders/tiny/card.json", card | {"revision": None, "sha256": "a" * 64, "digest": "e" * 16})


START = {"role": "start", "step": "train", "strategy": "frozen", "variant": "base"}


def collect_spec(**changes) -> dict:
    """Return the spec of `collect`; `changes` replace its keys."""
    points = [
        {
            "strategy": strategy,
            "variant": variant,
            "thawed": thawed,
            "embeddings": embeddings,
            **({"needs": dict.fromkeys(("entities", "odd"), [START])} if "stack" in strategy else {}),
            "pairs": "best" if strategy == "frozen" else "joint",
        }
        for strategy, variant, thawed, embeddings, *_ in POINTS
    ]
    baselines = [
        {"baseline": name, "of": "tiny", "tasks": tasks, "encoder": encoder, "head": head, "strategy": strategy}
        | {"variant": "base", "pairs": "separate" if name == "cosine" else "joint"}
        for name, encoder, head, strategy, tasks, _ in BASELINE_RUNS
    ]
    views = {"entities": {"joint": "joint", "separate": "joint"}, "odd": {"joint": "joint", "separate": "separate"}}
    keys = ("corpus", "type", "metrics", "validation", "test")
    spec = {
        "version": 1,
        "experiment": "invented",
        "tasks": {id: {key: getattr(task, key) for key in keys} | {"views": views[id]} for id, task in TASKS.items()},
        "subsets": ["all"],
        "heads": ["linear"],
        "grid": [{"encoder": "tiny", "strategies": points}],
        "seeds": SEEDS,
        "baselines": ["majority", "bag_of_words"],
        "baseline_runs": baselines,
        "ensembles": [{"id": "all_full", "tasks": ["odd"]}],
        "digest": "0" * 16,
        **changes,
    }
    return spec | {"results": results_of(spec)}


def results_of(spec: dict) -> list[dict]:
    """Return the results that are collected, of axes whose product they are."""
    bare = {"encoder": "", "head": "", "variant": "base", "thawed": 0, "embeddings": False}

    def extra(step: str, task: str, name: str) -> dict:
        row = {"task": task, "subset": "all", **bare, "kind": step, "strategy": name}
        return {"step": step, "names": {"task": task, "subset": "all", step: name}, "row": row}

    results = [extra("baseline", *cell) for cell in product(spec["tasks"], spec["baselines"])]
    for entry in spec.get("baseline_runs", []):
        own = bare | {"kind": "baseline", "encoder": entry["of"], "strategy": entry["baseline"]}
        results += _runs_of(entry, entry["tasks"], spec, own)
    for cell in spec["grid"]:
        for point in cell["strategies"]:
            shown = {"kind": "run", "encoder": cell["encoder"]}
            results += _runs_of({**point, "encoder": cell["encoder"], "head": "linear"}, spec["tasks"], spec, shown)
    ensembles = [(task, entry["id"]) for entry in spec.get("ensembles", []) for task in entry["tasks"]]
    return results + [extra("ensemble", *cell) for cell in ensembles]


def _runs_of(point: dict, tasks, spec: dict, own: dict) -> list[dict]:
    results = []
    for task, subset, seed in product(tasks, spec["subsets"], spec["seeds"]):
        row, entry = {**point, "task": task, "subset": subset, "seed": seed}, spec["tasks"][task]
        names = {name: row[name] for name in layout.RUN}
        place = {"weights": point["encoder"], "corpus": entry["corpus"]}
        stores = {
            pairs: layout.folder("features", place | {"view": view})
            for pairs, view in entry["views"].items()
            if point["pairs"] in (pairs, "best")
        }
        needs = [
            {"role": need["role"], "step": need["step"], "names": names | need}
            for need in point.get("needs", {}).get(task, [])
        ]
        pairs = point["pairs"] if entry["type"] in PAIR_TYPES else ""
        columns = {**row, "weights": point["encoder"], "pairs": pairs, **own}
        results.append({"step": "train", "names": names, "row": columns, "stores": stores, "needs": needs})
    return results


def shown(id: str, kind: str, **options) -> dict:
    """Return the spec of a table or figure."""
    order = {"tasks": list(TASKS), "strategies": [list(point[:2]) for point in POINTS]}
    common = {"version": 1, "labels": LABELS, "order": order, "title": "Invented", "notes": {"tiny": "A stand-in."}}
    return {**common, "id": id, "kind": kind, "caption": f"What {id} shows.", "split": "test", **options}


def report_spec() -> dict:
    """Return the spec of the report, with a table and a figure."""
    outputs = [
        {"id": "main", "kind": "strategy_table", "step": "table", "caption": "All scores.", "label": "main"},
        {"id": "layers", "kind": "layer_figure", "step": "figure", "caption": "By layers.", "label": "layers"},
    ]
    catalogue, methods = Catalogue([ROOT / "config"]), ("masked words", ["a corpus", "another"])
    said = {"objective": methods[0], "pretraining": methods[1], "licence": "MIT"}
    encoder = EncoderConfig(folder="x", layers=6, width=32, cased=False, **said)
    return {
        **{key: value for key, value in shown("", "").items() if key not in ("id", "kind", "caption")},
        "experiment": "invented",
        "outputs": outputs,
        "preparatory": 3,
        "tasks": {id: task.model_dump(mode="json") for id, task in TASKS.items()},
        "subsets": {"all": {"rows": None, "draw": 1, "scored": None}, "few": {"rows": 1500, "draw": 2, "scored": 300}},
        "encoders": {"tiny": encoder.model_dump(mode="json")},
        "heads": {"linear": catalogue.get("heads", "linear", "test").model_dump(mode="json", exclude_defaults=True)},
        "strategies": {
            id: catalogue.get("strategies", id, "test").model_dump(mode="json", exclude_defaults=True)
            for id in LABELS["strategies"]
        },
        "store": {"dtype": "bf16", "precision": "fp32", "max_gib": 20.0},
        "compute": {"threads": 2},
    }


def draw_report(results: Path, folder: Path, **changes) -> Path:
    """Draw the report that a changed spec of `collect` leads to, with a small picture for its figure."""
    rows = collection.rows(collect_spec(**changes), results, results / "logs")
    pandas.DataFrame(rows, columns=runs_frame.COLUMNS).to_csv(folder / "runs.csv", index=False)
    frame = runs_frame.read_runs(folder / "runs.csv")
    table = scores.build(OutputData(results, frame), shown("main", "strategy_table"))
    table_formats.write(table, folder / "tables/main")
    picture = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="460" height="240"><path d="M9 9H400V200" fill="none"/></svg>'
    )
    write_text(folder / "figures/layers.svg", picture)
    write_json(folder / "figures/layers.json", {"version": VERSION, "records": [], "points": [], "failed": ""})
    runs = runs_page.content(frame, report_spec(), results, results / "logs", folder)
    write_text(folder / "runs.html", runs_page.page(runs))
    content = report_page.content(frame, report_spec(), results, folder)
    write_text(folder / "paper.tex", report_page.paper(content))
    write_text(folder / "references.bib", report_page.bibliography(content))
    write_text(folder / "report.html", report_page.page(content, "snakemake --"))
    return folder / "report.html"
