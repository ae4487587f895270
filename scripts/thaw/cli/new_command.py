"""Write the first draft of a catalogue entry for your data or encoder, and the experiment that selects it.

thaw new task reviews.csv                                  looks at the file, writes my/tasks.yaml and reviews.yaml
thaw new task reviews.csv --text body --label stars        where names and values leave several columns
thaw new task hub:owner/name --text text --label label     a data set on the Hugging Face Hub
thaw new encoder owner/name                                a model on the Hub, or a local folder
thaw new experiment mine --tasks sst2 --encoders minilm    an experiment alone

A file may be csv, tsv, jsonl, parquet, conll, conllu, SQuAD's JSON, or lines `<label> <text>`; also packed (.gz). What
was guessed is marked in the entry and printed. Existing files are added to, and never overwritten; --print writes
nothing.
"""

import argparse
import os
import re
from os.path import relpath
from pathlib import Path

from thaw.cli.experiment_file import add_entries, known, strategies, write_experiment
from thaw.cli.selection import parser_of
from thaw.core.errors import UserError
from thaw.declarations.task_types import EXTRACTION_TYPES
from thaw.declarations.value_types import ID
from thaw.schema.catalogue import Catalogue
from thaw.schema.entry import free_id

HUB = "hub:"
SYNTHETIC = "sentiment"  # a task that needs no data, where none is named for an encoder
HEAD = "# Written by thaw new after a look at {source}. Correct what it guessed (docs/reference/configuration.md).\n"


def arguments(words: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_of("new", __doc__)
    parser.add_argument("what", choices=["task", "encoder", "experiment"], help="what to write")
    parser.add_argument("source", help="your file, hub:owner/name, a folder; the name of an experiment")
    parser.add_argument("--name", help="the id of the entry and the experiment; default: after the file")
    parser.add_argument("--out", type=Path, metavar="FILE", help="catalogue file to write; default: in the folder my")
    parser.add_argument("--print", action="store_true", help="print the entry and write nothing")
    parser.add_argument(
        "--text", nargs="+", action="extend", default=[], metavar="COLUMN", help="the text column, or the two of a pair"
    )
    label = "the column to predict, or several of 0 and 1, each a label of its own"
    parser.add_argument("--label", nargs="+", action="extend", default=[], metavar="COLUMN", help=label)
    parser.add_argument("--config", help="configuration of a Hub data set, as mrpc of nyu-mll/glue")
    parser.add_argument("--revision", help="commit or branch on the Hub")
    parser.add_argument("--tasks", nargs="+", action="extend", default=[], metavar="ID", help="tasks of the experiment")
    encoders = "encoders of the experiment; default: minilm"
    parser.add_argument("--encoders", nargs="+", action="extend", default=[], metavar="ID", help=encoders)
    given = parser.parse_args(words)
    given.encoders = given.encoders or ["minilm"]
    return given


def main(words: list[str]) -> None:
    """Write an entry and an experiment, or print the entry; say what was guessed and what is next."""
    given = arguments(words)
    name = "encoders.yaml" if given.what == "encoder" else "tasks.yaml"
    given.out = given.out or Path("my", name)
    if given.out.name != name:
        raise UserError(f"{given.out}: a catalogue of this kind has the name {name}, in a folder of your own")
    {"task": _task, "encoder": _encoder, "experiment": _experiment}[given.what](given)


def _task(given: argparse.Namespace) -> None:
    from thaw.data.catalogue_stub import Wishes, draft_of_file, draft_of_hub

    wishes, catalogue = Wishes(given.name, tuple(given.text), tuple(given.label)), known(given.out.parent)
    taken = {*catalogue.ids("corpora"), *catalogue.ids("tasks")}
    _is_free(given.name, taken)
    if given.source.startswith(HUB):
        data_dir = None
        draft = draft_of_hub(given.source.removeprefix(HUB), given.config, given.revision, taken, wishes)
    elif "://" in given.source:
        raise UserError(f"{given.source}: is an address; download the file, or name a data set of the Hub, as hub:a/b")
    else:
        path = Path(given.source)
        inside = path.resolve().is_relative_to(Path.cwd())
        path, data_dir = (Path(relpath(path)), Path()) if inside else (path.resolve(), path.resolve().parent)
        draft = draft_of_file(path, taken, wishes, data_dir)
    if _printed(given, draft.blocks):
        return
    experiment = Path(f"{draft.name}.yaml")
    chosen = strategies({draft.kind})
    _write(given, draft.blocks, experiment, [draft.name], given.encoders, data_dir, chosen)
    print(f"task {draft.name}: {draft.kind}, {draft.profile.rows:,} rows\n{draft.profile.table()}")
    for key, column in draft.columns.items():
        print(f"  {key}: {column}")
    for key, guess in draft.guesses.items():
        print(f"  guessed {key}: {guess}")
    _next(experiment, given.out)


def _encoder(given: argparse.Namespace) -> None:
    from thaw.encoders.catalogue_draft import draft_of_encoder

    catalogue = known(given.out.parent)
    taken = set(catalogue.ids("encoders"))
    _is_free(given.name, taken)
    draft = draft_of_encoder(given.source, given.revision, taken, given.name)
    if _printed(given, draft.blocks):
        return
    experiment, tasks = Path(f"{draft.name}.yaml"), given.tasks or [SYNTHETIC]
    chosen = strategies({catalogue.get("tasks", task, "--tasks").type for task in tasks})
    _write(given, draft.blocks, experiment, tasks, [draft.name], _data_dir(catalogue, tasks), chosen)
    print(f"encoder {draft.name}")
    if draft.unknown:
        print(f"  unknown: {', '.join(draft.unknown)}; write what its model card says, so that Thaw can warn")
    _next(experiment, given.out)


def _experiment(given: argparse.Namespace) -> None:
    catalogue = known(given.out.parent)
    for block, ids in (("tasks", given.tasks), ("encoders", given.encoders)):
        for id in ids:
            catalogue.get(block, id, f"--{block}")
    if not given.tasks:
        raise UserError("--tasks names the tasks of the experiment; thaw list tasks says which there are")
    experiment = Path(f"{given.name or given.source}.yaml")
    own = given.out.parent if given.out.parent.is_dir() else None
    types = {catalogue.get("tasks", task, "--tasks").type for task in given.tasks}
    if types.intersection(EXTRACTION_TYPES) and types.difference(EXTRACTION_TYPES):
        raise UserError("--tasks: span extraction has a head of its own; give its tasks an experiment of their own")
    write_experiment(experiment, own, given.tasks, given.encoders, _data_dir(catalogue, given.tasks), strategies(types))
    _next(experiment)


def _data_dir(catalogue: Catalogue, tasks: list[str]) -> Path | None:
    """Return this folder where a task reads files that are here, as those do that `thaw new task` wrote."""
    paths = [path for corpus in _corpora(catalogue, tasks) if corpus.files for path in corpus.files.splits.values()]
    return Path() if any(map(os.path.isfile, paths)) else None


def _corpora(catalogue: Catalogue, tasks: list[str]) -> list:
    return [catalogue.get("corpora", catalogue.get("tasks", task, "--tasks").corpus, task) for task in tasks]


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


def _printed(given: argparse.Namespace, blocks: dict[str, str]) -> bool:
    if given.print:
        print(
            HEAD.format(source=given.source) + "".join(f"\n{block}:\n{text}\n" for block, text in blocks.items()),
            end="",
        )
    return given.print


def _write(given, blocks: dict[str, str], experiment: Path, tasks: list[str], encoders, data_dir, chosen: str):
    """Write the experiment and the entries, or neither."""
    write_experiment(experiment, given.out.parent, tasks, encoders, data_dir, chosen)
    try:
        add_entries(given.out, blocks, HEAD.format(source=given.source))
    except UserError:
        experiment.unlink()
        raise


def _next(experiment: Path, *further: Path) -> None:
    """Print what was written and the next command."""
    print(f"wrote {', '.join(map(relpath, [*further, experiment]))}; check what was guessed, then")
    print(f"    thaw plan {experiment}")
