"""Sentences of the report, made from settings and numbers; they claim no more than the numbers carry."""

from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.statistics.verdicts import FAILS, HOLDS, NOT_TESTABLE, UNDECIDED, overall


def strategy(entry: dict, names: dict, further: dict) -> str:
    """Return what a strategy does, from its phases: a Strategy as plain values.

    Args: names {id: label} of strategies; further {id: FurtherPretraining as plain values}.
    """
    phases = [_phase(phase) for phase in entry["phases"]]
    text = phases[0] if len(phases) == 1 else " ".join(f"Phase {i}: {phase}" for i, phase in enumerate(phases, 1))
    after = entry.get("after")
    if origin := entry.get("origin"):
        return f"Starts from the encoder after {_further(further[origin])}. {text}"
    if not after:
        return text
    after = {"strategy": after, "epoch": "last"} if isinstance(after, str) else after
    start = names.get(after["strategy"], after["strategy"])
    return f"Starts from the run of “{start}” ({after.get('epoch', 'last')} epoch). {text}"


def _further(entry: dict) -> str:
    """Return what further pretraining did."""
    phase, share = entry["phase"], f"{100 * entry['mask']:.0f} %"
    trained = (
        f"{wording.plural(phase['epochs'], 'epoch')} of masked-language-model training on all training text of the"
    )
    how = f"{_rates(phase)}, {_schedule(phase)}, batches of {phase['batch_size']}"
    return f"{trained} corpus, without labels ({share} of the tokens chosen; {how})"


def _phase(phase: dict) -> str:
    """Return what a phase trains and how."""
    trained = wording.listing(_selected(word) for word in phase["train"])
    if phase["optimizer"] == "lbfgs":
        strengths = ", ".join(wording.rate(value) for value in phase["l2"])
        how = (
            f"to convergence by L-BFGS on standardised features, its L2 strength (of {strengths}) chosen on validation"
        )
        return f"Fits {trained} {how}."
    parts = [
        f"Trains {trained}{_thawing(phase)} for {wording.plural(phase['epochs'], 'epoch')} with {_rates(phase)}",
        _schedule(phase),
        f"batches of {phase['batch_size']}",
        f"weight decay {phase['weight_decay']:g}",
        f"L2 penalty {phase['l2_to_start']:g} on the encoder's way from its start" if phase["l2_to_start"] else "",
        f"gradients{' of each tensor' * phase['clip_each']} clipped at {phase['clip']:g}"
        if phase["clip"]
        else "no clipping",
        {"bf16": "bf16 autocast (bf16)", "tf32": "TF32 products on a GPU (tf32)"}.get(phase["precision"], ""),
        *_ends(phase),
        f"weights of the {phase['pick']} epoch",
        "dropout left on in the frozen layers, so that nothing is cached" if phase["frozen_dropout"] else "",
    ]
    return ", ".join(part for part in parts if part) + "."


def _thawing(phase: dict) -> str:
    """Return in which order a phase thaws what it trains, and what begins anew; nothing where all trains at once."""
    found = ""
    if phase["reinit_top"]:
        found = f", the top {wording.plural(phase['reinit_top'], 'layer')} begun anew,"
    if phase["one_by_one"]:
        found = " one after the other, the head first, then from below, and at last together, each"
    if gradual := phase["unfreeze"]:
        more, epochs = (
            wording.plural(gradual["layers"], "more layer"),
            wording.plural(gradual["epochs"], "epoch"),
        )
        found = f", the head alone first, then with {more} from the top after every {epochs}, and at last all"
    return found


def _rates(phase: dict) -> str:
    """Return a phase's optimizer and its rates by layer."""
    name = {"adamw": "AdamW", "bert_adam": "Adam without bias correction"}[phase["optimizer"]]
    found = f"{name}, rate {wording.rate(phase['rate'])}"
    if phase["layer_rates"]:
        found = (
            f"{name}, rates {', '.join(wording.rate(rate) for rate in phase['layer_rates'])} from the top layer down"
        )
    if phase["layer_decay"] < 1:
        found += f" in the top layer and {phase['layer_decay']:.3g} times that of the layer above in each below"
    return found + (f", head {wording.rate(phase['head_rate'])}" if phase["head_rate"] else "")


def _schedule(phase: dict) -> str:
    """Return how a phase's rates rise and fall."""
    again = ", begun anew with each thawing" if phase["unfreeze"] and phase["unfreeze"]["restart"] else ""
    if phase["schedule"] == "slanted_triangular":
        return f"slanted triangular schedule (cut {phase['cut_frac']:g}, ratio {phase['ratio']:g}){again}"
    of = " of one epoch" if phase["warmup_of"] == "epoch" else ""
    return f"{phase['schedule']} schedule with {100 * phase['warmup']:.0f} % warm-up{of}{again}"


def _ends(phase: dict) -> list[str]:
    """Return the rules by which a phase ends before its last epoch."""
    stop = phase["stop"] or {"gap": None, "score": None}
    return [
        f"stopped after {wording.plural(phase['patience'], 'epoch')} without a better validation score"
        if phase["patience"]
        else "",
        f"stopped when training and validation score differ by more than {stop['gap']:g}" if stop["gap"] else "",
        f"stopped when the validation score reaches {stop['score']:g}" if stop["score"] is not None else "",
    ]


def _selected(word) -> str:
    """Return a selector in words: head, all, embeddings, {top: k}."""
    if isinstance(word, dict):
        name, argument = next(iter(word.items()))
        return f"the last {argument} layers" if name == "top" else f"{name} {argument}"
    return {"head": "the head", "all": "everything, embeddings included", "embeddings": "the embeddings"}.get(
        word, word
    )


def subsets(spec: dict) -> list[str]:
    """Return a sentence for each subset of an experiment that is not all rows. Args: spec of the report."""
    lines = []
    for name, entry in spec["subsets"].items():
        told = [f"{wording.count(entry['rows'])} rows of train (draw {entry['draw']})"] if entry["rows"] else []
        told += [f"{wording.count(entry['scored'])} of validation and of each test split"] if entry["scored"] else []
        lines += [f"Subset {spec['labels']['subsets'].get(name, name)}: {wording.listing(told)}."] if told else []
    return lines


def encoder(entry: dict, card: dict) -> str:
    """Return what an encoder is: its entry as plain values and the card of the fetched one."""
    case = "cased" if entry["cased"] else "uncased"
    source = f"Source: {card['source']}" + (f", revision {card['revision']}" if card.get("revision") else "")
    return (
        f"{card['architecture']} with {card['layers']} layers of width {card['width']} "
        f"({wording.short(card['parameters'])} parameters), {case}. Pretrained by {entry['objective']}, "
        f"on {wording.listing(entry['pretraining'])}. {source}."
    )


def findings(found, labels: dict) -> list[tuple[str, str]]:
    """Return (task, sentences) per task and group of runs, from a summary on test.

    The sentences name the best strategy, what lies within its deviation, the cheapest within a point, the baselines.
    """
    groups, lines = aggregate.group_names(found, labels), []
    for column in aggregate.columns(found, labels):
        here = found[(found["task"] == column.task) & (found["split"] == column.split)]
        here = here[here["mean"].notna()]
        for group, name in groups.items():
            mine = aggregate.runs_of(here, group)
            if len(mine):
                beside = aggregate.baselines_of(here, group), here[here["kind"].isin(aggregate.BESIDE)]
                lines.append(_finding(mine, beside, column, name, labels))
    return lines


def _finding(mine, beside: tuple, column, group: str, labels: dict) -> tuple[str, str]:
    """Return the task's name and the sentences of one column within one group; beside: baselines, external rows."""
    best = mine.loc[mine["mean"].idxmax()]
    marks = [column.metric, wording.SYNTHETIC if column.synthetic else "", group]
    spread = f" ± {wording.number(best['sd'])}" if best["sd"] == best["sd"] and not best["shared"] else ""
    others = mine[mine.index != best.name]
    text = f"({', '.join(mark for mark in marks if mark)}): {aggregate.row_name(best, labels)} "
    text += f"{'has the highest mean,' if len(others) else 'alone was run:'} {wording.number(best['mean'])}{spread}."
    if spread and len(others):
        near = others[others["mean"] >= best["mean"] - best["sd"]]
        names = wording.listing(aggregate.row_name(row, labels) for row in near.itertuples())
        verb = "lies" if len(near) == 1 else "lie"
        text += f" {names} {verb} within one standard deviation of it." if len(near) else ""
    cheap = others[(others["mean"] >= best["mean"] - 1) & (others["seconds"] < best["seconds"])]
    if len(cheap):
        least = cheap.loc[cheap["seconds"].idxmin()]
        costs = f"{wording.seconds(least['seconds'])} against {wording.seconds(best['seconds'])} of training"
        text += f" The cheapest within one point is {aggregate.row_name(least, labels)}, with {costs}."
    for what, rows in zip(("Baselines", "From elsewhere"), beside, strict=True):
        scores = [f"{aggregate.row_name(row, labels)} {wording.number(row.mean)}" for row in rows.itertuples()]
        text += f" {what}: {wording.listing(scores)}." if scores else ""
    if (mine["pairs"] == "joint").any() and not (mine["pairs"] == "separate").any():
        text += " No run here reads the two texts apart, and on similarity that decides more than the strategy."
    return column.label, text


def claims(lines) -> str:
    """Return how many claims hold, fail or stay open, and which do hold or fail. Args: a findings table's lines."""
    tests: dict[tuple, list[str]] = {}
    for line in lines.itertuples():
        found = tests.setdefault((line.claim, line.encoder), [])
        found += [line.answer] if line.answer != NOT_TESTABLE else []
    answers = {key: overall(found) for key, found in sorted(tests.items())}
    told = []
    for answer in (HOLDS, FAILS, UNDECIDED, NOT_TESTABLE):
        named = [claim.rstrip(".") for (claim, _), found in answers.items() if found == answer]
        which = f" (“{'”, “'.join(dict.fromkeys(named))}”)" if named and answer in (HOLDS, FAILS) else ""
        told += [f" {answer.capitalize()}: {len(named)}{which}."] if named or answer in (HOLDS, FAILS) else []
    return f"What papers claim about these strategies, each claim tested over seeds.{''.join(told)}"


def pairs(found, spec: dict) -> list[tuple[str, str]]:
    """Return (strategies, how they read the tasks on pairs) from a summary on test."""
    names, read = {}, found[found["fitted"] & found["pairs"].isin(["joint", "separate"])]
    for strategy, rows in read.groupby("strategy", sort=False):
        views = {}
        for row in rows.drop_duplicates(["task", "pairs"]).itertuples():
            views.setdefault(row.pairs, []).append(wording.task_name(spec["labels"]["tasks"], row.task))
        text = "; ".join(f"{view} for {wording.listing(tasks)}" for view, tasks in views.items())
        best = spec["strategies"].get(strategy, {}).get("pairs") == "best"
        text = f"{text}, as validation chose" if best else next(iter(views)) if len(views) == 1 else text
        names.setdefault(text, []).append(spec["labels"]["strategies"].get(strategy, strategy))
    return [(wording.listing(strategies), text) for text, strategies in names.items()]


def caution(found) -> str:
    """Return the sentence on what the number of seeds allows one to read from differences."""
    seeds = int(found.loc[found["fitted"], "seeds"].max())
    if seeds == 1:
        return "Each run has one seed: differences between strategies may be within the noise of a single run."
    return (
        f"Means are over {wording.plural(seeds, 'seed')}; with so few, a difference of the size of a standard "
        "deviation is no evidence that one strategy is better than another."
        if seeds < 5
        else f"Means are over {seeds} seeds; differences are tested in tables of comparisons and of findings alone."
    )
