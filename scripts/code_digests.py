"""A digest of each step's code, so that nobody changes what a step computes and forgets to raise its VERSION.

A step's code is its module and all that it imports within the package, directly or not, with the other files
(templates, styles) of the packages among them. What computes no number does not count: comments, docstrings, layout of
code, the messages of errors, and the modules of SAYING. What matters of settings and declarations is in a step's spec,
and tests/defaults.json holds the defaults, which specs leave out.

A declaration (thaw.declarations) names the code of each kind, as "thaw.heads.crf:CrfHead". That belongs to the modules
that load it, by `kind.load()`, and not to the many that read what a declaration says. A declaration that has Thaw's own
plug-ins among its kinds, `plugins.shipped("HEADS")`, names what their files name.
"""

import ast
import re
from functools import cache
from pathlib import Path

from thaw.core.digests import digest, file_sha256
from thaw.core.home import PACKAGE, PLUGINS

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
SOURCE = re.compile(r"thaw(\.\w+)+:\w+")
# packages and modules that hold settings, declarations and words: what they import is no code of a step either
SAYING = ("thaw.schema", "thaw.declarations", "thaw.words", "thaw.core.errors", "thaw.core.phrases")
RECORD = PACKAGE.parents[1] / "tests" / "digests.json"


def step_digest(step: str) -> str:
    """Return the digest of a step's module and of all modules of the package that it leads to and that compute."""
    modules = computing(f"thaw.steps.{step}")
    code = {name: _code(_text(name)) for name in modules}
    return digest(code | {path.name: file_sha256(path) for name in modules for path in _files_next_to(name)})


def closure(module: str, leaves_out=lambda name: False) -> list[str]:
    """Return a module and all modules of the package that it imports, directly or not, sorted.

    Args: the module; which modules are left out, with what they alone import.
    """
    modules, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in modules and not leaves_out(name):
            modules.add(name)
            waiting.extend(imports(name))
    return sorted(modules)


def computing(module: str) -> list[str]:
    """Return a module and all that it leads to, without what only says something."""
    return closure(module, says)


def says(module: str) -> bool:
    """Return whether a module holds settings, declarations or words, and computes no number."""
    return any(module == name or module.startswith(f"{name}.") for name in SAYING)


def imports(module: str) -> frozenset[str]:
    """Return the modules of the package that a module imports itself, anywhere in its code, or loads."""
    named, loads = _named(module, _text(module))
    # Not the package itself, which holds the version: a release alone changes the code of no step.
    names = {name for name in named if name != "thaw" and path_of(name)}
    return frozenset(names.union(*map(sources, names)) if loads else names)


def sources(module: str) -> frozenset[str]:
    """Return the modules whose code a declaration names; none of another module."""
    return _sources(_text(module)) if module.startswith("thaw.declarations.") else frozenset()


@cache
def _sources(text: str) -> frozenset[str]:
    """Return the modules that the texts within a piece of code name, and the plug-ins that it has among its kinds."""
    tree = ast.parse(text)
    names = {name.partition(":")[0] for name in _texts(tree) if SOURCE.fullmatch(name)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "shipped" in ast.unparse(node.func)]
    declared = {name for call in calls for name in _texts(call)}
    paths = PLUGINS.glob("*.py") if declared else ()
    return frozenset(names | {f"thaw.papers.{path.stem}" for path in paths if declared & _assigned(path)})


def _texts(node: ast.AST) -> set[str]:
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def _assigned(path: Path) -> set[str]:
    """Return the names to which a file assigns at its top."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {ast.unparse(target) for node in body if isinstance(node, ast.Assign) for target in node.targets}


@cache
def _named(module: str, text: str) -> tuple[frozenset[str], bool]:
    """Return what the import statements of a module name, and whether it loads what declarations name."""
    names: set[str] = set()
    nodes = list(ast.walk(ast.parse(text)))
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{module}, line {node.lineno}: a relative import; write the full name, thaw. ...")
            names.add(str(node.module))
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(names), any(map(_loads, nodes))


def _loads(node: ast.AST) -> bool:
    """Return whether a piece of code is a call of `.load()` without arguments."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load"):
        return False
    return not node.args and not node.keywords


def path_of(module: str) -> Path | None:
    """Return the file of a module of the package, or None where the package has no module of that name."""
    first, *rest = module.split(".")
    if first != "thaw":
        return None
    base = PLUGINS.joinpath(*rest[1:]) if rest[:1] == ["papers"] and rest[1:] else PACKAGE.joinpath(*rest)
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _path(module: str) -> Path:
    path = path_of(module)
    assert path, module
    return path


def _files_next_to(module: str) -> list[Path]:
    """Return the files of a package that are no Python."""
    path = _path(module)
    files = sorted(path.parent.iterdir()) if path.name == "__init__.py" else []
    return [file for file in files if file.is_file() and file.suffix != ".py"]


def _text(module: str) -> str:
    return _path(module).read_text(encoding="utf-8")


@cache
def _code(text: str) -> str:
    """Return a digest of the code of a module that counts; most modules belong to several steps."""
    return digest(_bare(ast.parse(text)))


def _bare(node):
    """Return a syntax tree as nested lists, without docstrings, messages of errors and empty fields.

    Which empty fields a node has differs between Python versions; the rest does not.
    """
    if isinstance(node, list):
        return [_bare(item) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Raise):
        error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return ["Raise", _bare(error) if error else []]
    fields = dict(ast.iter_fields(node))
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    return [
        type(node).__name__,
        *([name, _bare(value)] for name, value in fields.items() if value not in (None, [])),
    ]
