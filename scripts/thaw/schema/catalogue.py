"""Catalogues: YAML read with line numbers, `base:` resolved, every mistake one sentence with its place."""

from os.path import dirname
from pathlib import Path
from typing import Any, Literal, overload

from pydantic import BaseModel

from thaw.core import plugins
from thaw.core.errors import UserError, suggestion
from thaw.core.home import HOME
from thaw.schema.by_kind import OUTPUT_CONFIGS, PROBE_CONFIGS, ByKind
from thaw.schema.corpora import CorpusConfig, SubsetConfig, TaskConfig, ViewConfig
from thaw.schema.encoder import RANDOM_TWIN, EncoderConfig
from thaw.schema.entry import free_id
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.schema.head import HeadConfig, HeadSetConfig
from thaw.schema.keys import OTHER_NAMES, same_key
from thaw.schema.reference import FindingConfig
from thaw.schema.strategy import StrategyConfig
from thaw.schema.validation import model_of_kind, validate
from thaw.schema.yaml_files import Document, read_yaml

# key of an experiment or an entry -> the block whose ids it has; `only` has those of several
NAMING = {
    **dict.fromkeys("strategies strategy after teacher rates_from adapted reference start among".split(), "strategies"),
    **dict.fromkeys("tasks task probe_tasks optional_tasks".split(), "tasks"),
    **dict.fromkeys("encoders encoder optional".split(), "encoders"),
    **{"heads": "heads", "head": "heads", "subsets": "subsets", "subset": "subsets"},
    **{"probes": "probes", "outputs": "outputs", "only": "only"},
}
NAMING_BLOCKS = {"strategies", "outputs", "findings", "advice"}  # blocks whose entries name others by these keys


def _with_ids(values, aliases: dict[str, dict[str, str]], block: str = ""):
    """Return plain values in which each alias is replaced by its id.

    Args: values as YAML has them; by block {alias: id}; the block that the key above them names.
    """
    known = aliases.get(block, {})
    if isinstance(values, str):
        return known.get(values, values)
    if isinstance(values, list):
        return [_with_ids(value, aliases, block) for value in values]
    if isinstance(values, dict):
        return {known.get(key, key): _with_ids(value, aliases, NAMING.get(key, block)) for key, value in values.items()}
    return values


# block name -> (file that holds it, its model)
BLOCKS: dict[str, tuple[str, type[BaseModel] | ByKind]] = {
    "views": ("tasks.yaml", ViewConfig),
    "corpora": ("tasks.yaml", CorpusConfig),
    "tasks": ("tasks.yaml", TaskConfig),
    "subsets": ("tasks.yaml", SubsetConfig),
    "encoders": ("encoders.yaml", EncoderConfig),
    "further_pretraining": ("encoders.yaml", FurtherPretrainingConfig),
    "heads": ("heads.yaml", HeadConfig),
    "head_sets": ("heads.yaml", HeadSetConfig),
    "strategies": ("strategies.yaml", StrategyConfig),
    "probes": ("probes.yaml", PROBE_CONFIGS),
    "outputs": ("outputs.yaml", OUTPUT_CONFIGS),
    "findings": ("findings.yaml", FindingConfig),
}


def shipped(home: Path) -> list[Path]:
    """Return the folders of the catalogues that come with Thaw: plain entries, then those of papers and experiments."""
    return [home / "config" / name for name in ("", "papers", "grid", "unseen")]


class Catalogue:
    """All entries of all catalogue folders, by block and id.

    Args: folders, in order; each may hold tasks.yaml, encoders.yaml, heads.yaml, strategies.yaml, probes.yaml and
    outputs.yaml.
    An entry may have `aliases`, further names; wherever one is written, the entry's id is meant. So it is with the Hub
    id or the folder of an encoder.
    Raises UserError for an unknown block, an id that two files define, an alias that is an id too, a `base:` that is
    missing or circular. Entries that come with Thaw are built, and so checked, when they are first asked for; a test
    asks for all.
    """

    def __init__(self, folders):
        self.folders = list(folders)
        self._raw: dict[str, dict[str, tuple[Document, dict]]] = {block: {} for block in BLOCKS}
        self._aliases: dict[str, dict[str, str]] = {block: {} for block in BLOCKS}
        self._entries: dict[tuple[str, str], BaseModel] = {}
        self._places: dict[tuple, str] = {}
        self.computed: dict[str, Any] = {}
        for folder in folders:
            self._read(Path(folder))
        self._check_aliases()
        self._aliases["encoders"] = self._encoders_by_source() | self._aliases["encoders"]
        of_thaw = {str(folder) for folder in shipped(HOME)}
        for block, entries in self._raw.items():
            for name, (document, _) in entries.items():
                if dirname(document.name) not in of_thaw:  # a mistake that nobody asks for is one too
                    self._entry(block, name)

    def _read(self, folder: Path) -> None:
        files = [folder / name for name in sorted({file for file, _ in BLOCKS.values()})]
        present = [path for path in files if path.exists()]
        if not folder.is_dir():
            raise UserError(f"catalogues: folder '{folder}' does not exist")
        if not present:
            raise UserError(f"catalogues: {folder} has none of {', '.join(path.name for path in files)}")
        for path in present:
            document = read_yaml(path)
            allowed = [block for block, (file, _) in BLOCKS.items() if file == path.name]
            for block, entries in document.content.items():
                if block not in allowed:
                    raise UserError(f"{document.place([block])}: {block}: unknown block{suggestion(block, allowed)}")
                if not isinstance(entries or {}, dict):
                    raise UserError(f"{document.place([block])}: {block}: expected a mapping of ids")
                for name, values in (entries or {}).items():
                    self._add(block, str(name), values, document)

    def _add(self, block: str, name: str, values, document: Document) -> None:
        place = document.place([block, name])
        if not isinstance(values, dict):
            raise UserError(f"{place}: {block}.{name}: expected a mapping of keys")
        if not name.isascii() or not name.replace("_", "a").isalnum() or name != name.lower() or len(name) > 60:
            raise UserError(f"{place}: {block}.{name}: an id has only a-z, 0-9 and _, at most 60 of them")
        if name in self._raw[block] and values.get("override") is not True:
            other, free = self._raw[block][name][0].place([block, name]), free_id(name, self._raw[block])
            raise UserError(
                f"{place}: {block}.{name} exists already, in {other}; call yours {free}, or say override: true in it "
                "to use it instead"
            )
        for alias in self._further_names(block, name, values.get("aliases", []), document):
            self._aliases[block][alias] = name
        own = {key: value for key, value in values.items() if key not in ("override", "aliases")}
        self._raw[block][name] = (document, own)

    def _further_names(self, block: str, name: str, aliases, document: Document) -> list[str]:
        """Return the aliases that an entry states; what is no list of ids, or is another entry's, is a UserError."""
        place = f"{document.place([block, name, 'aliases'])}: {block}.{name}: aliases"
        if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
            raise UserError(f"{place}: expected a list of ids, as [old_name]")
        for alias in aliases:
            if self._aliases[block].get(alias, name) != name:
                raise UserError(f"{place}: {alias} is one of {self._aliases[block][alias]} already; leave it out")
        return aliases

    def _encoders_by_source(self) -> dict[str, str]:
        """Return the first encoder of each model of the Hub, of the last part of its id, and of each folder."""
        found: dict[str, str] = {}
        for name, (_, values) in self._raw["encoders"].items():
            for source in filter(None, map(values.get, ("hub", "published", "folder"))):
                for word in {str(source), str(source).rpartition("/")[2]}:
                    if not any(word in entries for entries in self._raw.values()):
                        found.setdefault(word, name)
        return found

    def add_encoder(self, source: str, name: str, values: dict) -> None:
        """Have an entry that is in no file, of an encoder that an experiment names by its Hub id or its folder."""
        self._add("encoders", name, values, Document(source, {}))
        self._aliases["encoders"][source] = name

    def _check_aliases(self) -> None:
        """Raise UserError for an id that is also an alias of another entry."""
        for block, aliases in self._aliases.items():
            for alias in aliases.keys() & self._raw[block].keys():
                raise UserError(
                    f"{self._raw[block][alias][0].place([block, alias])}: {block}.{alias} is another name of "
                    f"{aliases[alias]} already; call yours {free_id(alias, self._raw[block])}"
                )

    def _values(self, block: str, name: str, seen: tuple = ()) -> dict:
        """Return an entry's own keys over those of its `base:`, of which a label is not inherited.

        Nor is what is said about a strategy by one whose phases train something else.
        """
        document, values = self._raw[block][name]
        base = values.get("base")
        if base is None:
            return values
        place = document.place([block, name, "base"])
        if not isinstance(base, str):
            raise UserError(f"{place}: {block}.{name}: base names one entry (it is {base!r:.40})")
        base = self.id_of(block, base)
        if base in (*seen, name):
            raise UserError(f"{place}: {block}.{name}: base leads back to {base}")
        if base not in self._raw[block]:
            raise UserError(f"{place}: {block}.{name}: no base '{base}'{suggestion(base, self._raw[block])}")
        own = {k: v for k, v in values.items() if k != "base"}
        inherited = {k: v for k, v in self._values(block, base, (*seen, name)).items() if k != "label"}
        if "phases" in own and _trained(own) != _trained(inherited):
            inherited.pop("about", None)
        model = model_of_kind(BLOCKS[block][1], inherited | own)
        return {k: v for k, v in inherited.items() if not same_key(model, k, own)} | own

    def compute(self, settings: dict) -> None:
        """Have phases computed as an experiment says, where they say nothing of their own. Args: by key of a phase."""
        self.computed, self._entries = settings, {}

    def _entry(self, block: str, name: str) -> BaseModel | None:
        """Return an entry, which is built when it is first asked for; None where there is none."""
        if (block, name) not in self._entries:
            self._entries[block, name] = self._build(block, name)
        return self._entries[block, name]

    def _build(self, block: str, name: str) -> Any:
        if name in self._raw[block]:
            values = self._values(block, name)
            values = self.with_ids(values) if block in NAMING_BLOCKS else values
            entry: Any = validate(BLOCKS[block][1], values, self._raw[block][name][0], (block, name))
            own = not self.computed or block not in ("strategies", "further_pretraining")
            return entry if own else entry.computed(self.computed)
        if (
            block == "encoders"
            and name.endswith(RANDOM_TWIN)
            and (trained := name.removesuffix(RANDOM_TWIN)) in self._raw[block]
        ):
            return self._untrained(trained)
        return None

    def pin(self, pins: Document) -> None:
        """Have entries with the revisions of a file of `thaw pin`: {block: {id: <id on the Hub>@<revision>}}."""
        pinned = [(block, name) for block in ("corpora", "encoders") for name in pins.content.get(block) or {}]
        for block, name in pinned:
            id, _, revision = str(pins.content[block][name]).rpartition("@")
            entry: Any = self._entry(block, name)
            changes: dict = {}
            if isinstance(entry, EncoderConfig) and entry.hub == id:
                changes = {"revision": revision}
            for source in entry.on_hub if isinstance(entry, CorpusConfig) else []:
                if source.id == id:
                    changes = {"hub": source.model_copy(update={"revision": revision}), "copies": []}
            if entry is None or not changes:
                place = f"{pins.place([block, name])}: {block}.{name}"
                raise UserError(f"{place}: no entry names {id or name}; delete the line, or run `thaw pin` again")
            self._entries[block, name] = entry.model_copy(update=changes)

    def _untrained(self, name: str) -> EncoderConfig:
        """Return the twin of an encoder that has its architecture and tokenizer, and random weights."""
        entry = self.get("encoders", name, "encoders")
        changes = {"weights": "random", "sha256": None, "note": None, "objective": "none: random weights"}
        return entry.model_copy(update={**changes, "label": f"{entry.label or name}, random weights"})

    @overload
    def get(self, block: Literal["views"], name: str, wanted_by: str) -> ViewConfig: ...
    @overload
    def get(self, block: Literal["corpora"], name: str, wanted_by: str) -> CorpusConfig: ...
    @overload
    def get(self, block: Literal["tasks"], name: str, wanted_by: str) -> TaskConfig: ...
    @overload
    def get(self, block: Literal["subsets"], name: str, wanted_by: str) -> SubsetConfig: ...
    @overload
    def get(self, block: Literal["encoders"], name: str, wanted_by: str) -> EncoderConfig: ...
    @overload
    def get(self, block: Literal["further_pretraining"], name: str, wanted_by: str) -> FurtherPretrainingConfig: ...
    @overload
    def get(self, block: Literal["heads"], name: str, wanted_by: str) -> HeadConfig: ...
    @overload
    def get(self, block: Literal["head_sets"], name: str, wanted_by: str) -> HeadSetConfig: ...
    @overload
    def get(self, block: Literal["strategies"], name: str, wanted_by: str) -> StrategyConfig: ...
    @overload
    def get(self, block: Literal["findings"], name: str, wanted_by: str) -> FindingConfig: ...
    @overload
    def get(self, block: str, name: str, wanted_by: str) -> Any: ...  # probes and outputs: a model for each kind
    def get(self, block: str, name: str, wanted_by: str) -> BaseModel:
        """Return an entry; an unknown id is a UserError that says who asked and what is near."""
        entry = self._entry(block, self.id_of(block, name))
        if entry is None:
            raise UserError(f"{wanted_by}: no {name!r} in {block}{self._instead(block, name)}")
        return entry

    def id_of(self, block: str, name: str) -> str:
        """Return the id of the entry that a name represents: that of which it is an alias, else the name."""
        return self._aliases[block].get(name, name)

    def with_ids(self, values):
        """Return plain values of an experiment or an entry, with ids in the place of aliases."""
        of_any = {alias: id for aliases in self._aliases.values() for alias, id in aliases.items()}
        return _with_ids(values, self._aliases | {"only": of_any})

    def _instead(self, block: str, name: str) -> str:
        """Return what to write in the place of an id that is not there."""
        meant = OTHER_NAMES.get(name.replace("-", "_").lower())
        if meant in self._raw[block]:
            return f"; it is called '{meant}' here"
        return suggestion(name, self._raw[block], f"`thaw list {block}` has those that exist")

    def head(self, name: str, task_type: str, wanted_by: str = "heads") -> tuple[str, HeadConfig] | None:
        """Return id and entry of a head; of a set of heads the one for a type of task, None where it has none."""
        if name in self._raw["head_sets"]:
            member = self.get("head_sets", name, wanted_by).by_task.get(task_type)
            return (
                None
                if member is None
                else (member, self.get("heads", member, self.place("head_sets", name, "by_task", task_type)))
            )
        return name, self.get("heads", name, wanted_by)

    def heads(self, name: str) -> list[HeadConfig]:
        """Return the entry of a head, or of a set of heads those of all its members."""
        members = [name]
        if name in self._raw["head_sets"]:
            members = list(self.get("head_sets", name, "heads").by_task.values())
        return [self.get("heads", member, "heads") for member in members]

    def ids(self, block: str) -> list[str]:
        """Return the ids of a block in the order of the files."""
        return list(self._raw[block])

    def check_part(self, kind: str, word: str, task_type: str, entry: tuple[str, str, str]) -> None:
        """Raise UserError, with the place of an entry (block, id, key), where it names an own part that cannot serve.

        That is one that is not there, is not written as its kind is (`plugins.SIGNATURES`), or states other task_types.
        """
        stated = self.own_part(kind, word, entry).stated("task_types", (task_type,))
        if task_type not in stated:
            raise UserError(
                f"{self.place(*entry)}: {word} is for {', '.join(stated)}; this task is of type {task_type}"
            )

    def own_part(self, kind: str, word: str, entry: tuple[str, str, str]) -> plugins.Plugin:
        """Return the own part that an entry (block, id, key) names; one that cannot be is a UserError."""
        try:
            return plugins.check(word, kind)
        except UserError as error:
            raise UserError(f"{self.place(*entry)}: {word}: {error}") from error

    def place(self, block: str, name: str, *keys: str) -> str:
        """Return `file:line: block.id.key` of an entry, for an error noticed later; without a file `block.id`.

        A key is called what the entry calls it. Plans ask for the same places with each of their runs.
        """
        asked = (block, name, keys)
        if asked not in self._places:
            self._places[asked] = self._place(block, name, keys)
        return self._places[asked]

    def _place(self, block: str, name: str, keys: tuple[str, ...]) -> str:
        if name not in self._raw[block]:
            return f"{block}.{name}"
        if keys and (entry := self._entry(block, name)):
            known = (word for word in self._raw[block][name][1] if same_key(type(entry), word, keys[:1]))
            keys = (next(known, keys[0]), *keys[1:])
        return f"{self._raw[block][name][0].place([block, name, *keys])}: {'.'.join([block, name, *keys])}"


def _trained(values: dict) -> list:
    """Return what the phases of an entry train and how, as far as a sentence about it may say so."""
    phases = values.get("phases")
    phases = [phase for phase in phases if isinstance(phase, dict)] if isinstance(phases, list) else []
    return [[phase.get(key) for key in ("train", "insert", "optimizer", "objective")] for phase in phases]
