"""The first draft of a catalogue entry for a user's file or a data set of the Hub; comments mark what was guessed."""

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.core.home import HOME
from thaw.core.phrases import listing, plural, yaml_value
from thaw.data.checks import clean, label_names
from thaw.data.column_evidence import stated
from thaw.data.column_roles import Roles, Wishes, find_tasks
from thaw.data.file_profile import SPLITS, FileProfile, profile_file, profile_hub, without_labels
from thaw.data.sources import load
from thaw.schema.catalogue import Catalogue, shipped
from thaw.schema.corpora import CorpusConfig
from thaw.schema.entry import free_id, id_of

FEWEST_ROWS = 20
SHOWN_LABELS = 6
SHARES = {"validation": 0.1, "test": 0.2}  # of train, for a split that is not there
CARVED = {
    ("validation", "test"): "one file, of which {validation:.0%} become validation and {test:.0%} test; give files of "
    "your own, as train.csv test.csv".format(**SHARES),
    ("validation",): "there is no validation split, so it is held out from train",
    ("test",): "there is no test split with labels, so it is held out from train",
}
LONG_TEXT = 90  # words on average, above which the shorter views cut much off
TYPES = {"label": "classification", "label_set": "multi_label_classification", "score": "regression", "tags": "tagging"}
TYPES |= {"answers": "span_extraction"}
RARE = 0.02  # share of the rows below which a label is named as rare
UNEVEN = 0.7  # share of one label from which on accuracy says little
MANY_GROUPS = 20  # titles from which on whole articles are held out
METRICS = {
    "span_extraction": ["answer_f1", "exact_match"],
    "multi_label_classification": ["f1_micro", "f1_macro", "mean_average_precision"],
    "regression": ["pearson", "spearman", "r2"],
    "tagging": ["accuracy"],
    "spans": ["span_f1", "accuracy"],
}


@dataclass
class Draft:
    """A corpus and its tasks, each as the lines of a block in tasks.yaml, and what was seen of the data.

    A single task has the id of the corpus.
    """

    name: str
    corpus: str
    tasks: str
    types: dict[str, str]  # task: what is predicted
    profile: FileProfile
    columns: dict[str, str]  # what was taken as the text and as the target, in words
    guesses: dict[str, str]
    rows: int

    @property
    def blocks(self) -> dict[str, str]:
        return {"corpora": self.corpus, "tasks": self.tasks}


def draft_of_file(
    path: Path,
    taken: set[str],
    wishes: Wishes | None = None,
    data_dir: Path | None = None,
    further: Sequence[Path] = (),
) -> Draft:
    """Return a corpus and its tasks for the user's file, or for several that are a split each.

    Args: the file; the ids of corpora and tasks that exist; what the user decides; the experiment's data_dir, by
    default the file's folder; the other files. Raises UserError for whatever would stop `prepare` too, and where the
    user has to name columns.
    """
    wishes, data_dir = wishes or Wishes(), data_dir or path.parent
    files, by_order = splits_of([path, *further])
    path = files["train"]
    profile, name = profile_file(path, (*wishes.texts, *wishes.targets)), path.relative_to(data_dir).as_posix()
    _refuse_few(path, profile.rows)
    tasks = find_tasks(profile, str(path), wishes)
    if (split := tasks[0].split) and further:
        raise UserError(f"{path}: its column {split[0]} names the split of each row; give this file alone")
    if by_order:
        profile.guesses["splits"] = "the files are the splits in the order in which they were given"
    profile.splits = {split: file.relative_to(data_dir).as_posix() for split, file in files.items()}
    profile.splits |= dict.fromkeys(split[1] if split else (), name)
    entry = _merged([_entry(profile, roles, "files") for roles in tasks])
    rows = rows_of(name, CorpusConfig.model_validate(entry), data_dir)
    _refuse_few(path, rows)
    stem = path.name.split(".")[0]
    stem = f"{path.resolve().parent.name}_{stem}" if stem in ("train", "dev", "test", "validation", "data") else stem
    return _draft(wishes.name or id_of(stem, "corpus"), taken, profile, tasks, entry, "files", rows)


def splits_of(paths: list[Path]) -> tuple[dict[str, Path], bool]:
    """Return the file of each split, and whether their order says so: no name has a word as train, dev or test then."""
    if missing := [path for path in paths if not path.exists()]:
        raise UserError(f"{missing[0]}: no such file")
    words = {path: {*re.split(r"[\W_\d]+", path.name.lower())} for path in paths}
    named = [(ours, path) for path in words for ours, theirs in SPLITS.items() if words[path].intersection(theirs)]
    unnamed = [path for path in words if path not in dict(named).values()]
    by_order = len(unnamed) == len(paths) > 1
    if len(paths) == 1:
        named = [("train", paths[0])]
    elif by_order:
        named = [*zip(SPLITS if len(paths) == 3 else ("train", "test"), paths, strict=False)]
    elif len(unnamed) == 1:
        named.append(("train", unnamed[0]))
    files = dict(named)
    if "train" not in files or not len(named) == len(files) == len({*map(Path.resolve, files.values())}) == len(paths):
        raise UserError(f"{listing(map(str, paths))}: expected one file of train and one of test, with such names")
    return files, by_order


def rows_of(name: str, corpus: CorpusConfig, data_dir: Path) -> int:
    """Return how many rows the files of a corpus have, read as `prepare` reads them.

    Args: the corpus in messages; its entry; the folder of its files. Raises UserError for whatever stops `prepare` too.
    """
    assert corpus.files
    sums = {file: file_sha256(data_dir / file) for file in corpus.files.splits.values() if (data_dir / file).is_file()}
    tables, _, _ = load(name, corpus, "files", sums, data_dir)
    cleaned = {split: clean(table, corpus, corpus.files) for split, table in tables.items()}
    label_names(cleaned, tables, corpus)
    return sum(len(part.rows) for part in cleaned.values())


def _refuse_few(path: Path, rows: int) -> None:
    if rows < FEWEST_ROWS:
        few = f"{plural(rows, 'row')}; expected at least {FEWEST_ROWS} rows"
        raise UserError(f"{path}: has {few}, since validation and test are held out")


def draft_of_hub(
    id: str, config: str | None, revision: str | None, taken: set[str], wishes: Wishes | None = None
) -> Draft:
    """Return a corpus and its tasks for a data set on the Hub. Args: its id, configuration, commit; as of a file."""
    wishes = wishes or Wishes()
    profile, data = profile_hub(id, config, revision)
    tasks = find_tasks(profile, f"hub:{id}", wishes)
    withheld = without_labels(data, profile.splits, [name for roles in tasks for name in roles.targets])
    if "train" in withheld:
        raise UserError(f"hub:{id}: column '{tasks[0].targets[0]}' has rows without a value in the training split")
    profile.splits = {ours: theirs for ours, theirs in profile.splits.items() if ours not in withheld}
    entry = _merged([_entry(profile, roles, "hub") for roles in tasks])
    CorpusConfig.model_validate(entry)
    name = wishes.name or id_of("_".join(filter(None, [id.rpartition("/")[2], config])), "corpus")
    return _draft(name, taken, profile, tasks, entry, "hub", profile.rows)


def _draft(
    name: str, taken: set[str], profile: FileProfile, tasks: list[Roles], entry: dict, source: str, rows: int
) -> Draft:
    name = name if name[0].isalpha() and yaml_value(name) == name else f"my_{name}"
    asked, name = name, free_id(name, taken) if name in taken else name
    guesses, lines = [], []
    columns: dict[str, str] = {}
    types: dict[str, str] = {}
    for roles in tasks:
        id = name if len(tasks) == 1 else f"{name}_{roles.target}"
        id = free_id(id, {*taken, *types}) if id in {*taken, *types} else id
        task = {"corpus": name, "target": roles.target} | _task(profile, roles)
        guesses.append(_guesses(profile, roles, entry, task))
        columns |= _columns(roles)
        lines.append(f"  {id}:\n{_lines(4, task, guesses[-1])}")
        types[id] = task["type"]
    said = _joined(dict(zip((roles.target for roles in tasks), guesses, strict=True)))
    said |= {"id": f"{asked} exists already, so that this is {name}"} if name != asked else {}
    inside = {key: value for key, value in entry.items() if key != source}
    corpus = f"  {name}:\n{_lines(4, inside, said)}\n    {source}:\n{_lines(6, entry[source], said)}"
    return Draft(name, corpus, "\n".join(lines), types, profile, columns, said, rows)


def _merged(entries: list[dict]) -> dict:
    """Return one entry of those that differ in what their targets need."""
    whole: dict = {}
    for key, value in (item for entry in entries for item in entry.items()):
        whole[key] = _merged([whole[key], value]) if isinstance(value, dict) and key in whole else value
    return whole


def _joined(guesses: dict[str, dict[str, str]]) -> dict[str, str]:
    """Return the guesses of all targets; those that differ name their target."""
    joined = {}
    for key in dict.fromkeys(key for of_target in guesses.values() for key in of_target):
        said = {target: of_target[key] for target, of_target in guesses.items() if key in of_target}
        alike = len(said) == len(guesses) and len(set(said.values())) == 1
        joined[key] = next(iter(said.values())) if alike else "; ".join(map(": ".join, said.items()))
    return joined


def _guesses(profile: FileProfile, roles: Roles, entry: dict, task: dict) -> dict[str, str]:
    guesses = profile.guesses | roles.guesses
    if held_out := tuple(entry.get("carve", {})):
        guesses["carve"] = CARVED[held_out]
    doubts = label_slips(profile.columns[roles.targets[0]] if roles.kind == "label" else roles.values)
    if roles.kind == "label":
        texts = list(zip(*(profile.columns[name] for name in roles.texts), strict=True))
        doubts += contradictions(texts, profile.columns[roles.targets[0]])
    if doubts:
        guesses["labels"] = "; ".join(doubts)
    if "empty" in entry:
        guesses["empty"] = "rows without a text are left out"
    if task.get("view") == "long":
        views = Catalogue(shipped(HOME))
        most, fewer = (views.get("views", id, "view").max_length for id in ("long", "joint"))
        guesses["view"] = (
            f"long, as texts have {_mean_words(profile, roles):.0f} words on average; they are cut off after {most} "
            f"tokens, not read in windows; view: joint reads {fewer}, for less than {fewer / most:.0%} of the price"
        )
    if task["metrics"][0] == "f1_macro":
        guesses["metrics"] = "macro F1 first, since most rows have one label"
    single = roles.kind == "label" and len(roles.targets) == 1
    if single and (rare := _rare_label(profile.columns[roles.targets[0]])):
        guesses["class_weight"] = f"none, though {rare}; balanced weighs rare labels more"
    return guesses


def label_slips(labels: list) -> list[str]:
    """Return the labels of one row alone, if all others are frequent, and those that differ by blanks or case alone."""
    counts = Counter(map(str, labels))
    rare = [repr(label) for label, count in counts.items() if count == 1]
    folded = {label: " ".join(label.split()).casefold() for label in sorted(counts)}
    pairs = [f"{one!r} and {other!r}" for one, other in combinations(folded, 2) if folded[one] == folded[other]]
    said = (
        [f"{', '.join(rare)}: in one row only; correct the file if it is a slip"]
        if 0 < len(rare) <= len(counts) // 3
        else []
    )
    same = "differ by blanks or case alone; correct the file if they are the same"
    return said + [f"{', '.join(pairs)} {same}"] if pairs else said


def contradictions(texts: list[tuple], labels: list) -> list[str]:
    """Return which texts have several labels, and how many rows no model has right then."""
    by_text: dict[tuple, Counter] = defaultdict(Counter)
    for row, label in zip(texts, labels, strict=True):
        if all(text not in (None, "") for text in (*row, label)):
            by_text[row][label] += 1
    several = {row: counts for row, counts in by_text.items() if len(counts) > 1}
    if not several:
        return []
    lost = sum(counts.total() - max(counts.values()) for counts in several.values())
    first = textwrap.shorten(" | ".join(map(str, next(iter(several)))), 40, placeholder="...")
    has = f"{plural(len(several), 'text has', 'texts have')} several labels, the first '{first}'"
    return [f"{has}; {plural(lost, 'row is', 'rows are')} wrong whatever a model predicts"]


def _columns(roles: Roles) -> dict[str, str]:
    """Return which columns of the file became the text and the target, with the first few labels."""
    texts = roles.texts or [roles.words]
    labels = ", ".join(roles.values[:SHOWN_LABELS]) + (", ..." if len(roles.values) > SHOWN_LABELS else "")
    counted = f" ({len(roles.values)} labels: {labels})" if roles.values and len(roles.targets) == 1 else ""
    of_text = "text" if roles.texts else "words"
    return {of_text: ", ".join(map(str, texts)), roles.target: ", ".join(map(str, roles.targets)) + counted}


def _entry(profile: FileProfile, roles: Roles, source: str) -> dict:
    held_out = [split for split in SHARES if split not in profile.splits]
    texts: list = {1: ["text"], 2: ["text_a", "text_b"]}.get(len(roles.texts), [])
    texts, target = roles.texts if roles.kind == "answers" else texts, roles.target
    articles = roles.kind == "answers" and len(set(map(str, profile.columns.get("title", ())))) >= MANY_GROUPS
    named: list = roles.texts or [roles.words]
    theirs: dict = dict(zip(texts or ["words"], named, strict=True))
    several = len(roles.targets) > 1
    theirs |= {} if several else {target: roles.targets[0]}
    columns = {ours: name for ours, name in theirs.items() if ours != name}
    where = {**profile.keys, "splits": profile.splits}
    if roles.split:
        where |= {"marks": roles.split[1], "split_column": roles.split[0]}
    where |= {"separators": {target: roles.separator}} if roles.separator else {}
    where |= {"indicators": {target: roles.targets}} if several else {}
    where |= ({"columns": columns} if columns else {}) | ({"scheme": roles.scheme} if roles.scheme != "bio" else {})
    where |= {"rename": {target: roles.rename}} if roles.rename else {}
    where |= {"offsets": True} if roles.offsets else {}
    where |= {"words_by": roles.words_by} if roles.words_by is not None else {}
    blank = any(not str(value or "").strip() for name in roles.texts for value in profile.columns[name])
    return {
        **({"texts": texts} if texts else {"words": "words"}),
        "targets": {target: roles.kind},
        **({"labels": {target: roles.values}} if roles.values else {}),
        **({"only": {target: roles.only}} if roles.only else {}),
        **({"keep": ["id"]} if roles.kind == "answers" and "id" in profile.columns else {}),
        **({"empty": "drop"} if blank else {}),
        **({"group_by": "title"} if articles else {}),
        **({"carve": {split: SHARES[split] for split in held_out}} if held_out else {}),
        source: where,
    }


def _task(profile: FileProfile, roles: Roles) -> dict:
    kind = "spans" if roles.spans else TYPES[roles.kind]
    if roles.kind == "answers":
        unanswerable = any(
            not (value["text"] if isinstance(value, dict) else value) for value in profile.columns["answers"]
        )
        more = ["best_f1", "best_exact"] if unanswerable else []
        return {"type": kind, "metrics": METRICS[kind] + more, "view": "windows"}
    metrics = METRICS.get(kind, ["accuracy", "f1" if len(roles.values) == 2 else "f1_macro"])
    if kind == "classification":
        most_common = Counter(map(str, profile.columns[roles.targets[0]])).most_common(1)
        metrics = ["f1_macro", "accuracy"] if most_common[0][1] > UNEVEN * profile.rows else metrics
    view = "whole" if roles.kind == "tags" else "long" if _mean_words(profile, roles) > LONG_TEXT else None
    entry = {"type": f"pair_{kind}" if len(roles.texts) == 2 else kind, "metrics": metrics}
    return entry | ({"view": view} if view else {})


def _mean_words(profile: FileProfile, roles: Roles) -> float:
    return sum(len(str(value).split()) for name in roles.texts for value in profile.columns[name]) / profile.rows


def _rare_label(values: list) -> str:
    """Return the rarest label and its share where that is below RARE, and far below an equal one; else nothing.

    A label of one row is more likely a slip (`label_slips`).
    """
    counts = Counter(map(str, stated(values)))
    label, count = min(counts.items(), key=lambda one: one[1], default=("", 0))
    share = count / max(1, counts.total())
    return f"{label!r} has {share:.1%} of the rows" if count > 1 and share < min(RARE, 0.25 / len(counts)) else ""


def _lines(indent: int, entry: dict, guesses: dict[str, str]) -> str:
    comments = {key: f"# guess: {guesses[key]}\n{' ' * indent}" if key in guesses else "" for key in entry}
    return "\n".join(f"{' ' * indent}{comments[key]}{key}: {yaml_value(value)}" for key, value in entry.items())
