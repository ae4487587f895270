"""Plain words: a table of words that are not used, each with what to write instead, over code, settings and documents.

The words are private ones where the field or plain technical English has its own. Names are those of variables,
arguments, functions, classes and attributes; prose is docstrings, comments, messages, settings and documents. What a
test shows reads `file:line: word -> what to write instead`.
"""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

from thaw.core.home import PLUGINS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "scripts" / "thaw"

# In names, by their parts: `told_apart` has two of them, `foundation` none.
NAMES = {
    "anew": "again, new",
    "apart": "separate, bi_encoder, distinct",
    "barred": "forbidden",
    "beside": "what the thing is: extra, comparison, baseline",
    "dice": "rng",
    "doubt": "sanity_flags",
    "doubts": "sanity_flags",
    "due": "expected, missing",
    "found": "what was found: path, entries, models",
    "hopeless": "pruned",
    "mend": "fix, repair",
    "mended": "fixed, repaired",
    "pen": "sampler",
    "settle": "freeze, decide",
    "settled": "decided, undecided",
    "toss": "bernoulli",
    "told": "text, lines, rows",
}

FILES = "in|at|on|below|under|above|behind|within|inside|here|there|where|nowhere|first|last|near"  # after stands, lies

# In prose: regular expressions, whole words, in any case.
PROSE = {
    r"told|tells?(?! whether| from)": "says, shows, distinguishes, predicts",
    r"beside": "next to, with, in addition to, compared with",
    r"apart(?! from)": "separately, as a bi-encoder",
    r"doubts?|doubted": "warnings",
    r"(?:run.s|model.s|head.s) answers?|answers of (?:a |the |several )?(?:run|model)s?": "predictions",
    r"further (?:test )?(?:corpus|corpora|tests?)": "transfer sets",
    r"settle[sd]?": "decide, resolve",
    r"hopeless": "pruned, clearly worse",
    r"anew": "again, re-initialised",
    r"at hand": "available",
    r"by heart": "memorises",
    r"mend(?:s|ed|ing)?": "fix",
    r"(?:is|are|was|were) due(?! to)|due here|due next": "expected, needed",
    r"parted": "separated by",
    rf"(?:stands?|stood) (?:{FILES}|for|beside|level|alone|behind)": "is, is in, represents",
    r"stands|stood": "is, represents",
    rf"(?:lies?|lay) (?:{FILES}|beside|between|to|far)": "is, is in",
    r"lies": "is, is in",
    r"of one's own": "custom, your own",
    r"laid over": "applied after",
    r"dearer": "more expensive",
    r"unless stated": "by default, unless you say otherwise",
    r"trained numbers": "trainable parameters",
    r"at a loss|left the finite numbers|in peace": "say it literally",
}
WRITTEN = {re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE): instead for words, instead in PROSE.items()}

# Keys that specs and results store, hence their names; as strings that are nothing else they are no prose.
STORED = {
    "apart": "the key of a feature store's card, and of the spec of a store, for pairs that are encoded separately",
    "beside": "the key of an output's spec for results that no run of the experiment made",
    "settled": "a key of the record of advice",
    "doubts": "a key of the record of a run",
    "hopeless": "the key of pruned cells in budget.json of older versions",
    "told": "a column of layers.csv of online coding: examples whose labels were known",
}

# Texts that are data, on which finished results depend: synthetic corpora, and what warms up the state of an ELMo.
DATA = {PACKAGE / "data" / "grammar", PLUGINS / "elmo.py"}

PACKAGES = sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__")
CODE = {f"thaw/{name}": sorted((PACKAGE / name).rglob("*.py")) for name in PACKAGES}
CODE["plugins"] = sorted(PLUGINS.glob("*.py"))
CODE["scripts"] = [*sorted((ROOT / "scripts").glob("*.py")), *sorted(PACKAGE.glob("*.py"))]
TEXTS = {
    "workflow": [
        *sorted((ROOT / "workflow").rglob("*.smk")),
        *sorted((ROOT / "workflow").rglob("*.yaml")),
        ROOT / "Snakefile",
        ROOT / "Makefile",
    ],
    "config": sorted((ROOT / "config").rglob("*.yaml")),
    "docs": sorted((ROOT / "docs").rglob("*.md")),
    "README": [*sorted(ROOT.glob("*.md")), ROOT / "config" / "README.md"],
    "forms": sorted((ROOT / ".github").rglob("*.yml")),
    "templates": sorted(PACKAGE.rglob("*.j2")),
}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def names(tree: ast.Module):
    """Yield each (name, line) that code gives or uses, but for what an import gets from elsewhere."""
    for node in ast.walk(tree):
        for key in ("id", "arg", "attr", "name"):
            name = getattr(node, key, None)
            if isinstance(name, str) and not isinstance(node, ast.alias):
                yield name, node.lineno


def parts(name: str) -> set[str]:
    """Return the words of a name; an exception of the standard library's, as FileNotFoundError, has none."""
    if name.endswith("Error"):
        return set()
    return set(re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().split("_"))


def prose_of_code(path: Path):
    """Yield each (text, line) of docstrings, comments and strings, but for stored keys."""
    tree = parsed(path)
    docstrings = {id(node.body[0].value) for node in ast.walk(tree) if has_docstring(node)}
    data = any(place in (path, *path.parents) for place in DATA)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        if id(node) in docstrings or not (data or node.value in STORED):
            yield " ".join(node.value.split()), node.lineno  # in one line, so that no phrase hides in a break
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.string, token.start[0]


def has_docstring(node: ast.AST) -> bool:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None


def prose_of_text(path: Path):
    """Yield each (text, line) of a document or settings file; a key of YAML is a stored name, no prose."""
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        yield text if path.suffix == ".md" else re.sub(r"^\s*[\w-]+:(?=\s|$)", "", text), line


def worded(path: Path, texts) -> list[str]:
    """Return `file:line: word -> what to write instead` for each word of the table, but for those in code marks."""
    texts = [(re.sub(r"`[^`]*`", "", text), line) for text, line in texts]
    return [
        f"{path.relative_to(ROOT)}:{line}: {match.group()} -> {instead}"
        for text, line in texts
        for expression, instead in WRITTEN.items()
        for match in expression.finditer(text)
    ]


@pytest.mark.parametrize("area", CODE)
def test_names_of_code_are_plain(area):
    wrong = {
        f"{path.relative_to(ROOT)}:{line}: {name} -> {NAMES[part]}"
        for path in CODE[area]
        for name, line in names(parsed(path))
        for part in parts(name) & set(NAMES)
    }
    assert sorted(wrong) == []


@pytest.mark.parametrize("area", CODE)
def test_docstrings_comments_and_messages_are_plain(area):
    wrong = {line for path in CODE[area] for line in worded(path, prose_of_code(path))}
    assert sorted(wrong) == []


@pytest.mark.parametrize("area", TEXTS)
def test_settings_and_documents_are_plain(area):
    wrong = {line for path in TEXTS[area] for line in worded(path, prose_of_text(path))}
    assert sorted(wrong) == []


def test_every_word_of_the_tables_would_be_seen(tmp_path):
    """The tests above pass on an empty folder too; so each word is tried in a place of its own."""
    assert parts("told_apart") & set(NAMES) == {"told", "apart"}
    assert parts("DoubtsFrame") & set(NAMES) == {"doubts"}
    assert not parts("foundation") & set(NAMES)
    assert not parts("FileNotFoundError") & set(NAMES)
    code = ROOT / "scripts" / "thaw" / "core" / "files.py"
    said = [
        "the answers of a run",
        "further test corpora",
        "a file that lies below it",
        "the key is due here",
        "texts read apart,",
        "Beside it",
        "nothing is told",
    ]
    assert [len(worded(code, [(text, 1)])) >= 1 for text in said] == [True] * len(said)
    assert worded(code, [("apart from that, a stand-in of the runs' own is due to a bug", 1)]) == []
    source = tmp_path / "one.py"
    source.write_text('"""It stands here."""\nrow["beside"] = "beside"  # done anew\nprint(f"{row} at hand")\n')
    assert [text for text, _ in prose_of_code(source)] == ["It stands here.", "at hand", "# done anew"]
