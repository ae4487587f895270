"""Where a key of an experiment was written: in which of its files, that are merged, or on the command line."""

from functools import cached_property
from os.path import relpath
from pathlib import Path
from typing import Any

from thaw.schema.yaml_files import Document, read_yaml


class SelectionFiles(Document):
    """A merged configuration that knows its files, which are read again only when a mistake needs its place.

    Args: the files, from left to right; the merged configuration.
    """

    def __init__(self, files, config: dict):
        super().__init__("--config" if files else "config", config)
        self.files = list(dict.fromkeys(map(_shown, files)))

    @cached_property
    def documents(self) -> list[Document]:
        """The files as they are now."""
        return [read_yaml(file) for file in self.files]

    def has(self, keys: tuple) -> bool:
        """Return whether a file has a path of keys."""
        return any(document.has(keys) for document in self.documents)

    def place(self, keys) -> str:
        """Return `file:line` of the deepest key on a path; of an item of a list where its index or id is next.

        A later file replaces what an earlier one has, except in a mapping. What is in no file was given by --config.
        """
        keys, place, documents = tuple(map(str, keys)), self.name, self.documents
        merged: Any = self.content
        if self.files and (not keys or keys[0] not in merged):  # a key that nobody wrote
            return self.files[0]
        for depth, key in enumerate(keys, 1):
            documents = [document for document in documents if document.has(keys[:depth])]
            if not documents:
                return place
            written, merged = _value(documents[-1].content, keys[:depth]), merged.get(key)
            if not isinstance(written, dict):
                return (
                    documents[-1].place((*keys[:depth], *_index(written, keys[depth:]))) if written == merged else place
                )
            place = documents[-1].place(keys[:depth])
        return place


def _shown(file) -> str:
    """Return a path as one types it here: Snakemake makes all of them absolute."""
    return relpath(file) if Path(file).is_absolute() and Path(file).is_relative_to(Path.cwd()) else str(file)


def _value(content: dict, keys: tuple[str, ...]):
    """Return what a path of keys leads to."""
    for key in keys:
        content = next(value for name, value in content.items() if str(name) == key)
    return content


def _index(values, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path into a list whose first word may be an item, or the only key of one, in the place of an index."""
    if not keys or not isinstance(values, list):
        return keys
    names = [str(next(iter(value), "") if isinstance(value, dict) else value) for value in values]
    return (str(names.index(keys[0])) if keys[0] in names else keys[0], *keys[1:])
