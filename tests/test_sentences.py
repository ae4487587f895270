"""One claim a sentence: no sentence of a page, or of what the package prints, has more than 25 words."""

import ast
import re
from pathlib import Path

import yaml

HOME = Path(__file__).parents[1]
PAGES = [
    *(page for page in sorted((HOME / "docs").rglob("*.md")) if page.stem not in ("command-line", "configuration")),
    *(HOME / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")),
]
MODULES = sorted((HOME / "scripts/thaw").rglob("*.py"))


def long_sentences(text: str) -> list[str]:
    """Return the sentences that are too long; a semicolon ends one too. What is in backticks is a word."""
    parts = re.split(r"[.!?;][)*]*\s+", " ".join(re.sub(r"`[^`]*`", "code", text).split()))
    return [part for part in parts if len(re.findall(r"\S*\w\S*", part)) > 25]


def texts_of_page(page: Path) -> list[str]:
    """Return paragraphs, list entries and cells, without code, comments, headings and addresses of links."""
    text = re.sub(r"```.*?```|<!--.*?-->|^    .*?$|^#.*?$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.split(r"\n\s*\n|\n\s*[-*] |\n\s*\d+\. |\|", re.sub(r"\]\([^)]*\)", "]", text))


def texts_of_module(path: Path) -> list[str]:
    """Return its strings, with X for what an f-string fills in, and the docstrings that --help prints."""
    text = path.read_text()
    tree = ast.parse(text)
    left_out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            printed = "__doc__" in text if isinstance(node, ast.Module) else node.name == "demo"
            left_out |= set() if printed else {node.body[0].value}
        if isinstance(node, ast.JoinedStr):
            left_out |= set(node.values)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
            left_out.add(node.func.value)
    found = []
    for node in (node for node in ast.walk(tree) if node not in left_out):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return [part for text in found for part in re.split(r"\n\s*\n|\n(?=#|thaw )", text)]


IF = re.compile(r"\{%-? if (?:(?!%\}).)*%\}((?:(?!\{%-? (?:if|endif)).)*)\{%-? endif -?%\}", re.DOTALL)


def texts_of_template(path: Path) -> list[str]:
    """Return what stands between its marks, with X for what is filled in, and the longest way of each condition."""
    text = path.read_text()
    for mark, other in (("<<", "{{"), (">>", "}}"), ("<%", "{%"), ("%>", "%}"), ("<#", "{#"), ("#>", "#}")):
        text = text.replace(mark, other) if path.name.endswith(".tex.j2") else text
    text = re.sub(r"\{#.*?#\}|<style.*?</style>|<script.*?</script>", "", text, flags=re.DOTALL)
    text = re.sub(r"\{\{.*?\}\}", "X", text)
    while IF.search(text):
        text = IF.sub(lambda found: max(re.split(r"\{%-? el.*?%\}", found[1]), key=len), text)
    inline = r"</?(?:a|abbr|b|code|em|small|span|strong|sub|sup)\b[^>]*>|\{%.*?%\}"
    return re.split(r"<[/\w][^>]*>|\n\s*\n|\n(?=\\)|\\\\|&", re.sub(inline, "", text))


def texts_in(value) -> list[str]:
    """Return all strings of a YAML file's content."""
    if isinstance(value, dict | list):
        return [text for part in (value.values() if isinstance(value, dict) else value) for text in texts_in(part)]
    return [value] if isinstance(value, str) else []


def test_sentences_of_pages_are_short():
    assert {page.name: found for page in PAGES if (found := sum(map(long_sentences, texts_of_page(page)), []))} == {}


def test_sentences_that_are_printed_are_short():
    config = [(path, texts_in(yaml.safe_load(path.read_text()))) for path in sorted((HOME / "config").rglob("*.yaml"))]
    templates = [(path, texts_of_template(path)) for path in sorted((HOME / "scripts/thaw").rglob("*.j2"))]
    texts = [*((path, texts_of_module(path)) for path in MODULES), *config, *templates]
    assert {path.name: found for path, mine in texts if (found := sum(map(long_sentences, mine), []))} == {}


def test_a_long_sentence_is_found():
    assert long_sentences("Short one. " + "word " * 26) == [("word " * 26).strip()]
    assert long_sentences("They are: " + "word, " * 24)
    assert long_sentences("word " * 25 + "`and code here`") and not long_sentences("word " * 24 + "`code of two words`")
