"""Readers and settings on broken and hostile input: one sentence or a result, never a traceback, no file elsewhere.

A few hundred inputs here; `make fuzz` tries 100,000 (FUZZ=<n> any other number) and prints how many were tried.
"""

import io
import os
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.data.checks import clean, label_names
from thaw.data.readers import read
from thaw.data.sources import of_split, wanted_columns
from thaw.planning.configuration import _experiment, load_plan
from thaw.schema.catalogue import BLOCKS, Catalogue
from thaw.schema.corpora import CorpusConfig
from thaw.schema.yaml_files import read_yaml

HOME = Path(__file__).parents[1]
TARGETS = 5  # tests here that draw their inputs
EACH = int(os.environ.get("FUZZ", 300)) // TARGETS
fuzz = settings(max_examples=EACH, deadline=None, derandomize="FUZZ" not in os.environ, database=None)
fuzz = settings(fuzz, suppress_health_check=list(HealthCheck), phases=[Phase.generate])  # shrinking takes minutes
TRIED: Counter = Counter()


@pytest.fixture(scope="module", autouse=True)
def _count():
    """Print how many inputs were tried, and how many were refused with a sentence."""
    yield
    told = f"{TRIED['tried']} inputs, {TRIED['refused']} refused with a sentence, {TRIED['tracebacks']} tracebacks"
    print(f"\nfuzzed: {told}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@contextmanager
def refused():
    """Let an input be refused with one sentence; whatever else is raised fails the test."""
    TRIED["tried"] += 1
    try:
        yield
    except UserError as error:
        TRIED["refused"] += 1
        assert str(error).strip()
    except Exception:
        TRIED["tracebacks"] += 1
        raise


# --- data files -------------------------------------------------------------------------------------------------------


def parquet_bytes() -> bytes:
    """Return a small Parquet file."""
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a b", "c"], "label": ["x", "y"]}), sink)
    return sink.getvalue()


CONLLU = "# newdoc id = d\n# text = A b\n1\tA\ta\tDET\tDT\t_\t2\tdet\t_\t_\n2\tb\tb\tNOUN\tNN\t_\t0\troot\t_\t_\n\n"
TEXTS = {"texts": ["text"], "targets": {"label": "label"}}
TAGS = {"words": "words", "targets": {"tags": "tags"}}
EDGES = {"words": "form", "targets": {"arcs": "edges"}}
FILES = {  # name: what the corpus is, how its file is read, a sound one
    "csv": (TEXTS, {"format": "csv", "quoting": "double"}, b'text,label\n"a, ""b""",x\nc,y\n'),
    "plain csv": (TEXTS, {"format": "csv", "quoting": "none"}, b"text,label\na b,x\nc,y\n"),
    "tsv": (
        TEXTS,
        {"format": "tsv", "quoting": "none", "header": False, "columns": {"text": 0, "label": 1}},
        b"a\tx\n",
    ),
    "jsonl": (TEXTS, {"format": "jsonl"}, b'{"text": "a", "label": "x"}\n{"text": "b", "label": 1}\n'),
    "scores": ({"texts": ["text"], "targets": {"s": "score"}}, {"format": "jsonl"}, b'{"text": "a", "s": 1.5e3}\n'),
    "label_text": (TEXTS, {"format": "label_text"}, b"x a b c\ny d\n"),
    "parquet": (TEXTS, {"format": "parquet"}, parquet_bytes()),
    "conll": (
        TAGS,
        {"format": "conll", "columns": {"words": 0, "tags": 3}},
        b"-DOCSTART- -X- O O\n\na b c O\nd e f B-X\n",
    ),
    "conllu": (EDGES, {"format": "conllu"}, CONLLU.encode()),
    "tags of conllu": (TAGS, {"format": "conllu", "columns": {"words": "form", "tags": "upos"}}, CONLLU.encode()),
}
PIECES = [b"\n", b"\r", b"\t", b",", b'"', b'""', b"\0", b"\xff", b"\xef\xbb\xbf", b"{", b"}", b"[", b"]", b"null"]
PIECES += [
    b"NaN",
    b"1e999",
    b"-1",
    b"B-",
    b"I-X",
    "\u2028é\U0001f600".encode(),
    b" " * 9,
    b"9" * 30,
    b"[" * 3000,
    b"PAR1",
]
CUT = st.tuples(st.floats(0, 1), st.integers(0, 9), st.sampled_from(PIECES) | st.binary(max_size=4))


def harmed(content, edits) -> bytes:
    """Return a content after some edits: at a place so many units go, and others come."""
    for place, gone, new in edits:
        at = int(place * len(content))
        content = content[:at] + new + content[at + gone :]
    return content


def prepared(path: Path, entry: dict, how: dict) -> None:
    """Read a file as `prepare` does."""
    corpus = CorpusConfig.model_validate(entry | {"files": how | {"splits": {"train": path.name}}})
    table = read(path, of_split(corpus.files, "train"), wanted_columns(corpus, corpus.files))
    label_names({"train": clean(table, corpus, corpus.files)}, {"train": table}, corpus)


@fuzz
@given(st.sampled_from(sorted(FILES)), st.lists(CUT, max_size=6), st.booleans())
def test_data_files(folder, name, edits, packed):
    entry, how, content = FILES[name]
    path = folder / ("data.gz" if packed and name != "parquet" else "data")
    path.write_bytes(harmed(content, edits))
    with refused():
        prepared(path, entry, how)


# --- settings ---------------------------------------------------------------------------------------------------------

SHIPPED = {name: (HOME / "config" / name).read_text() for name in sorted({file for file, _ in BLOCKS.values()})}
SHORT = {name: text[:500] + "\n" for name, text in SHIPPED.items()}
SIGNS = [
    "\n",
    "  ",
    ":",
    " - ",
    "[",
    "]",
    "{",
    "}",
    "&a ",
    "*a",
    "!!python/object/apply:os.system [id]",
    "!!set ",
    "? ",
    "|",
]
SIGNS += [
    "!!binary x",
    "!x ",
    "<<: ",
    "2001-99-99",
    "0o9",
    "1:99:99",
    ".nan",
    "~",
    "yes",
    "'",
    '"',
    "\t",
    "\0",
    "é",
    "#",
    "%",
]
SIGNS += [
    "? [a]\n: b\n",
    "base: [x]\n",
    "tasks:\n- a\n",
    "corpora: 3\n",
    "---\n",
    "!!timestamp x",
    "!!int x",
    "[" * 3000,
]
EDIT = st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(SIGNS) | st.text(max_size=3))


@fuzz
@given(st.sampled_from(sorted(SHORT)), st.lists(EDIT, min_size=1, max_size=5))
def test_catalogues_as_text(folder, name, edits):
    (folder / "mine").mkdir(exist_ok=True)
    for old in (folder / "mine").iterdir():
        old.unlink()
    (folder / "mine" / name).write_bytes(harmed(SHORT[name], edits).encode("utf-8", "surrogatepass"))
    with refused():
        Catalogue([folder / "mine"])


HOSTILE = [
    "..",
    "../x",
    "/etc/x",
    "a/b",
    "a b",
    "ä",
    "x" * 300,
    "",
    ".",
    "a\n",
    "{x}",
    "$(touch x)",
    "-rf",
    "a\0b",
    "~",
    "A",
]
ODD = st.sampled_from([*HOSTILE, None, True, -1, 0, 10**30, 0.5, float("nan"), float("inf")]) | st.text(max_size=5)
ODD = st.recursive(
    ODD, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def replaced(value, path: list[float], new):
    """Return a tree of plain values in which what lies on a path, told by shares, is another value."""
    if not path or not isinstance(value, (dict, list)) or not value:
        return new
    places = list(value) if isinstance(value, dict) else range(len(value))
    place = places[min(int(path[0] * len(places)), len(places) - 1)]
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place] = replaced(value[place], path[1:], new)
    return copy


WHOLE = {name: yaml.safe_load(text) for name, text in SHIPPED.items()}
ENTRIES = [(b, n, v) for name in sorted(WHOLE) for b, es in WHOLE[name].items() for n, v in (es or {}).items()]


@fuzz
@given(
    st.sampled_from(ENTRIES),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
    ODD,
    st.sampled_from(["mine", *HOSTILE]),
)
def test_entries_with_odd_values(folder, entry, path, odd, name):
    block, _, values = entry
    content = {block: {name: replaced({k: v for k, v in values.items() if k != "base"}, path, odd)}}
    (folder / "odd").mkdir(exist_ok=True)
    for old in (folder / "odd").iterdir():
        old.unlink()
    (folder / "odd" / BLOCKS[block][0]).write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    with refused():
        catalogue = Catalogue([folder / "odd"])
        assert name not in HOSTILE, "no id of this form may become a name of a file"
        splits = _splits(catalogue.get(block, name, "test")) if block == "corpora" else []
        assert all(split.replace("_", "a").isalnum() for split in splits)


def _splits(corpus: CorpusConfig) -> list[str]:
    """Return the names of a corpus' splits, which become names of files."""
    sources = [source for source in (corpus.files, corpus.hub) if source]
    return [split for source in sources for split in source.splits] + list(corpus.carve)


DEMO = yaml.safe_load((HOME / "tests/base.yaml").read_text())


@fuzz
@given(st.lists(st.floats(0, 1), min_size=1, max_size=3), ODD)
def test_experiments_with_odd_values(path, odd):
    with refused():
        found = _experiment(replaced(DEMO, path, odd), [])
        assert found.experiment not in HOSTILE


@fuzz
@given(st.binary(max_size=40) | st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace")))
def test_records_and_yaml_of_any_bytes(folder, content):
    path = folder / "any"
    path.write_bytes(content)
    for reads in (read_json, read_yaml):
        with refused():
            reads(path)


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_ids_are_refused_wherever_one_may_stand(word, tmp_path):
    for key in ("experiment", "tasks", "encoders", "strategies", "outputs", "heads", "subsets", "baselines"):
        value = word if key == "experiment" else [word]
        with pytest.raises(UserError):
            load_plan(DEMO | {key: value}, HOME, results=str(tmp_path / "results"))
    assert not list(tmp_path.iterdir()), "a plan writes nothing"


def test_yaml_builds_no_objects(tmp_path):
    (tmp_path / "tasks.yaml").write_text(f"tasks: !!python/object/apply:os.mkdir [{tmp_path}/made]\n")
    with pytest.raises(UserError, match="is not allowed here"):
        Catalogue([tmp_path])
    assert not (tmp_path / "made").exists()


def test_brackets_without_end(tmp_path):
    for name, reads in (("deep.yaml", read_yaml), ("deep.json", read_json)):
        (tmp_path / name).write_text("[" * 3000)
        with pytest.raises(UserError):
            reads(tmp_path / name)


def test_aliases_that_multiply_end_in_time(tmp_path):
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 9))
    (tmp_path / "bomb.yaml").write_text(f"l0: &l0 [x]\n{levels}")
    with pytest.raises(UserError, match="alias"):
        read_yaml(tmp_path / "bomb.yaml")
