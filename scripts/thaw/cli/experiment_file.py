"""Writing what `thaw new` drafts: entries into a catalogue file of the user's, and the experiment that selects them."""

import re
from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import write_text
from thaw.core.home import HOME
from thaw.declarations.task_types import EXTRACTION_TYPES, PAIR_TYPES
from thaw.schema.catalogue import Catalogue, shipped

EXPERIMENT = """\
# An experiment: a selection from the catalogues. docs/reference/configuration.md has all keys, `thaw list` all ids.
#     thaw plan {file}      what would run
#     thaw advise {file}    what to take, from cheap to dear
#     thaw run {file}       runs all of it

experiment: {name}
title: {name}
{own}tasks: [{tasks}]
encoders: [{encoders}]{language}
{strategies}
seeds: [1, 2, 3]
baselines: [majority, bag_of_words]
outputs: [main_table, cost, advice]
"""
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
LANGUAGE = "             # trained on English texts; for others: thaw new encoder owner/name"


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


def strategies(types: set[str]) -> str:
    """Return the lines with heads and strategies for tasks of some types; bi-encoders where one is on pairs."""
    if types.intersection(EXTRACTION_TYPES):
        return STRATEGIES_OF_EXTRACTION + THAWED
    return STRATEGIES + THAWED + (THAWED_PAIRS if types.intersection(PAIR_TYPES) else "")


def write_experiment(
    path: Path, folder: Path | None, tasks: list[str], encoders: list[str], data_dir: Path | None, chosen: str
) -> None:
    """Write an experiment file that selects some tasks and encoders.

    Args: the file; the user's folder of catalogues, None without one; data_dir, where local files are; the lines with
    heads and strategies.
    """
    if path.exists():
        raise UserError(f"{path} exists already; --name gives another one")
    own = [f"catalogues: [{_quoted(folder)}]"] if folder else []
    own += [f"data_dir: {_quoted(data_dir)}"] if data_dir else []
    text = EXPERIMENT.format(
        file=path,
        name=path.stem,
        own="".join(f"{line}\n" for line in own),
        tasks=", ".join(tasks),
        encoders=", ".join(encoders),
        language=LANGUAGE if encoders == ["minilm"] else "",
        strategies=chosen,
    )
    write_text(path, text)


def _quoted(path) -> str:
    """Return a path as YAML has it."""
    return str(path) if re.fullmatch(r"[\w./-]+", str(path)) else f"'{path}'"
