"""A digest of each step's code, so that nobody changes what a step computes and forgets to raise its VERSION.

A step's code is its module and all that it imports within the package, directly or not, with the other files
(templates, styles) of the packages among them. Comments, docstrings and layout of code do not count.

A declaration (thaw.declarations) names the code of each kind, as "thaw.heads.mlp:MlpHead". That belongs to the modules
that load it, by `kind.load()`, and not to the many that read what a declaration says.
"""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from thaw.core.digests import digest, file_sha256

PACKAGE = Path(__file__).parents[1]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
SOURCE = re.compile(r"thaw(\.\w+)+:\w+")
RECORD = PACKAGE.parents[1] / "tests" / "digests.json"


def step_digest(step: str) -> str:
    """Return the digest of a step's module and of all modules of the package that it leads to."""
    modules = closure(f"thaw.steps.{step}")
    code = {name: _code(name) for name in modules}
    return digest(code | {path.name: file_sha256(path) for name in modules for path in _files_next_to(name)})


def closure(module: str) -> list[str]:
    """Return a module and all modules of the package that it imports, directly or not, sorted."""
    modules, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in modules:
            modules.add(name)
            waiting.extend(imports(name))
    return sorted(modules)


@cache
def imports(module: str) -> frozenset[str]:
    """Return the modules of the package that a module imports itself, anywhere in its code, or loads."""
    tree = _parse(module)
    names = _imported(module, ast.walk(tree))
    if any(map(_loads, ast.walk(tree))):
        names |= {source for name in names for source in sources(name)}
    return frozenset(names)


def sources(module: str) -> set[str]:
    """Return the modules whose code a declaration names; none of another module."""
    if not module.startswith("thaw.declarations."):
        return set()
    texts = [node.value for node in ast.walk(_parse(module)) if isinstance(node, ast.Constant)]
    return {text.partition(":")[0] for text in texts if isinstance(text, str) and SOURCE.fullmatch(text)}


def _loads(node: ast.AST) -> bool:
    """Return whether a piece of code is a call of `.load()` without arguments."""
    call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load"
    return call and not node.args and not node.keywords


def _imported(module: str, nodes: Iterable[ast.AST]) -> set[str]:
    """Return the modules of the package that the import statements among some nodes of a module name."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{module}, line {node.lineno}: a relative import; write the full name, thaw. ...")
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    # Not the package itself, which holds the version: a release alone changes the code of no step.
    return {name for name in names if name != "thaw" and path_of(name)}


def path_of(module: str) -> Path | None:
    """Return the file of a module of the package, or None where the package has no module of that name."""
    first, *rest = module.split(".")
    if first != "thaw":
        return None
    base = PACKAGE.joinpath(*rest)
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _files_next_to(module: str) -> list[Path]:
    """Return the files of a package that are no Python."""
    path = path_of(module)
    files = sorted(path.parent.iterdir()) if path.name == "__init__.py" else []
    return [file for file in files if file.is_file() and file.suffix != ".py"]


def _parse(module: str) -> ast.Module:
    return ast.parse(path_of(module).read_text(encoding="utf-8"))


@cache
def _code(module: str) -> list:
    """Return the code of a module that counts; most modules belong to several steps."""
    return _bare(_parse(module))


def _bare(node):
    """Return a syntax tree as nested lists, without docstrings and without empty fields.

    Which empty fields a node has differs between Python versions; the rest does not.
    """
    if isinstance(node, list):
        return [_bare(item) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    return [
        type(node).__name__,
        *([name, _bare(value)] for name, value in fields.items() if value not in (None, [])),
    ]
