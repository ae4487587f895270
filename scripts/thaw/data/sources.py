"""Where a corpus comes from: files of Thaw's own, local files, or the Hub, in the order that the user sets.

`find_source` is asked by the plan before anything runs, so nothing heavy is imported at the top.
"""

import functools
from collections.abc import Sequence
from itertools import compress
from pathlib import Path

from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.core.hub import NEW_REVISION
from thaw.core.runtime import log
from thaw.data.edges import ARCS, arcs
from thaw.data.rows_table import RowsTable, columns_of, find_position, join, parts
from thaw.data.spans import WORD
from thaw.schema.corpora import GROUPINGS, CorpusConfig, FilesConfig, HubConfig, SizeConfig, SourceConfig, ViewConfig

PIECES = 1.07  # tokens of BERT's uncased vocabulary for each of them: 1.03 to 1.12 on ten published datasets
MOST_BYTES = 100 * 2**20  # of files that the plan reads, which takes a second for each 20 MB or so
EMBEDDED = Path(__file__).with_name("embedded")  # what a grammar wrote, in thaw.data up to 00f2c715
SCRIPT_BRANCH = "refs/convert/parquet"
NO_HEAD = ("_", "None", "")  # what CoNLL-U, and what the Hub has of it, writes where something has none


def find_source(name: str, corpus: CorpusConfig, sources: Sequence[str], data_dir) -> tuple[str, dict[str, str]]:
    """Return the first of the sources that a corpus has and that is there, with its files' sha256 by path.

    Files are there when all of them are; the Hub is not asked. Raises UserError where some files are missing
    and others not, and where no source is left, with what was tried.
    """
    tried = []
    for source in sources:
        if getattr(corpus, source) is None:
            continue
        if source == "files" and corpus.files:
            paths, missing = _locate_all(name, corpus.files, Path(data_dir))
            if not missing:
                return source, {path: file_sha256(Path(data_dir) / path) for path in sorted(set(paths.values()))}
            tried.append(f"there is no file {Path(data_dir) / missing[0]}")
        else:
            return source, {}
    what = tried[0] if tried else f"it has none of sources: [{', '.join(sources)}]"
    right = "`thaw fetch` downloads it; or " if corpus.url and tried else ""
    right += "say --config data_dir=<their folder>, or add another of its sources to the experiment's `sources:`"
    raise UserError(f"corpora.{name}: no data here, {what}; {right}")


def _locate_all(name: str, files: FilesConfig, data_dir: Path) -> tuple[dict[str, str], list[str]]:
    paths, missing = {}, []
    for split, path in files.splits.items():
        existing = next((p for p in (path, f"{path}.gz") if (data_dir / p).is_file()), None)
        if existing is None:
            missing.append(path)
        else:
            paths[split] = existing
    if paths and missing:
        message = f"{missing[0]} is missing in {data_dir}, though {next(iter(paths.values()))} is there"
        raise UserError(f"corpora.{name}: {message}; complete the folder or correct files.splits")
    return paths, missing


@functools.cache
def count_texts(
    name: str, entry: str, files: tuple[tuple[str, str], ...], data_dir: str, view: str = "{}"
) -> SizeConfig | None:
    """Return how many examples local files hold, and about how many tokens; None for files that are large or broken.

    Args: id and entry of the corpus, as JSON; its files below data_dir, each with its sha256; the view, as JSON, which
    cuts each sequence at its longest, but for windows. Words and marks are counted; an encoder parts some words into
    several tokens (PIECES). A broken file is said by `prepare`, with its line.
    """
    corpus, folder = CorpusConfig.model_validate_json(entry), Path(data_dir)
    if sum((folder / file).stat().st_size for file, _ in files) > MOST_BYTES:
        return None
    names, seen = corpus.text_columns, ViewConfig.model_validate_json(view)
    sequences = [[name] for name in names] if seen.pairs == "separate" else [names]
    longest, tokens = float("inf") if seen.stride else seen.max_length, 0.0
    try:
        tables = _read_all(name, corpus, folder, names)
    except UserError:
        return None
    for table in tables.values():
        words = {column: [_words(value) for value in table.columns[column]] for column in names}
        for columns in sequences:
            for counts in zip(*(words[column] for column in columns), strict=True):
                tokens += min(longest, PIECES * sum(counts) + len(columns) + 1)
    return SizeConfig(examples=sum(map(len, tables.values())), tokens=round(tokens))


def _words(value) -> int:
    return len(WORD.findall(" ".join(map(str, value)) if isinstance(value, list) else str(value or "")))


def check_files(name: str, entry: str, files: tuple[str, ...], data_dir: str) -> None:
    """Read local files as `prepare` will, unless they are large; one that is broken or lacks a column is a UserError.

    Args: id and entry of the corpus, as JSON; its files below data_dir.
    """
    corpus, folder = CorpusConfig.model_validate_json(entry), Path(data_dir)
    if sum((folder / file).stat().st_size for file in files) <= MOST_BYTES:
        _read_all(name, corpus, folder, wanted_columns(corpus, corpus.files))


def _read_all(name: str, corpus: CorpusConfig, folder: Path, columns: list[str]) -> dict[str, RowsTable]:
    from thaw.data.readers import read

    assert corpus.files
    paths, _ = _locate_all(name, corpus.files, folder)
    return {split: read(folder / path, of_split(corpus.files, split), columns) for split, path in paths.items()}


def of_split(source: FilesConfig, split: str) -> FilesConfig:
    """Return a source as it holds for one split: whether it has a header, and what marks its rows."""
    headed = source.header if isinstance(source.header, bool) else split in source.header
    marks = {split: source.marks[split]} if split in source.marks else {}
    return source.model_copy(update={"header": headed, "marks": marks})


def wanted_columns(corpus: CorpusConfig, source: SourceConfig | None) -> list[str]:
    """Return the columns that a source must give: texts or words, targets, kept ones, the one to group by.

    The last may be lacking on the Hub and in an embedded file (source None) as long as no split has to be carved.
    """
    wanted = [*corpus.text_columns, *corpus.targets, *corpus.keep]
    carves = source is not None and any(split not in source.splits for split in corpus.carve)
    if corpus.group_by not in GROUPINGS and (carves or isinstance(source, FilesConfig)):
        wanted.append(corpus.group_by)
    return list(dict.fromkeys(wanted))


def load(
    name: str, corpus: CorpusConfig, source: str, files: dict[str, str], data_dir
) -> tuple[dict[str, RowsTable], dict, SourceConfig]:
    """Load all splits of a corpus; return them, a record of the source for the card, and its entry.

    `files` are the sha256 that the plan saw: a file that changed since raises UserError.
    """
    if source == "synthetic":
        assert corpus.synthetic
        record = {"kind": "synthetic", "grammar": corpus.synthetic}
        return _load_synthetic(corpus, corpus.synthetic), record, SourceConfig(splits={})
    if source == "hub":
        return _load_hub(corpus)
    assert corpus.files
    paths, missing = _locate_all(name, corpus.files, Path(data_dir))
    for path in [*missing, *sorted(set(paths.values()))]:
        if path in missing or file_sha256(Path(data_dir) / path) != files.get(path):
            raise UserError(f"corpora.{name}: {Path(data_dir) / path} is not the file that was planned with; run again")
    tables = _read_all(name, corpus, Path(data_dir), wanted_columns(corpus, corpus.files))
    return tables, {"kind": "files", "files": files}, corpus.files


def _load_synthetic(corpus: CorpusConfig, name: str) -> dict[str, RowsTable]:
    """Read an embedded file, whose lines name their split and whose columns have our names."""
    from thaw.data.readers import json_lines

    lines = [line for _, line in json_lines(EMBEDDED / f"{name}.jsonl", "utf-8")]
    tables = {}
    for split in dict.fromkeys(line["split"] for line in lines):
        rows = [line for line in lines if line["split"] == split]
        wanted = [*wanted_columns(corpus, None), *([corpus.group_by] if corpus.group_by in rows[0] else [])]
        columns = {column: [row[column] for row in rows] for column in wanted}
        tables[split] = RowsTable(f"{name} {split}", columns, list(range(1, len(rows) + 1)), "row")
    return tables


def _load_hub(corpus: CorpusConfig) -> tuple[dict[str, RowsTable], dict, HubConfig]:
    """Load a Hub data set by `datasets`, at the commit that its revision names now; the first copy that can be had.

    Without network the copy in the local cache serves, and the card says that no commit was resolved.
    """
    mistakes = []
    for hub in corpus.on_hub:
        try:
            commit = _resolve(hub)
            tables = {split: _load_split(hub, theirs, commit, corpus) for split, theirs in hub.splits.items()}
        except UserError as error:
            mistakes.append(str(error))
            continue
        for mistake in mistakes:
            log(f"{mistake}; {hub.id} was taken instead")
        record = {"kind": "hub", "id": hub.id, "config": hub.config, "asked": hub.revision, "revision": commit}
        return tables, record, hub
    raise UserError("; ".join(mistakes))


def _resolve(hub: HubConfig) -> str | None:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        return HfApi().dataset_info(hub.id, revision=hub.revision, timeout=20).sha
    except RepositoryNotFoundError as error:
        raise UserError(f"hub: data set '{hub.id}' not found or private; check the id, or set HF_TOKEN") from error
    except RevisionNotFoundError as error:
        raise UserError(f"hub: data set '{hub.id}' has no revision {hub.revision}; {NEW_REVISION}") from error
    except Exception:  # no network, offline mode, a local folder: loading says what is wrong, if anything is
        return None


def _load_split(hub: HubConfig, theirs: str, commit: str | None, corpus: CorpusConfig) -> RowsTable:
    """Load one split; class numbers become the names that the data set gives them."""
    from datasets import load_dataset

    name = f"{hub.id} {theirs}"
    try:
        data = load_dataset(hub.id, hub.config, split=theirs, revision=commit or hub.revision)
    except Exception as error:  # of many kinds, from several libraries
        if "script" in str(error):
            message = f"is made by a program, which Thaw does not run; try revision: {SCRIPT_BRANCH}"
            raise UserError(f"hub: {name} {message}") from error
        if "gated" in str(error):
            terms = f"accept its terms at https://huggingface.co/datasets/{hub.id}, then set HF_TOKEN"
            raise UserError(f"hub: data set '{hub.id}' is gated; {terms}") from error
        reason = str(error).partition("\n")[0][:200]
        raise UserError(f"hub: {name} could not be loaded ({reason}); check id, config, splits, network") from error
    return convert(data, name, hub, wanted_columns(corpus, hub))


def convert(data, name: str, hub: HubConfig, wanted: list[str]) -> RowsTable:
    """Turn a `datasets.Dataset` into a Table: class numbers become names, -1 (withheld) None.

    A column `arcs` that it lacks is made of `head` and `deprel`, as CoNLL-U has them. What CoNLL-U counts as no word,
    multiword ranges (1-2) and empty nodes (1.1), has no head and is passed over in all columns.
    """
    names, columns, values = data.column_names, columns_of(hub, wanted), {}
    is_tree = {"head", "deprel"} <= set(names) and hasattr(data.features["head"], "feature")
    kept = [[str(head) not in NO_HEAD for head in heads] for heads in data["head"]] if is_tree else []

    def values_of(theirs, ours: str) -> list:
        source = names[find_position(theirs, names, f"hub: {name}", ours)]
        found = named_values(data[source], data.features[source])
        return [_of_words(value, words) for value, words in zip(found, kept, strict=True)] if is_tree else found

    for ours, theirs in parts(columns).items():
        if theirs == ARCS and theirs not in names:
            trees = zip(values_of("head", ARCS), values_of("deprel", ARCS), strict=True)
            values[ours] = [
                arcs(_heads(heads, f"hub: {name}: row {row}"), relations)
                for row, (heads, relations) in enumerate(trees, 1)
            ]
        else:
            values[ours] = values_of(theirs, ours)
    return RowsTable(f"hub: {name}", join(values, columns, hub.indicators), list(range(1, len(data) + 1)), "row")


def _of_words(value, kept: list[bool]):
    """Return a row's list without what belongs to no word; what is no list of its words stays as it is."""
    return list(compress(value, kept)) if isinstance(value, list) and len(value) == len(kept) else value


def _heads(heads: list, place: str) -> list[int]:
    """Return the position of each word's head, from 0; -1 for the root's. Raises UserError for one that is no word."""
    for head in heads:
        if not str(head).isdecimal() or int(head) > len(heads):
            raise UserError(f"{place}: column 'head': {head!r} is no word; the sentence has 1 to {len(heads)}, and 0")
    return [int(head) - 1 for head in heads]


def named_values(values, feature) -> list:
    """Return plain values, with names for the numbers of a feature that is a class or a list of classes."""
    inner = getattr(feature, "feature", feature)
    names = getattr(inner, "names", None)
    if names is None:
        return list(values)

    def name(value):
        return names[value] if value is not None and 0 <= value < len(names) else None

    return [[name(v) for v in value] if inner is not feature else name(value) for value in values]
