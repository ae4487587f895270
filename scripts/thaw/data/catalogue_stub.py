"""The first draft of a catalogue entry, made from a user's file; comments mark what was guessed."""

import re
from pathlib import Path

import yaml

from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.data.checks import clean, label_names
from thaw.data.column_roles import Roles, find_roles
from thaw.data.file_profile import FileProfile, profile_file
from thaw.data.sources import load
from thaw.schema.corpora import CorpusConfig

FEWEST_ROWS = 20
CARVE = {"validation": 0.1, "test": 0.2}
CARVED = "one file, so all but train is carved from it; name your own files under splits if you have them"
LONG_TEXT = 90  # words on average, above which the shorter views cut much off
TYPES = {"label": "classification", "score": "regression", "tags": "tagging"}
METRICS = {
    "regression": ["pearson", "spearman"],
    "tagging": ["accuracy"],
    "spans": ["span_f1", "accuracy"],
}
STUB = """\
# Written by thaw new after a look at {file} ({rows} rows). Correct what it guessed.
# It belongs into {catalogue}/tasks.yaml. Next, in the repository's folder (this prints what would run;
# `snakemake --workflow-profile workflow/profiles/workstation` instead of the program runs it):
#     thaw plan --configfile config/config.yaml \\
#         --config experiment={name} title={name} 'catalogues=[{catalogue}]' 'tasks=[{name}]' \
'strategies=[frozen, full]' data_dir={folder}

corpora:
  {name}:
{corpus}
    files:
{files}

tasks:
  {name}:
{task}
"""


def write_stub(path: Path, taken: set[str], catalogue: str) -> str:
    """Return a file tasks.yaml, as text, with a corpus and a task for one file of the user's.

    Args: the file; the ids of corpora and tasks that exist; the folder in which the catalogue will be.
    Raises UserError for whatever would stop `prepare` too, and where no column can be the text, or none the target.
    """
    profile = profile_file(path)
    if profile.rows < FEWEST_ROWS:
        raise UserError(
            f"{path}: has {profile.rows} rows; expected at least {FEWEST_ROWS}, since validation and test are carved"
        )
    roles = find_roles(profile, str(path))
    entry = _entry(path, profile, roles)
    corpus = CorpusConfig.model_validate(entry)  # read the file as `prepare` will
    tables, _ = load(path.name, corpus, "files", {path.name: file_sha256(path)}, path.parent)
    cleaned = {split: clean(table, corpus, corpus.files) for split, table in tables.items()}
    label_names(cleaned, tables, corpus)
    name, folder = _id(path), str(path.resolve().parent)
    name = f"my_{name}" if name in taken or name[0].isdigit() or _yaml(name) != name else name
    files, guesses = entry.pop("files"), {"carve": CARVED} | profile.guesses | roles.guesses
    return STUB.format(
        file=path.name,
        rows=profile.rows,
        catalogue=catalogue,
        name=name,
        folder=folder if re.fullmatch(r"[\w./-]+", folder) else f"'{folder}'",
        corpus=_lines(4, entry, guesses),
        files=_lines(6, files, guesses),
        task=_lines(4, {"corpus": name, "target": roles.kind} | _task(profile, roles), {}),
    )


def _id(path: Path) -> str:
    """Return an id after the file's name, or after its folder's too where that says little."""
    stem = path.name.split(".")[0]
    stem = f"{path.resolve().parent.name}_{stem}" if stem in ("train", "dev", "test", "validation", "data") else stem
    return re.sub("[^a-z0-9]+", "_", stem.lower()).strip("_")[:50] or "corpus"


def _entry(path: Path, profile: FileProfile, roles: Roles) -> dict:
    texts = {1: ["text"], 2: ["text_a", "text_b"]}.get(len(roles.texts), [])
    theirs = dict(zip(texts or ["words"], roles.texts or [roles.words], strict=True)) | {roles.kind: roles.target}
    columns = {ours: name for ours, name in theirs.items() if ours != name}
    files = {**profile.keys, "splits": {"train": path.name}}
    files |= ({"columns": columns} if columns else {}) | ({"scheme": roles.scheme} if roles.scheme != "bio" else {})
    blank = any(not str(value or "").strip() for name in roles.texts for value in profile.columns[name])
    return {
        **({"texts": texts} if texts else {"words": "words"}),
        "targets": {roles.kind: roles.kind},
        **({"labels": {roles.kind: roles.values}} if roles.values else {}),
        **({"empty": "drop"} if blank else {}),
        "carve": CARVE,
        "files": files,
    }


def _task(profile: FileProfile, roles: Roles) -> dict:
    kind = "spans" if roles.spans else TYPES[roles.kind]
    metrics = METRICS.get(kind, ["accuracy", "f1" if len(roles.values) == 2 else "f1_macro"])
    words = sum(len(str(value).split()) for name in roles.texts for value in profile.columns[name]) / profile.rows
    view = "whole" if roles.kind == "tags" else "long" if words > LONG_TEXT else None
    entry = {"type": f"pair_{kind}" if len(roles.texts) == 2 else kind, "metrics": metrics}
    return entry | ({"view": view} if view else {})


def _lines(indent: int, entry: dict, guesses: dict[str, str]) -> str:
    """Return keys with their values as YAML, each that was guessed after a comment."""
    comments = {key: f"# guess: {guesses[key]}\n{' ' * indent}" if key in guesses else "" for key in entry}
    return "\n".join(f"{' ' * indent}{comments[key]}{key}: {_yaml(value)}" for key, value in entry.items())


def _yaml(value) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False)
    return text.removesuffix("...\n").strip()
