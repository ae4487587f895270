"""YAML files with the line of every key: duplicate keys, aliases and tags that hide a value are errors."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from pathlib import Path

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from thaw.core.errors import UserError

SCALARS = (str, int, float, bool, type(None), date)

MOST_VALUES = 100_000  # of a file; only aliases of aliases come to more

PLAIN_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
TEXT_TAG = "tag:yaml.org,2002:str"


@dataclass
class Document:
    """A YAML file's content and the line of each key, by path of keys."""

    name: str
    content: dict
    lines: dict[tuple, int] = field(default_factory=dict)
    values: int = 0

    def has(self, keys: tuple) -> bool:
        return keys in self.lines

    def place(self, keys) -> str:
        """Return `file:line` of the deepest known key on a path."""
        keys = tuple(str(key) for key in keys)
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return f"{self.name}:{self.lines.get(keys, 1)}"


if yaml.__with_libyaml__:
    from yaml.cyaml import CParser  # type: ignore[attr-defined]

    class _FastLoader(Composer, CParser, Resolver):
        """The parser of libyaml, in C, under PyYAML's own composer: that of CSafeLoader overflows the stack of C."""

        def __init__(self, text: str):
            CParser.__init__(self, text)
            Composer.__init__(self)
            Resolver.__init__(self)


def _compose(text: str):
    """Return the root node of a YAML text. PyYAML's own parser, ten times slower, words its errors better."""
    if yaml.__with_libyaml__:
        with suppress(yaml.YAMLError):
            return yaml.compose(text, Loader=_FastLoader)  # type: ignore[arg-type]
    return yaml.compose(text, Loader=yaml.SafeLoader)


def read_yaml(path) -> Document:
    """Read a YAML file of plain values; duplicate keys, broken syntax and missing files are UserErrors."""
    path = Path(path)
    try:
        return _document(path, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text") from error


@lru_cache(maxsize=64)  # for processes that load many plans, as tests do; nobody changes a document
def _document(path: Path, text: str) -> Document:
    try:
        node = _compose(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise UserError(f"{place}: not valid YAML ({getattr(error, 'problem', error)})") from error
    except RecursionError as error:
        raise UserError(f"{path}: its brackets are nested too deeply") from error
    document = Document(str(path), {})
    content = _construct(node, (), document) if node else {}
    if not isinstance(content, dict):
        raise UserError(f"{path}:1: expected a mapping of keys")
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
        mapping = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise UserError(f"{document.name}:{line}: a key is a word, and this one is a list or a mapping")
            key = _scalar(key_node, document)
            if isinstance(key, bool):
                raise UserError(f"{document.name}:{line}: YAML reads this key as {key}; put it in quotes")
            if key in mapping:
                first = document.lines[(*keys, str(key))]
                raise UserError(f"{document.name}:{line}: duplicate key {key}; first given in line {first}")
            document.lines[(*keys, str(key))] = line
            mapping[key] = _construct(value_node, (*keys, str(key)), document)
        return mapping
    return _scalar(node, document)


def _scalar(node, document: Document):
    """Construct one plain value; tags that would build objects are refused."""
    if node.tag == TEXT_TAG:
        return node.value
    refused = UserError(f"{document.name}:{node.start_mark.line + 1}: {node.tag} is not allowed here")
    try:
        value = SafeConstructor().construct_object(node)
    except yaml.YAMLError as error:
        raise refused from error
    except (ValueError, AttributeError, KeyError) as error:  # what PyYAML lets through of a tag that does not fit
        raise UserError(f"{document.name}:{node.start_mark.line + 1}: {node.value!r:.40} is no {node.tag}") from error
    if not isinstance(value, SCALARS):
        raise refused
    return value
