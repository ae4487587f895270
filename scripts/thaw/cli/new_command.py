"""Look at your labelled texts, and write an entry for them and an experiment on them.

thaw new task reviews.csv                                  writes my/tasks.yaml and reviews.yaml
thaw new task reviews.csv --text body --label stars        where names and values leave several columns
thaw new task train.csv test.csv                           files that are a split each
thaw new task hub:owner/name --text text --label label     a data set on the Hugging Face Hub

A file may be csv, tsv, json, jsonl, parquet, conll, conllu, SQuAD's JSON, or lines `<label> <text>`; also packed (.gz).
An Excel file, and a folder with one of texts for each label (pos/1.txt, or train/pos/1.txt), are written as CSV first.
What was guessed is marked in the entry and printed. Existing files are added to, and never overwritten.
"""

import argparse
import contextlib
import math
import os
import re
from functools import reduce
from os.path import relpath
from pathlib import Path

from thaw.cli.selection import parser_of
from thaw.core.errors import UserError
from thaw.core.files import write_text
from thaw.core.home import HOME
from thaw.core.phrases import listing, plural, yaml_value
from thaw.core.runtime import machine_size
from thaw.declarations.task_types import EXTRACTION_TYPES, FILE_TYPES, PAIR_TYPES
from thaw.declarations.value_types import ID
from thaw.schema.catalogue import Catalogue, shipped
from thaw.schema.entry import free_id
from thaw.schema.yaml_files import read_yaml

EXPERIMENT = """\
# An experiment: a selection from the catalogues. docs/reference/configuration.md has all keys, `thaw list` all ids.
#     thaw plan {file}      what would run
#     thaw advise {file}    what to take, without training all
#     thaw run {file}       runs all of it

experiment: {name}
title: {name}
{own}tasks: [{tasks}]
encoders: [{encoders}]{language}
{strategies}
seeds: {seeds}
baselines: [majority, bag_of_words]
outputs: [main_table, cost, advice]
{threads}"""
ONE_THREAD = "compute: {{threads: 1}}        # by default 2; {trained} train beside each other on {cores} cores\n"
SEEDS = "[1, 2, 3]"
SEEDS_OF_LONG_TEXTS = "[1]                   # long texts are expensive; [1, 2, 3] shows what other seeds change"
STRATEGIES = """\
heads: [linear_mean]         # a linear head on the mean of the tokens, of taggers on each word; linear reads [CLS]
strategies:                  # from cheap to expensive; what trains layers has 400 updates of 16 rows
  - linear_probe             # on the last layer; no layer trains, and stored hidden states are read
  - linear_probe_all_layers  # the same on all layers
"""
STRATEGIES_OF_EXTRACTION = """\
heads: [start_end]
strategies:                  # from cheap to expensive; what trains layers has 400 updates of 16 rows
  - frozen_sgd               # start and end vectors on the last layer; no layer trains
"""
THAWED = """\
  - lora                     # low-rank matrices in all layers
  - top_k: [2]               # fine-tuning of the last two layers
  - full                     # fine-tuning of all layers"""
THAWED_PAIRS = """
  - lora_separate            # the same with each text of a pair encoded by itself: a bi-encoder
  - top_k_separate: [2]
  - full_separate"""
FEW = 100  # rows of texts below which the contrastive phase is tried too, see few_labels.yaml
CONTRASTIVE = """\
  - setfit                   # a contrastive phase before the head, for few labels
"""
LANGUAGE = "             # trained on English texts; for others: [owner/name] of the Hub"


def known(folder: Path) -> Catalogue:
    """Return all entries that exist: Thaw's, and those of the user's folder where there is one."""
    own = [folder] if folder.is_dir() and any(folder.glob("*.yaml")) else []
    return Catalogue([*shipped(HOME), *own])


def add_entries(path: Path, blocks: dict[str, str], comment: str) -> None:
    """Add entries to a catalogue file, each at the top of its block; a file that is not there is begun.

    Args: the file; {block: lines of the entry}; what is said above them. Raises UserError, and leaves the file as it
    was, where the catalogue would not load afterwards.
    """
    before = path.read_text(encoding="utf-8") if path.exists() else None
    text = comment if before is None else before.rstrip("\n") + "\n"
    for block, lines in blocks.items():
        head = re.compile(rf"^{block}:[ \t]*(#.*)?$", re.MULTILINE)
        if re.search(rf"^{block}:", text, re.MULTILINE) and not head.search(text):
            raise UserError(f"{path}: the block {block}: is not a plain list of entries; add by hand:\n{lines}")
        if match := head.search(text):
            text = f"{text[: match.end()]}\n{lines}{text[match.end() :]}"
        else:
            text += f"\n{block}:\n{lines}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    try:
        known(path.parent)
    except UserError:
        if before is None:
            path.unlink()
        else:
            write_text(path, before)
        raise


def strategies(types: set[str], rows: float = math.inf) -> str:
    """Return the lines with heads and strategies for tasks of some types; bi-encoders where one is on pairs.

    Args: types; labelled rows.
    """
    if types.intersection(EXTRACTION_TYPES):
        return STRATEGIES_OF_EXTRACTION + THAWED
    few = CONTRASTIVE if types == {"classification"} and rows < FEW else ""
    return STRATEGIES + few + THAWED + (THAWED_PAIRS if types.intersection(PAIR_TYPES) else "")


OWN = Path("my")  # the folder of the user's catalogues
HUB = "hub:"
HEAD = "# Written by thaw new after a look at {source}. Correct what it guessed (docs/reference/configuration.md).\n"


def with_draft_options(parser) -> None:
    """Add what the user may decide of a draft. Args: a command line, or a group of options of one."""
    parser.add_argument("--name", help="the id of the entry and the experiment; default: after the file")
    parser.add_argument(
        "--text", nargs="+", action="extend", default=[], metavar="COLUMN", help="the text column, or the two of a pair"
    )
    label = "the column to predict; of several each is a task, or a label of one task where all are of 0 and 1"
    parser.add_argument("--label", nargs="+", action="extend", default=[], metavar="COLUMN", help=label)
    parser.add_argument("--type", choices=FILE_TYPES, help="what is predicted, where the values leave several")
    parser.add_argument("--drop-empty", action="store_true", help="leave out rows without a label")


def draft_options(given: argparse.Namespace) -> list[str]:
    """Return the options of a draft that a command line of `thaw advise` has."""
    keys = ("text", "label", "type", "drop_empty", "encoder", "name")
    return [f"--{key.replace('_', '-')}" for key in keys if vars(given)[key]]


def arguments(words: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_of("new", __doc__)
    parser.add_argument("what", choices=["task"], metavar="task", help="labelled texts")
    parser.add_argument("source", help="your file, hub:owner/name, a folder")
    further = "further files: those of test, or of validation and test"
    parser.add_argument("further", nargs="*", default=[], help=further)
    with_draft_options(parser)
    parser.add_argument("--config", help="configuration of a Hub data set, as mrpc of nyu-mll/glue")
    encoders = "encoders of the experiment; default: minilm"
    parser.add_argument("--encoders", nargs="+", action="extend", default=[], metavar="ID", help=encoders)
    parser.add_argument("--revision", help="commit or branch on the Hub")
    given = parser.parse_args(words)
    if given.further and given.source.startswith(HUB):
        parser.error(f"unrecognized arguments: {' '.join(given.further)}")
    return given


def main(words: list[str]) -> None:
    """Write an entry and an experiment; say what was guessed and what is next."""
    given = arguments(words)
    with _tables_as_csv(given):
        written = _task(given)
    print(f"wrote {', '.join(map(relpath, written))}; check what was guessed, then\n    thaw plan {written[-1]}")


@contextlib.contextmanager
def _tables_as_csv(given: argparse.Namespace):
    """Have CSV files in the place of folders of texts and Excel files; what was written goes again after an error."""
    from thaw.data.text_tables import as_csv, is_table

    words = [given.source, *given.further]
    with contextlib.ExitStack() as undo:
        read = {word: str(as_csv(Path(word), undo)) if is_table(Path(word)) else word for word in words}
        given.source, *given.further = read.values()
        try:
            yield
        except UserError as error:
            raise UserError(reduce(lambda said, word: said.replace(read[word], word), words, str(error))) from error
        undo.pop_all()


def _task(given: argparse.Namespace) -> list[Path]:
    from thaw.data.catalogue_stub import draft_of_file, draft_of_hub
    from thaw.data.column_evidence import evidence_table
    from thaw.data.column_roles import Wishes
    from thaw.encoders.catalogue_draft import drafted

    wishes = Wishes(given.name, tuple(given.text), tuple(given.label), given.type, given.drop_empty)
    catalogue = known(OWN)
    taken = {*catalogue.ids("corpora"), *catalogue.ids("tasks")}
    _is_free(given.name, taken)
    drafts = drafted(named := given.encoders or ["minilm"], catalogue)
    for name in named:
        catalogue.get("encoders", name, "--encoder")
    encoders = [catalogue.id_of("encoders", name) for name in named]
    if given.source.startswith(HUB):
        data_dir = None
        draft = draft_of_hub(given.source.removeprefix(HUB), given.config, given.revision, taken, wishes)
    elif "://" in given.source:
        raise UserError(f"{given.source}: is an address; download the file, or name a data set of the Hub, as hub:a/b")
    else:
        paths = [Path(file).resolve() for file in (given.source, *given.further)]
        inside = all(path.is_relative_to(Path.cwd()) for path in paths)
        paths = [Path(relpath(path)) for path in paths] if inside else paths
        data_dir = Path() if inside else Path(os.path.commonpath([path.parent for path in paths]))
        draft = draft_of_file(paths[0], taken, wishes, data_dir, paths[1:])
    experiment = _experiment_file(draft.name)
    chosen = strategies({*draft.types.values()}, draft.rows)
    seeds = SEEDS_OF_LONG_TEXTS if "view" in draft.guesses else SEEDS
    of_encoders = {"encoders": "\n".join(draft.blocks["encoders"] for draft in drafts)}
    entries = {OWN / "encoders.yaml": of_encoders} if drafts else {}
    entries |= {OWN / "tasks.yaml": draft.blocks}
    _write(entries, given.source, experiment, [*draft.types], encoders, data_dir, chosen, seeds)
    for task, kind in draft.types.items():
        print(f"task {task}: {kind}, {draft.rows:,} rows")
    print(evidence_table(draft.profile.columns))
    for key, column in draft.columns.items():
        print(f"  {key}: {column}")
    for key, guess in draft.guesses.items():
        print(f"  guessed {key}: {guess}")
    return [*entries, experiment]


def experiment_of(given: argparse.Namespace) -> Path:
    """Return the experiment on a file of the user's: that of an earlier call, or a draft that is written now.

    Args: the file as `source`, and the options of a draft. Raises UserError where there are several experiments on the
    file, where an option asks for another one than is there, and where the file does not fit it any more.
    """
    from thaw.data.catalogue_stub import rows_of

    with _tables_as_csv(given):
        catalogue, path = known(OWN), Path(given.source)
        ids = catalogue.ids("corpora") if given.name is None else {given.name}.intersection(catalogue.ids("corpora"))
        sources = {one if one.startswith(HUB) else Path(one).resolve() for one in (given.source, *given.further)}
        found = [id for id in ids if sources <= _sources_of(catalogue, id)]
        if not found:
            written = _task(given)
            print(f"wrote {', '.join(map(relpath, written))}")
            return written[-1]
        experiment = _experiment_file(found[0])
        if len(found) > 1:
            there = listing([str(_experiment_file(id)) for id in found])
            raise UserError(f"{path}: {there} are on this file; name one, as thaw advise {experiment}")
        if option := _unlike(given, catalogue, found[0]):
            raise UserError(
                f"{option}: {experiment} is on {path} and has another value; change that file, or write another one by "
                "--name NAME"
            )
        if (corpus := catalogue.get("corpora", found[0], str(path))).files:
            try:
                rows_of(found[0], corpus, _data_dir_of(experiment))
            except UserError as error:
                changed = f"correct {found[0]} in {OWN}, or write another entry by --name"
                raise UserError(f"{error}; {experiment} was written for other content of {path}: {changed}") from error
        print(f"goes on from {experiment}")
        return experiment


def _unlike(given: argparse.Namespace, catalogue: Catalogue, id: str) -> str | None:
    """Return the first option that asks for another draft than the one with an id; None where all agree with it."""
    corpus, drafted = catalogue.get("corpora", id, id), read_yaml(str(_experiment_file(id))).content
    tasks = [catalogue.get("tasks", task, id) for task in drafted["tasks"]]
    source = corpus.files or corpus.hub
    assert source  # as of all drafts
    encoder = given.encoder and catalogue.id_of("encoders", given.encoder)
    texts = corpus.texts or ("words",)
    labels = [
        column
        for target in (task.target for task in tasks)
        for column in source.indicators.get(target) or [source.columns.get(target, target)]  # type: ignore[list-item]
    ]
    options: dict[str, tuple] = {
        "--text": (given.text, [str(source.columns.get(name, name)) for name in texts]),
        "--label": (given.label, [*map(str, labels)]),
        "--type": (given.type and {given.type}, {task.type.removeprefix("pair_") for task in tasks}),
        "--encoder": (encoder and [encoder], drafted["encoders"]),
    }
    return next((option for option, (asked, written) in options.items() if asked and asked != written), None)


def _experiment_file(id: str) -> Path:
    return Path(f"{id}.yaml")


def _sources_of(catalogue: Catalogue, id: str) -> set[str | Path]:
    """Return the files or the data set of the Hub that the experiment of a corpus' id reads; none without one."""
    experiment, corpus = _experiment_file(id), catalogue.get("corpora", id, id)
    if not experiment.is_file():
        return set()
    files = corpus.files.splits.values() if corpus.files else ()
    of_hub = [f"{HUB}{corpus.hub.id}"] if corpus.hub else []
    return {*of_hub, *((_data_dir_of(experiment) / name).resolve() for name in files)}


def _data_dir_of(experiment: Path) -> Path:
    return Path(read_yaml(str(experiment)).content.get("data_dir", ""))


def _is_free(name: str | None, taken: set[str]) -> None:
    """Raise UserError where a name that the user gives cannot be an id, or is one already."""
    if name and not re.fullmatch(ID, name):
        folded = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:60]
        raise UserError(f"--name '{name}': an id has only a-z, 0-9 and _{f', as {folded}' if folded else ''}")
    if name in taken:
        raise UserError(
            f"--name {name}: exists already; {free_id(name, taken)} is free. To replace it on purpose, say override: "
            "true in an entry of your own"
        )


def _write(
    entries: dict[Path, dict[str, str]],
    source: str,
    experiment: Path,
    tasks: list[str],
    encoders: list[str],
    data_dir: Path | None,
    chosen: str,
    seeds: str = SEEDS,
) -> None:
    """Write the experiment and the entries by catalogue file; no experiment, where an entry cannot be written."""
    if experiment.exists():
        raise UserError(f"{experiment} exists already; --name gives another one")
    beside, cores = len(tasks) * len(encoders), machine_size()["cores"]
    trained = plural(len(tasks), "task") if len(encoders) == 1 else f"{beside} pairs of task and encoder"
    text = EXPERIMENT.format(
        file=experiment,
        name=experiment.stem,
        own=f"catalogues: [{OWN}]\n" + (f"data_dir: {yaml_value(str(data_dir))}\n" if data_dir else ""),
        tasks=", ".join(tasks),
        encoders=", ".join(encoders),
        language=LANGUAGE if encoders == ["minilm"] else "",
        strategies=chosen,
        seeds=seeds,
        threads=ONE_THREAD.format(trained=trained, cores=cores) if beside > 1 and cores < 2 * beside else "",
    )
    write_text(experiment, text)
    try:
        for catalogue_file, blocks in entries.items():
            add_entries(catalogue_file, blocks, HEAD.format(source=source))
    except UserError:
        experiment.unlink()
        raise
