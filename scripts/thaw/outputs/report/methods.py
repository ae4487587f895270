"""Settings for the report, and its sentences on subsets, encoders and choices."""

from thaw.schema.encoder import UNKNOWN
from thaw.schema.entry import CatalogueEntry
from thaw.schema.strategy import StrategyConfig
from thaw.words import settings, wording


def strategies(spec: dict) -> list[dict]:
    """Return each strategy in the experiment's order, then those that it starts from, learns from or searched with.

    Each has id, name, about, cite, settings as lines, and whether its runs are shown. Args: spec of the report.
    """
    order, entries = spec["order"]["strategies"], []
    shown = list(dict.fromkeys(id for id, _ in order))
    for id in [*shown, *(other for other in spec["strategies"] if other not in shown)]:
        entry = StrategyConfig.model_validate(spec["strategies"][id])
        lines = settings.of(entry)
        if entry.search and spec.get("search_seeds"):
            lines.append(f"# search_seeds of the experiment: {spec['search_seeds']}")
        if points := [text for name, variant in order if name == id and (text := wording.point(variant))]:
            lines.append(f"# points shown: {', '.join(points)}")
        name, said = wording.label(spec["labels"], "strategies", id), {"about": entry.about, "cite": entry.cite}
        entries.append({"id": id, "name": name, "settings": lines, "shown": id in shown, **said})
    return entries


def entries(stored: dict[str, dict], model: type[CatalogueEntry]) -> list[dict]:
    """Return id, name and settings of entries. Args: as a spec has them; what they are, as HeadConfig."""
    made = {id: model.model_validate(entry) for id, entry in stored.items()}
    return [{"id": id, "name": one.label or id, "settings": settings.of(one)} for id, one in made.items()]


def subsets(spec: dict) -> list[str]:
    """Return a sentence for each subset that is smaller than the dataset, and for each way in which they are divided.

    Draws that are shown as one have one sentence. Args: spec of the report.
    """
    lines, first = [], spec.get("first_draws", {})
    divided: dict[str, list[str]] = {}
    for name, entry in spec["subsets"].items():
        if first.get(name, name) != name:
            continue
        label = wording.label(spec["labels"], "subsets", name)
        drawn = [spec["subsets"][other]["draw"] for other in first if first[other] == name]
        draw = f"draws {wording.listing(map(str, drawn))}" if drawn else f"draw {entry['draw']}"
        parts = [f"{wording.count(entry['rows'])} examples of train ({draw})"] if entry["rows"] else []
        parts += [f"{entry['per_label']} of each label of train ({draw})"] if entry.get("per_label") else []
        parts += [f"{wording.count(entry['scored'])} of validation and of each test split"] if entry["scored"] else []
        lines += [f"Subset {label}: {wording.listing(parts)}."] if parts else []
        divided.setdefault(_own_splits(entry), []).append(label)
    return lines + [f"{wording.listing(labels)}: {text}" for text, labels in divided.items() if text]


def _own_splits(entry: dict) -> str:
    """Return what a subset sets aside to choose by and to test on. Args: its entry with every key."""
    lines = []
    if entry.get("validation"):
        lines.append(
            f"{wording.number(100 * entry['validation'], 0)} % of the examples are set aside (held_out): by them "
            "epochs and settings are chosen, and the dataset's validation split is not read."
        )
    if entry.get("reserved"):
        lines.append(
            f"Up to {wording.count(entry['reserved'])} examples of train, which no draw takes, are one more test "
            "split (reserved)."
        )
    return " ".join(lines)


def encoder(entry: dict, card: dict) -> str:
    """Return the description of an encoder. Args: its entry as plain values; the card of the fetched encoder."""
    case = {True: "cased", False: "uncased"}.get(entry["cased"], "case unknown")
    stated = f"Pretrained by {entry['objective']}, on {wording.listing(entry['pretraining'])}"
    if UNKNOWN in entry["pretraining"] or entry["objective"] == UNKNOWN:
        stated = f"Pretraining objective: {entry['objective']}; data: {wording.listing(entry['pretraining'])}"
    source = f"Source: {card['source']}" + (f", revision {card['revision']}" if card.get("revision") else "")
    return (
        f"{card['architecture']} with {card['layers']} layers of width {card['width']} "
        f"({wording.short(card['parameters'])} parameters), {case}. {stated}. {source}."
    )


def pairs(summary, spec: dict) -> list[tuple[str, str]]:
    """Return (strategies, how they encode sentence pairs) from a summary on test."""
    read = summary[summary["fitted"] & summary["pairs"].isin(["joint", "separate"])]
    names: dict[str, list[str]] = {}
    for strategy, rows in read.groupby("strategy", sort=False):
        views: dict = {}
        for row in rows.drop_duplicates(["task", "pairs"]).itertuples():
            views.setdefault(row.pairs, []).append(wording.task_name(spec["labels"], row.task))
        text = "; ".join(f"{wording.PAIR_LABELS[view]} for {wording.listing(tasks)}" for view, tasks in views.items())
        if spec["strategies"].get(strategy, {}).get("pairs") == "best":
            text += ", selected on validation"
        elif len(views) == 1:
            text = wording.PAIR_LABELS[next(iter(views))]
        names.setdefault(text, []).append(wording.label(spec["labels"], "strategies", strategy))
    return [(wording.listing(strategies), text) for text, strategies in names.items()]


def seeds_of(summary) -> dict[str, int]:
    """Return the fewest and the most seeds, or draws that count as such, of a mean of runs.

    Args: summary of runs on test, their draws together.
    """
    seeds = (summary["seeds"] - summary["undefined"])[summary["fitted"]]
    seeds = seeds[seeds > 0]
    fewest, most = (int(seeds.min()), int(seeds.max())) if len(seeds) else (0, 0)
    return {"fewest": fewest, "most": most}


def caution(summary, unit: str = "seed") -> str:
    """Return the sentence on what intervals say with this number of seeds. Args: see `seeds_of`; `output_data.unit`."""
    seeds = seeds_of(summary)
    text = f"Means are over {wording.seed_range(seeds['fewest'], seeds['most'], unit)}."
    return " ".join([text, *wording.few_seeds(seeds["fewest"])])


def choices(tasks: list[dict]) -> str:
    """Return by what choices were made and when test was scored. Args: tasks as `page_tables.tasks` returns them."""
    otherwise = [task["label"] for task in tasks if task["protocol"] != "clean"]
    text = "All choices were made on validation; test was scored at the end of each run"
    if not otherwise:
        return f"{text}."
    if len(otherwise) < len(tasks):
        text += f", except on {wording.listing(otherwise)}: there choices were made on the split that is reported."
        return text
    return "Choices were made on the split that is reported, as the tasks' protocol says."
