"""Catalogues: YAML read with line numbers, `base:` resolved, every mistake one sentence with its place."""

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import yaml
from pydantic import BaseModel, ValidationError

from thaw import parts, settings
from thaw.records import UserError, near

# block name -> (file that holds it, its model)
BLOCKS = {
    "views": ("tasks.yaml", settings.View),
    "corpora": ("tasks.yaml", settings.Corpus),
    "tasks": ("tasks.yaml", settings.Task),
    "subsets": ("tasks.yaml", settings.Subset),
    "encoders": ("encoders.yaml", settings.Encoder),
    "further_pretraining": ("encoders.yaml", settings.FurtherPretraining),
    "heads": ("heads.yaml", settings.Head),
    "head_sets": ("heads.yaml", settings.HeadSet),
    "strategies": ("strategies.yaml", settings.Strategy),
    "probes": ("probes.yaml", settings.Probe),
    "outputs": ("outputs.yaml", settings.Output),
    "findings": ("findings.yaml", settings.Finding),
    "advice": ("advice.yaml", settings.Advice),
    "guidelines": ("advice.yaml", settings.Guideline),
}


SCALARS = (str, int, float, bool, type(None), date)
MOST_VALUES = 100_000  # of a file; only aliases of aliases come to more
PLAIN_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def shipped(home: Path) -> list[Path]:
    """Return the folders of the catalogues that come with Thaw: the plain entries, and those of papers."""
    return [home / "config", home / "config/papers"]


@dataclass
class Document:
    """A YAML file's content and the line of each key, by path of keys."""

    name: str
    content: dict
    lines: dict[tuple, int] = field(default_factory=dict)
    values: int = 0

    def place(self, keys) -> str:
        """Return `file:line` of the deepest known key on a path."""
        keys = tuple(str(key) for key in keys)
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return f"{self.name}:{self.lines.get(keys, 1)}"


def read_yaml(path) -> Document:
    """Read a YAML file of plain values; duplicate keys, broken syntax and missing files are UserErrors."""
    path = Path(path)
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise UserError(f"{place}: not valid YAML ({getattr(error, 'problem', error)})") from error
    except RecursionError as error:
        raise UserError(f"{path}: its brackets are nested too deeply") from error
    document = Document(str(path), {})
    content = _construct(node, (), document) if node else {}
    if not isinstance(content, dict):
        raise UserError(f"{path}:1: a mapping of keys is due here")
    document.content = content
    return document


def _construct(node, keys: tuple, document: Document):
    """Turn a YAML node into plain values and note the line of every key."""
    document.lines.setdefault(keys, node.start_mark.line + 1)
    document.values += 1
    if document.values > MOST_VALUES:
        raise UserError(f"{document.name}: its aliases (*) unfold to more than {MOST_VALUES} values; write them out")
    if not isinstance(node, yaml.ScalarNode) and node.tag not in PLAIN_TAGS:
        raise UserError(f"{document.name}:{node.start_mark.line + 1}: {node.tag} is not allowed here")
    if isinstance(node, yaml.SequenceNode):
        return [_construct(item, (*keys, str(i)), document) for i, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        found = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise UserError(f"{document.name}:{line}: a key is a word, and this one is a list or a mapping")
            key = _scalar(key_node, document)
            if isinstance(key, bool):
                raise UserError(f"{document.name}:{line}: YAML reads this key as {key}; put it in quotes")
            if key in found:
                first = document.lines[(*keys, str(key))]
                raise UserError(f"{document.name}:{line}: {key} is here a second time; it stands in line {first}")
            document.lines[(*keys, str(key))] = line
            found[key] = _construct(value_node, (*keys, str(key)), document)
        return found
    return _scalar(node, document)


def _scalar(node, document: Document):
    """Construct one plain value; tags that would build objects are refused."""
    loader = yaml.SafeLoader("")
    refused = UserError(f"{document.name}:{node.start_mark.line + 1}: {node.tag} is not allowed here")
    try:
        found = loader.construct_object(node)
    except yaml.YAMLError as error:
        raise refused from error
    except (ValueError, AttributeError, KeyError) as error:  # what PyYAML lets through of a tag that does not fit
        raise UserError(f"{document.name}:{node.start_mark.line + 1}: {node.value!r:.40} is no {node.tag}") from error
    if not isinstance(found, SCALARS):
        raise refused
    return found


def validate(model: type[BaseModel], values, document: Document, keys: tuple = ()):
    """Build a settings model from plain values; the first mistake becomes a UserError with file, line and key."""
    if not isinstance(values, dict):
        raise UserError(f"{document.place(keys)}: {'.'.join(keys)}: a mapping of keys is due here")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UserError(_sentence(min(error.errors(), key=_rank), model, document, keys)) from error


def _rank(mistake: dict) -> tuple:
    """Return by what the mistakes of one entry are ordered, the most telling one first.

    A misspelt key is also a missing one; a mapping where an id might stand too has a mistake of its own inside.
    """
    return mistake["type"] != "extra_forbidden", isinstance(mistake["input"], dict) and mistake["type"] == "string_type"


def _sentence(mistake: dict, model, document: Document, keys: tuple) -> str:
    """Put a pydantic error in one sentence: place, key, what is wrong and what would be right."""
    loc = tuple(str(part) for part in mistake["loc"])
    place, name = document.place((*keys, *loc)), ".".join((*keys, *loc)) or "the file"
    if mistake["type"] == "extra_forbidden":
        fields = _model_at(model, loc[:-1]).model_fields
        known = [field.alias or key for key, field in fields.items()]
        return f"{place}: {name}: unknown key{near(loc[-1], known)}"
    if mistake["type"] == "missing":
        return f"{place}: {'.'.join((*keys, *loc[:-1])) or 'the file'}: the key '{loc[-1]}' is missing"
    if isinstance(mistake["input"], bool) and "bool" not in mistake["type"]:
        return f"{place}: {name}: YAML reads this word as {mistake['input']}; put it in quotes"
    message = mistake["msg"].removeprefix("Value error, ")
    if mistake["type"] == "string_pattern_mismatch" and "a-z0-9_" in message:
        message = "an id has only a-z, 0-9 and _, at most 60 of them"
    shown = "" if mistake["type"] == "value_error" else f" (it is {mistake['input']!r:.60})"
    return f"{place}: {name}: {message[0].lower()}{message[1:]}{shown}"


def _model_at(model, loc: tuple):
    """Follow field names down to the model in which an unknown key stands."""
    for part in loc:
        annotation = model.model_fields[part].annotation if part in model.model_fields else None
        candidates = [annotation, *getattr(annotation, "__args__", ())] if annotation else []
        nested = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        model = nested[0] if nested else model
    return model


class Catalogue:
    """All entries of all catalogue folders, by block and id.

    Args: folders, in order; each may hold tasks.yaml, encoders.yaml, heads.yaml, strategies.yaml, probes.yaml and
    outputs.yaml.
    Raises UserError for an unknown block, an id that two files define, a `base:` that is missing or circular.
    """

    def __init__(self, folders):
        self.folders = list(folders)
        self._raw: dict[str, dict[str, tuple[Document, dict]]] = {block: {} for block in BLOCKS}
        self._entries: dict[tuple[str, str], BaseModel] = {}
        for folder in folders:
            self._read(Path(folder))
        for block, entries in self._raw.items():
            for name in entries:
                self._entries[block, name] = self._build(block, name)
        for name in self.ids("encoders"):
            self._entries.setdefault(("encoders", f"{name}_random"), self._untrained(name))

    def _read(self, folder: Path) -> None:
        files = [folder / name for name in sorted({file for file, _ in BLOCKS.values()})]
        found = [path for path in files if path.exists()]
        if not found:
            raise UserError(f"catalogues: {folder} holds none of {', '.join(path.name for path in files)}")
        for path in found:
            document = read_yaml(path)
            allowed = [block for block, (file, _) in BLOCKS.items() if file == path.name]
            for block, entries in document.content.items():
                if block not in allowed:
                    raise UserError(f"{document.place([block])}: {block}: unknown block{near(block, allowed)}")
                if not isinstance(entries or {}, dict):
                    raise UserError(f"{document.place([block])}: {block}: a mapping of ids is due here")
                for name, values in (entries or {}).items():
                    self._add(block, str(name), values, document)

    def _add(self, block: str, name: str, values, document: Document) -> None:
        place = document.place([block, name])
        if name in self._raw[block]:
            other = self._raw[block][name][0]
            raise UserError(f"{place}: {block}.{name} exists already, in {other.place([block, name])}; rename one")
        if not isinstance(values, dict):
            raise UserError(f"{place}: {block}.{name}: a mapping of keys is due here")
        if not name.isascii() or not name.replace("_", "a").isalnum() or name != name.lower() or len(name) > 60:
            raise UserError(f"{place}: {block}.{name}: an id has only a-z, 0-9 and _, at most 60 of them")
        self._raw[block][name] = (document, values)

    def _values(self, block: str, name: str, seen: tuple = ()) -> dict:
        """Return an entry's own keys over those of its `base:`; a label is not inherited."""
        document, values = self._raw[block][name]
        base = values.get("base")
        if base is None:
            return values
        place = document.place([block, name, "base"])
        if not isinstance(base, str):
            raise UserError(f"{place}: {block}.{name}: base names one entry (it is {base!r:.40})")
        if base in (*seen, name):
            raise UserError(f"{place}: {block}.{name}: base leads back to {base}")
        if base not in self._raw[block]:
            raise UserError(f"{place}: {block}.{name}: no base '{base}'{near(base, self._raw[block])}")
        inherited = {k: v for k, v in self._values(block, base, (*seen, name)).items() if k != "label"}
        return {**inherited, **{k: v for k, v in values.items() if k != "base"}}

    def _build(self, block: str, name: str) -> BaseModel:
        return validate(BLOCKS[block][1], self._values(block, name), self._raw[block][name][0], (block, name))

    def _untrained(self, name: str) -> settings.Encoder:
        """Return the twin of an encoder that has its architecture and tokenizer, and random weights."""
        entry = self._entries["encoders", name]
        changes = {"weights": "random", "sha256": None, "note": None, "objective": "none: random weights"}
        return entry.model_copy(update={**changes, "label": f"{entry.label or name}, random weights"})

    def get(self, block: str, name: str, wanted_by: str) -> BaseModel:
        """Return an entry; an unknown id is a UserError that says who asked and what is near."""
        if (block, name) not in self._entries:
            raise UserError(f"{wanted_by}: no {name!r} in {block}{near(name, self._raw[block])}")
        return self._entries[block, name]

    def head(self, name: str, task_type: str) -> tuple[str, settings.Head] | None:
        """Return id and entry of a head; of a set of heads the one for a type of task, None where it has none."""
        if name in self._raw["head_sets"]:
            member = self.get("head_sets", name, "heads").by_task.get(task_type)
            return member and (member, self.get("heads", member, self.place("head_sets", name, "by_task", task_type)))
        return name, self.get("heads", name, "heads")

    def heads(self, name: str) -> list[settings.Head]:
        """Return the entry of a head, or of a set of heads those of all its members."""
        members = [name]
        if name in self._raw["head_sets"]:
            members = self.get("head_sets", name, "heads").by_task.values()
        return [self.get("heads", member, "heads") for member in members]

    def ids(self, block: str) -> list[str]:
        """Return the ids of a block in the order in which they stand in the files."""
        return list(self._raw[block])

    def check_part(self, kind: str, word: str, task_type: str, entry: tuple[str, str, str]) -> None:
        """Raise UserError, with the place of an entry (block, id, key), where it names an own part that cannot serve.

        That is one that is not there, is not written as its kind is (`thaw.parts.SHAPES`), or states other task_types.
        """
        stated = self.own_part(kind, word, entry).stated("task_types", (task_type,))
        if task_type not in stated:
            raise UserError(
                f"{self.place(*entry)}: {word} is for {', '.join(stated)}; this task is of type {task_type}"
            )

    def own_part(self, kind: str, word: str, entry: tuple[str, str, str]) -> parts.Part:
        """Return the own part that an entry (block, id, key) names; one that cannot be is a UserError."""
        try:
            return parts.check(word, kind)
        except UserError as error:
            raise UserError(f"{self.place(*entry)}: {word}: {error}") from error

    def place(self, block: str, name: str, *keys: str) -> str:
        """Return `file:line: block.id.key` of an entry, for an error found later."""
        return f"{self._raw[block][name][0].place([block, name, *keys])}: {'.'.join([block, name, *keys])}"
