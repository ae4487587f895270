"""Whether what a run puts together fits: task and corpus, head, strategy, and the run that it starts from. No torch."""

from pydantic import ValidationError

from thaw.adaptation.selectors import boundary
from thaw.core import plugins
from thaw.core.errors import UserError, suggestion
from thaw.data.edges import scored_labels
from thaw.declarations.heads import HEAD_KINDS, LINEAR_KINDS
from thaw.declarations.objective_kinds import objectives_of
from thaw.declarations.splits import PARTS_OF_TRAIN
from thaw.declarations.task_types import (
    EXTRACTION_TYPES,
    PROBE_ONLY_TYPES,
    TARGET_OF_TYPE,
    TEXTS_OF_TYPE,
    TYPE_LABELS,
    no_f1,
)
from thaw.planning.run_plan import RunCell, RunPlan
from thaw.schema.catalogue import Catalogue
from thaw.schema.corpora import CorpusConfig, TaskConfig
from thaw.schema.encoder import EncoderConfig
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.head import LEARNED_POOLINGS, HeadConfig, as_list
from thaw.schema.layers import OneLayerConfig
from thaw.schema.strategy import StartConfig, StrategyConfig


def check_task(catalogue: Catalogue, name: str, task: TaskConfig, corpus: CorpusConfig) -> None:
    """Find out whether a task's target and type fit its corpus."""
    place = catalogue.place("tasks", name, "target")
    if task.target not in corpus.targets:
        raise UserError(
            f"{place}: corpus {task.corpus} has no target {task.target!r}{suggestion(task.target, corpus.targets)}"
        )
    for metric in filter(plugins.is_plugin, task.metrics):
        catalogue.check_part("metric", metric, task.type, ("tasks", name, "metrics"))
    kind, expected = corpus.targets[task.target], TARGET_OF_TYPE[task.type]
    if kind != expected:
        raise UserError(f"{place}: type {task.type} expects a target of kind {expected}; {task.target} is a {kind}")
    if task.unscored_labels and (stated := corpus.labels.get(task.target)):
        scored_labels(stated, task.unscored_labels, catalogue.place("tasks", name, "unscored_labels"))
    texts = 0 if corpus.words else len(corpus.texts)
    wanted = TEXTS_OF_TYPE[task.type]
    if texts != wanted:
        words = {0: "a words column", 1: "one text", 2: "two texts"}
        place = catalogue.place("tasks", name, "type")
        raise UserError(f"{place}: {task.type} takes {words[wanted]}; corpus {task.corpus} has {words[texts]}")


def check_heads(catalogue: Catalogue, experiment: ExperimentConfig) -> None:
    """Find out whether the heads that an experiment names serve its tasks, and whether each task has one."""
    for task in experiment.tasks:
        task_type = catalogue.get("tasks", task, "tasks").type
        if task_type in PROBE_ONLY_TYPES:
            continue
        heads = {name: member for name in experiment.heads if (member := catalogue.head(name, task_type))}
        if not heads:
            named = ", ".join(experiment.heads)
            served = f"{named} does not serve" if len(experiment.heads) == 1 else f"none of {named} serves"
            raise UserError(
                f"{experiment.place('heads')}: task {task} is of type {task_type}, which {served}; "
                "add a head for it, or leave the task out"
            )
        for name, (chosen, head) in heads.items():
            known = HEAD_KINDS.get(head.kind)
            if known and task_type not in known.task_types:
                place = experiment.place("heads", item=name)
                raise UserError(f"{place}: {chosen} is for {known.serves}, and task {task} {_is_of(task_type)}")


def _is_of(task_type: str) -> str:
    """Return what a task is of, and for span extraction the kind of head that it takes."""
    right = "; take a head of kind start_end" if task_type in EXTRACTION_TYPES else ""
    return f"is of type {task_type}{right}"


def fits_heads(catalogue: Catalogue, strategy: StrategyConfig, head: str, place: str) -> bool:
    """Return whether all seeds of a strategy are one job: a head trains alone, on vectors that stay the same.

    Args: the strategy; id of a head, or of a set of heads, of which all must be so: it is the same for all tasks; place
    of the strategy. Raises UserError for what one of them cannot read.
    """
    return strategy.fits_to_convergence or (
        strategy.head_alone
        and all(read_by(strategy, entry, head, place).constant_vectors for entry in catalogue.heads(head))
    )


def _check_objectives(strategy: StrategyConfig, task: str, task_type: str, place: str) -> None:
    """Find out whether a task has what the phases minimise."""
    for name, kind in ((name, kind) for phase in strategy.phases for name, kind in objectives_of(phase).items()):
        if wrong := kind.on_task(task_type):
            raise UserError(
                f"{place}: {name}: {wrong}, and {task} is {TYPE_LABELS[task_type]}; say only: for it, or take a "
                f"strategy without {name}"
            )


def check_head(catalogue: Catalogue, name: str, task: str, strategy: StrategyConfig, views: tuple, place: str) -> None:
    """Find out whether a head serves a task, and whether a strategy can train it in the views that it reads.

    Args: ids of head and task; the strategy; views; place, file and line of the strategy.
    """
    task_type = catalogue.get("tasks", task, "tasks").type
    _check_objectives(strategy, task, task_type, place)
    chosen = catalogue.head(name, task_type)
    if chosen is None:  # a set of heads with none for this type of task, on which it is not run
        return
    name, head = chosen
    if isinstance(head.layers, OneLayerConfig) and head.layers.searched:
        where = catalogue.place("heads", name, "layers")
        raise UserError(f"{where}: layer: {head.layers.layer} is for reads: of a strategy with lbfgs; name one layer")
    head = read_by(strategy, head, name, place)
    known = HEAD_KINDS.get(head.kind)
    if known is None:
        catalogue.check_part("head", head.kind, task_type, ("heads", name, "kind"))
    elif task_type not in known.task_types:
        where = catalogue.place("heads", name, "kind")
        raise UserError(f"{where}: {head.kind} is for {known.serves}, and task {task} {_is_of(task_type)}")
    separate_views = [catalogue.get("views", view, place).pairs == "separate" for view in views]
    if known and known.compares_texts and not all(separate_views):
        raise UserError(
            f"{place}: head {name} compares two texts that are encoded separately (bi-encoder); say pairs: separate"
        )
    if not strategy.fits_to_convergence:
        return
    if plugins.is_plugin(head.kind):
        raise UserError(f"{place}: lbfgs fits Thaw's linear head, and {name} is your own; use frozen_sgd")
    if head.kind not in LINEAR_KINDS:
        raise UserError(f"{place}: lbfgs fits a linear head, and {name} is {head.kind}; use frozen_sgd")
    if head.layers.learned:
        what = f"the {head.layers.combine} of its layers is learned"
        raise UserError(f"{place}: lbfgs cannot fit head {name} ({what}); use frozen_sgd")
    for pooling in (head.separate_pooling if separate else head.pooling for separate in separate_views):
        for learned in LEARNED_POOLINGS & set(as_list(pooling)):
            raise UserError(f"{place}: lbfgs cannot fit head {name} ({learned} pooling is learned too); use frozen_sgd")


def read_by(strategy: StrategyConfig, head: HeadConfig, name: str, place: str) -> HeadConfig:
    """Return a head's entry as it is under a strategy. Args: id of the head; place of the strategy."""
    try:
        return strategy.head(head)
    except ValueError as error:
        mistake = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        mistake = mistake.removeprefix("Value error, ")
        raise UserError(f"{place}: reads: does not go with head {name}: {mistake}") from error


def read_boundaries(
    name: str, entry: HeadConfig, encoder: EncoderConfig, trained: list[list[str]], places: tuple[str, str]
) -> list[int]:
    """Return the boundaries that a head reads of an encoder.

    Args: id and entry of the head; the encoder; what each phase trains; where it is said what the head reads, and place
    of the strategy. Raises UserError for layers that the encoder lacks, for a ladder that its width does not allow, and
    for layers that train in any phase above all that is read.
    """
    said, place = places
    try:
        read = entry.layers.reads(encoder.layers)
        entry.layers.check_width(encoder.width)
    except ValueError as error:
        raise UserError(f"{said}: {error}") from error
    below = [boundary([c], encoder.layers) for chosen in trained for c in chosen if c.startswith("layer")]
    highest = max((n + 1 for n in below if n is not None), default=0)
    if highest > read[-1]:
        raise UserError(f"{place}: layer {highest} would train, and head {name} reads none above {read[-1]}")
    return read


def encoder_serves(catalogue: Catalogue, encoder: str, task: str, trained: list[list[str]]) -> bool:
    """Return whether an encoder has what a run trains and reads: fixed vectors of whole texts have a head alone above.

    Other runs on such an encoder are left out, as the papers' tables leave their cells empty.
    """
    if catalogue.get("encoders", encoder, "encoders").kind != "sentence":
        return True
    words = TEXTS_OF_TYPE[catalogue.get("tasks", task, "tasks").type] == 0
    return not words and all(chosen == ["head"] for chosen in trained)


def check_start(
    catalogue: Catalogue,
    strategy: StrategyConfig,
    start: StartConfig,
    trained: list[list[str]],
    same_views: bool,
    place: str,
    cell: RunCell,
    run: RunPlan,
) -> None:
    """Find out whether a run leaves what another wants to start from, and has read no test row of the other.

    Args: the other strategy, and the run that it names; what the run's phases train; whether both read the same views;
    place and cell of the other; the run.
    """
    earlier = catalogue.get("strategies", start.strategy, place)
    thaws = any(component != "head" for chosen in trained for component in chosen)
    if strategy.student and any(phase.insert for phase in earlier.phases):
        raise UserError(f"{place}: after: {start.strategy} inserts modules; a student starts from layers alone")
    if thaws and not (earlier.keep or strategy.student):
        raise UserError(f"{place}: after: {start.strategy} must say keep: true, so that its weights are there")
    if not same_views:
        raise UserError(f"{place}: after: {start.strategy} reads pairs otherwise; give both the same pairs:")
    if not start.task and earlier.reads != strategy.reads:
        raise UserError(f"{place}: after: {start.strategy} has a head that reads otherwise; give both the same reads:")
    if not earlier.phases[-1].fits_to_convergence and earlier.phases[-1].pick != start.epoch:
        kept = f"{start.strategy} keeps its {earlier.phases[-1].pick} epoch"
        raise UserError(f"{place}: after: checkpoint: {start.epoch} is asked for, but {kept}; change one of them")
    corpora = [catalogue.get("tasks", one.task, place).corpus for one in (cell, run)]
    reserved, known = (catalogue.get("subsets", one.subset, place).reserved for one in (cell, run))
    if reserved and reserved != known and corpora[0] == corpora[1]:
        raise UserError(
            f"{place}: after: {run.task} on the subset {run.subset} trains on rows of {corpora[0]} that "
            f"{cell.subset} reserves for testing; name a subset with reserved: {reserved}"
        )


def check_splits(catalogue: Catalogue, experiment: ExperimentConfig, name: str, source: str) -> None:
    """Raise UserError for a split that a task reads and its corpus lacks.

    Args: a task of the experiment; which of its sources the corpus comes from.
    """
    task = catalogue.get("tasks", name, "tasks")
    corpus = catalogue.get("corpora", task.corpus, "corpora")
    if source == "synthetic":  # with all splits
        return
    joined = {part for parts in corpus.join.values() for part in parts}
    there = {*set(getattr(corpus, source).splits) - joined, *corpus.join, *corpus.carve}
    for subset in experiment.subsets:
        read = catalogue.get("subsets", subset, "subsets").of_runs(task)
        for key, split in (("validation", read.validation), *(("test", split) for split in read.test)):
            if split not in there and split not in PARTS_OF_TRAIN:
                has = f"corpus {task.corpus} has no split '{split}'; it has {', '.join(sorted(there))}"
                raise UserError(f"{catalogue.place('tasks', name, key)}: {has}")


def check_labels(catalogue: Catalogue, experiment: ExperimentConfig, name: str) -> None:
    """Raise UserError for metric `f1` of a task with more than two labels, and for rows by label of a task without."""
    task = catalogue.get("tasks", name, "tasks")
    for subset in experiment.subsets:
        if catalogue.get("subsets", subset, "subsets").per_label and TARGET_OF_TYPE.get(task.type) != "label":
            place = catalogue.place("subsets", subset, "per_label")
            raise UserError(f"{place}: rows are drawn by label, and {name} is {task.type}; name a subset with rows")
    labels = catalogue.get("corpora", task.corpus, "corpora").labels.get(task.target, [])
    if "f1" in task.metrics and len(labels) > 2:
        raise UserError(f"{catalogue.place('tasks', name, 'metrics')}: {no_f1(task.target, len(labels))}")
