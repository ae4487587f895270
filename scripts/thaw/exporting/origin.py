"""What an exported model was made from and how it was trained, in the words of its model card."""

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.phrases import listing, plural, rate, written
from thaw.data.corpus import scored_part, subset_rows
from thaw.declarations.chosen import CHOSEN
from thaw.declarations.needs import NEEDS, stated_needs
from thaw.declarations.splits import HELD_OUT
from thaw.exporting.finished_run import FinishedRun, refit_text
from thaw.exporting.results_by_digest import result_with
from thaw.schema.head import HeadConfig
from thaw.schema.keys import stated
from thaw.schema.phases import PhaseConfig, of_phase
from thaw.schema.strategy_parts import written_key
from thaw.schema.student import RANDOM

ROLES = {"after": "started from", "towards": "teacher"}  # rows by how a need is said in a list of runs
OF_THE_RUN = {"trial", "epochs", "stopped", "no_answer_threshold"}  # what `chosen` has besides searched settings
NOTHING = "nothing; settings and length of the training were given"


def origin(source: FinishedRun, encoder: dict) -> dict[str, str]:
    """Return the rows of a model card on data, encoder and training. Args: the run; the card of its encoder."""
    searched, entries, chosen = _searched(source), source.spec["phases"], source.metrics["chosen"]
    chosen_by = f"by {source.folds}-fold cross-validation" if source.folds else "on validation"
    phases = [PhaseConfig.of_spec(entry | of_phase(searched, n)) for n, entry in enumerate(entries, 1)]
    return {
        "dataset": _dataset(source.corpus.card),
        "training data": _rows(source),
        "encoder": _encoder(encoder),
        "pretrained as": encoder["objective"],
        **({"further pretraining": _further(encoder["further"])} if "further" in encoder else {}),
        **({"layers": _kept(source)} if source.kept else {}),
        **_earlier(source),
        **{f"phase {n}": _phase(*one, chosen) for n, one in enumerate(zip(phases, entries, strict=True), 1)},
        f"chosen {chosen_by}": _chosen(source, phases, searched) or NOTHING,
        **({"last fit": refit_text(source.refit.rows, source.folds, source.refit.layers)} if source.refit else {}),
        "run": str(source.run.relative_to(source.results)),
        "spec digest": source.metrics["digest"],
    }


def _dataset(card: dict) -> str:
    """Return a dataset's name and where all of its splits are from."""
    of = card["source"]
    files = f"files {', '.join(of.get('files', []))}"
    origins = {"files": files, "synthetic": "synthetic, written by Thaw"}
    return f"{card['corpus']} ({origins.get(of['kind']) or of['id'] + ', revision ' + str(of['revision'])})"


def _rows(source: FinishedRun) -> str:
    """Return how many rows of train its subset drew: no reserved ones, and those that it was chosen by among them."""
    subset = source.spec["subset"]
    rows, share = len(subset_rows(source.corpus, source.task, subset)), subset.get("validation")
    every = subset | {"scored": None}  # of the rows held out for validation, and not of those that are scored alone
    rows += len(scored_part(source.corpus, HELD_OUT, source.task, every)) if share else 0
    return f"{plural(rows, 'row')} of train" + (f", {share:.0%} of them to choose by" if share else "")


def _encoder(card: dict) -> str:
    """Return an encoder's name and where it is from; the path of a local folder is nobody else's business."""
    kind, _, name = card["source"].partition(" ")
    place = "a local folder" if kind == "folder" else f"{kind} {name}, revision {card['revision']}"
    return f"{card['encoder']} ({place})"


def _further(said: dict) -> str:
    """Return what further pretraining the encoder had."""
    before, *_, after = said["held_out"]["loss"]
    what = f"masked-language-model training on {said['rows']} rows of the training text of {said['corpus']}"
    return f"{what}; loss on rows held out {before:.2f} before, {after:.2f} after, in nats a token"


def _kept(source: FinishedRun) -> str:
    """Return which layers a student has, and whose weights they started from."""
    kept, start = source.kept, source.spec["student"].get("start", {})
    text = f"{len(kept)} of the encoder's {source.spec['layers']}: {listing(map(str, kept))}"
    if not start:
        return text
    sources = [start.get(str(layer), layer) for layer in kept]
    named = ("a random one" if one == RANDOM else str(one) for one in sources)
    return f"{text}, which started with the weights of {listing(named)}"


def _earlier(source: FinishedRun) -> dict[str, str]:
    """Return the runs that a run starts from and learns from, by what they are to it; outputs name their teacher."""
    runs = {}
    for role, digest in stated_needs(source.spec).items():
        need = NEEDS[role]
        if need.word not in ROLES:
            continue
        try:
            if need.step == "teach":
                digest = read_json(result_with(source.results, need.step, digest, "teacher"))["spec"]["run"]
            run = str(result_with(source.results, "train", digest, "earlier run").parent.relative_to(source.results))
        except UserError:  # deleted since
            run = "no longer in these results"
        runs[ROLES[need.word]] = f"{run} (spec digest {digest})"
    return runs


def _searched(source: FinishedRun) -> dict:
    """Return the settings that a search chose for a run, nothing without a search."""
    if not (digest := NEEDS["settings"].stated(source.spec)):
        return {}
    try:
        return read_json(result_with(source.results, NEEDS["settings"].step, digest, "search"))["settings"]
    except UserError:  # deleted since; the run's record has them too, but for a number of epochs
        return {key: value for key, value in source.metrics["chosen"].items() if key not in OF_THE_RUN}


def _phase(phase: PhaseConfig, entry: dict, chosen: dict) -> str:
    """Return one phase of a strategy in words. Args: its settings; its entry in the spec; what validation chose."""
    trained = ", ".join(entry["components"])
    if phase.optimizer == "lbfgs":
        return f"trained {trained} to convergence (lbfgs, L2 penalty {rate(chosen['l2'])})"
    rates = f"rate {phase.rate:g}" + (f", head {phase.head_rate:g}" if phase.head_rate else "")
    length = plural(phase.epochs, "epoch") if phase.updates is None else plural(phase.updates, "update")
    most = "at most " if _may_stop(phase) else ""
    text = f"trained {trained} for {most}{length} in batches of {phase.batch_size} ({phase.optimizer}, {rates})"
    losses = {"distil": phase.distil, "replace": phase.replace}
    return "; ".join([text, *(f"{key}: {written(stated(loss, every=True))}" for key, loss in losses.items() if loss)])


def _may_stop(phase: PhaseConfig) -> bool:
    return phase.patience is not None or phase.stop is not None


def _chosen(source: FinishedRun, phases: list[PhaseConfig], searched: dict) -> str:
    """Return what validation chose: settings, of which there were several, and when training ended."""
    chosen, spec = source.metrics["chosen"], source.spec
    said = [f"{written_key(key)} {_value(value)}" for key, value in searched.items()]
    first = phases[0]
    offered = {
        "l2": first.optimizer == "lbfgs" and len(first.l2) > 1,
        "layer": HeadConfig.model_validate(spec["head"]).layers.searched,
        "features": bool(first.select and len(first.select.fractions) > 1),
        "pairs": isinstance(spec["features"], list),
        "no_answer_threshold": True,
    }
    said += [f"{CHOSEN[key].name} {_value(chosen[key])}" for key, many in offered.items() if many and key in chosen]
    for number, (phase, last) in enumerate(zip(phases, chosen.get("epochs", []), strict=False), 1):
        unit = "epoch" if phase.updates is None else "evaluation"
        of = f" of phase {number}" if len(phases) > 1 else ""
        if phase.pick == "best":
            said.append(f"{unit} {last}{of}")
        elif _may_stop(phase):
            said.append(f"the end after {unit} {last}{of}")
    return ", ".join(said)


def _value(value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
