"""Writing what `thaw new` drafts: entries into a catalogue file of the user's, and the experiment that selects them."""

import re
from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import write_text
from thaw.core.home import HOME
from thaw.schema.catalogue import Catalogue, shipped

EXPERIMENT = """\
# An experiment: a selection from the catalogues. docs/reference/configuration.md has all keys, `thaw list` all ids.
#     thaw plan {file}      what would run
#     thaw advise {file}    which strategy to take, for the linear probes and one full training
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
strategies:
  # From cheap to expensive; the first three train no layer of the encoder and read its stored hidden states.
  - frozen                   # a linear probe on the last layer
  - frozen_all_layers        # a linear probe on all layers
  - ladder                   # a small side network on all layers
  - {lora:22}   # low-rank matrices in all layers
  - {top_k:22}   # fine-tuning of the last two layers
  - {full:22}   # fine-tuning of all layers"""
STRATEGIES_OF_EXTRACTION = """\
heads: [start_end]
strategies:
  # From cheap to expensive; the first trains no layer of the encoder and reads its stored hidden states.
  - frozen_sgd               # start and end vectors on the last layer
  - {lora:22}   # low-rank matrices in all layers
  - {top_k:22}   # fine-tuning of the last two layers
  - {full:22}   # fine-tuning of all layers"""
LANGUAGE = "             # trained on English texts; for others: thaw new encoder owner/name"
# Of few rows two epochs are too few updates: full fine-tuning would lose because it is not trained. Two epochs of this
# many rows, in batches of 16, are 400 updates.
ENOUGH_TRAIN_ROWS = 3200
FEW_ROWS = {"lora": "lora_400_updates", "top_k": "top_k_400_updates: [2]", "full": "full_400_updates"}
MANY_ROWS = {"lora": "lora_2_epochs", "top_k": "top_k: [2]", "full": "full"}


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


def strategies(train_rows: float, extraction: bool = False) -> str:
    """Return the lines with heads and strategies, of which those that train layers do so for long enough.

    Args: the train rows of the smallest task, 0 where that is unknown; whether the tasks are span extraction, which has
    a head of its own.
    """
    lines = STRATEGIES_OF_EXTRACTION if extraction else STRATEGIES
    return lines.format(**(MANY_ROWS if train_rows >= ENOUGH_TRAIN_ROWS else FEW_ROWS))


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
