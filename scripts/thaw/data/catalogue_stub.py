"""The first draft of a catalogue entry, from a look at a user's file; what was guessed stands in comments."""

import json
import re
from pathlib import Path

from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.data.checks import clean, label_names
from thaw.data.column_roles import Roles, find_roles
from thaw.data.file_profile import FileProfile, profile_file
from thaw.data.sources import load
from thaw.schema.corpora import CorpusConfig

FEWEST_ROWS = 20
CARVE = {"validation": 0.1, "test": 0.2}
WORDS_OF_YAML = {"yes", "no", "on", "off", "y", "n", "true", "false", "null"}
TYPES = {"label": "classification", "score": "regression", "tags": "tagging"}


def write_stub(path: Path, taken: set[str], catalogue: str) -> str:
    """Return a file tasks.yaml, as text, with a corpus and a task for one file of the user's.

    Args: the file; the ids of corpora and tasks that exist; the folder in which the catalogue will stand.
    Raises UserError for whatever would stop `prepare` too, and where no text or no target can be told.
    """
    sight = profile_file(path)
    if sight.rows < FEWEST_ROWS:
        raise UserError(f"{path}: has {sight.rows} rows; {FEWEST_ROWS} are due, since validation and test are carved")
    roles = find_roles(sight, str(path))
    entry = _entry(path, sight, roles)
    _check(path, entry)
    name = _id(path)
    name = f"my_{name}" if name in taken or not _is_plain(name) else name
    return "\n".join(_lines(path, name, catalogue, entry, sight, roles)) + "\n"


def _id(path: Path) -> str:
    """Return an id after the file's name, or after its folder's too where that says little."""
    stem = path.name.split(".")[0]
    stem = f"{path.resolve().parent.name}_{stem}" if stem in ("train", "dev", "test", "validation", "data") else stem
    return re.sub("[^a-z0-9]+", "_", stem.lower()).strip("_")[:50] or "corpus"


def _entry(path: Path, sight: FileProfile, roles: Roles) -> dict:
    """Return the corpus entry as plain values."""
    texts = {1: ["text"], 2: ["text_a", "text_b"]}.get(len(roles.texts), [])
    theirs = dict(zip(texts or ["words"], roles.texts or [roles.words], strict=True)) | {roles.kind: roles.target}
    columns = {ours: name for ours, name in theirs.items() if ours != name}
    files = {**sight.keys, "splits": {"train": path.name}}
    files |= ({"columns": columns} if columns else {}) | ({"scheme": roles.scheme} if roles.scheme != "bio" else {})
    blank = any(not str(value or "").strip() for name in roles.texts for value in sight.columns[name])
    return {
        **({"texts": texts} if texts else {"words": "words"}),
        "targets": {roles.kind: roles.kind},
        **({"labels": {roles.kind: roles.values}} if roles.values else {}),
        **({"empty": "drop"} if blank else {}),
        "carve": CARVE,
        "files": files,
    }


def _check(path: Path, entry: dict) -> None:
    """Read the file by its entry, as `prepare` will; what it would not take raises UserError."""
    corpus = CorpusConfig.model_validate(entry)
    tables, _ = load(path.name, corpus, "files", {path.name: file_sha256(path)}, path.parent)
    cleaned = {split: clean(table, corpus, corpus.files) for split, table in tables.items()}
    label_names(cleaned, tables, corpus)


def _task(roles: Roles) -> dict:
    """Return type, metrics and view of the task."""
    kind = "spans" if roles.spans else TYPES[roles.kind]
    metrics = {
        "classification": ["accuracy", "f1" if len(roles.values) == 2 else "f1_macro"],
        "regression": ["pearson", "spearman"],
        "tagging": ["accuracy"],
        "spans": ["span_f1", "accuracy"],
    }[kind]
    view = {"view": "whole"} if roles.kind == "tags" else {"view": "long"} if roles.long else {}
    return {"type": f"pair_{kind}" if len(roles.texts) == 2 else kind, "metrics": metrics, **view}


def _lines(path: Path, name: str, catalogue: str, entry: dict, sight: FileProfile, roles: Roles) -> list[str]:
    """Return the lines of the stub: what to do next, the corpus, the task."""
    guesses = sight.guesses | roles.guesses
    guesses["carve"] = "one file, so all but train is carved from it; name your own files under splits if you have them"
    selection = (
        f"experiment={name} title={name} 'catalogues=[{catalogue}]' 'tasks=[{name}]' 'strategies=[frozen, full]'"
    )
    data_dir = _quoted(str(path.resolve().parent))
    lines = [
        f"# Written by scripts/new.py after a look at {path.name} ({sight.rows} rows). Correct what it guessed.",
        f"# It belongs into {catalogue}/tasks.yaml. Next, in the repository's folder (this prints what would run;",
        "# `snakemake --workflow-profile workflow/profiles/workstation` in the place of the program runs it):",
        "#     python scripts/plan.py --configfile config/config.yaml \\",
        f"#         --config {selection} data_dir={data_dir}",
        "",
        "corpora:",
        f"  {name}:",
    ]
    for key, value in entry.items():
        if key != "files":
            lines.append(_line(4, key, value, guesses))
    lines.append("    files:")
    lines += [_line(6, key, value, guesses) for key, value in entry["files"].items()]
    lines += ["", "tasks:", f"  {name}:", f"    corpus: {name}", f"    target: {roles.kind}"]
    lines += [_line(4, key, value, {}) for key, value in _task(roles).items()]
    return lines


def _line(indent: int, key: str, value, guesses: dict[str, str]) -> str:
    """Return one key with its value, after a comment where it was guessed."""
    comment = f"{' ' * indent}# guess: {guesses[key]}\n" if key in guesses else ""
    return f"{comment}{' ' * indent}{key}: {_yaml(value)}"


def _yaml(value) -> str:
    """Return a value in YAML's flow style; text that is no plain word stands in quotes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    if isinstance(value, str) and not _is_plain(value):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_plain(text: str) -> bool:
    """Return whether YAML reads a text as text without quotes."""
    return bool(re.fullmatch(r"[A-Za-z][\w.-]*", text)) and text.lower() not in WORDS_OF_YAML


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w./-]+", text) else f"'{text}'"
