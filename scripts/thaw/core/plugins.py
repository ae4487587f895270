"""Plug-ins: heads, selectors, metrics and probes outside of Thaw, named by import path: `my_heads:Gated`.

A part is a name in one Python file, which may import Thaw and whatever is installed. The file is looked for in the
folders of `catalogues:`, then among installed packages. A spec holds no path: under `parts` are the modules that it
uses, each with the sha256 of its file, and a step refuses a file of another one. The plan reads a file without running
it, but for selectors, whose answer it needs; so heads may import torch, and metrics what they like.

Thaw's own plug-ins are the files of config/papers/plugins, the methods that one paper has. Their kinds have plain
names, as `bcn`, and versions instead of hashes. A file declares its kinds at its head, as `HEADS = {...}`, and imports
torch below that: the plan runs no more of it than the declaration.
"""

import ast
import functools
import importlib.util
import sys
import traceback
from dataclasses import dataclass
from importlib.abc import ExecutionLoader
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from thaw.core.digests import file_sha256
from thaw.core.errors import UserError, suggestion
from thaw.core.home import PLUGINS

# How a part of each kind is written, and how many arguments it takes where it is a function.
SIGNATURES = {
    "head": ("class {name}(Head):, with Head from thaw.heads.base", None),
    "selector": ("def {name}(layers): or def {name}(layers, number):", (1, 2)),
    "metric": ("def {name}(gold, predicted):", (2,)),
    "probe": ("def {name}(reading, seed):", (2,)),
}

_folders: list[str] = []
_modules: dict[str, ModuleType] = {}
_tree = functools.cache(ast.parse)


@dataclass(frozen=True)
class Plugin:
    """A plug-in as its file shows it, without being run: its location and its syntax."""

    word: str
    path: Path
    node: ast.stmt

    @property
    def place(self) -> str:
        return f"{self.path}:{self.node.lineno}"

    def stated(self, attribute: str, default=None):
        """Return a plain value that a part states: in a class' body, or as `function.attribute = value` outside it."""
        name = self.word.partition(":")[2]
        outside = [(line, f"{name}.{attribute}") for line in _parsed(self.path).body]
        inside = [(line, attribute) for line in getattr(self.node, "body", [])]
        for line, target in outside + inside:
            if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == target:
                try:
                    return ast.literal_eval(line.value)
                except ValueError as error:
                    raise UserError(
                        f"{self.path}:{line.lineno}: {target}: write it as plain text or numbers"
                    ) from error
        return default


class _Declaration(ExecutionLoader):
    """Runs a file down to a line, and keeps nothing of it among the modules."""

    def __init__(self, path: Path, last: int):
        self.path, self.last = path, last

    def get_filename(self, fullname: str) -> str:
        return str(self.path)

    def get_source(self, fullname: str) -> str:
        return "".join(self.path.read_text(encoding="utf-8").splitlines(keepends=True)[: self.last])


def shipped(name: str) -> dict:
    """Return what Thaw's own plug-ins declare under a name, as HEADS: the declarations by kind."""
    kinds: dict = {}
    for path in sorted(PLUGINS.glob("*.py")):
        last = next((node.end_lineno for node in _parsed(path).body if name in _names(node)), None)
        if last is not None:
            spec = importlib.util.spec_from_loader(f"thaw.papers.{path.stem}", _Declaration(path, last))
            module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
            spec.loader.exec_module(module)  # type: ignore[union-attr]
            kinds |= getattr(module, name)
    return kinds


def is_plugin(word: str) -> bool:
    return ":" in word


def set_folders(folders) -> None:
    """Look for plug-ins in these folders from now on, before installed packages."""
    _folders[:] = map(str, folders)
    _modules.clear()


def verify_plugins(spec: dict, folders) -> None:
    """Load the plug-ins of a step's spec from these folders; a file of another sha256 is a UserError."""
    set_folders(folders)
    for module, expected in spec.get("parts", {}).items():
        path = _file(module)
        if (actual := file_sha256(path)) != expected:
            raise UserError(
                f"{path} is not the file that was planned with (its sha256 begins with {actual[:8]}, "
                f"expected {expected[:8]}); run the workflow again"
            )
        _module(module)


def in_spec(words) -> dict[str, dict[str, str]]:
    """Return what a spec says of the plug-ins among some words: {"parts": {module: sha256}}; without any, nothing."""
    modules = sorted({word.partition(":")[0] for word in words if is_plugin(word)})
    return {"parts": {module: file_sha256(_file(module)) for module in modules}} if modules else {}


def resolve(word: str, registry: dict):
    """Return what a word names: the registry's entry, or the plug-in that it names."""
    return load(word) if is_plugin(word) else registry[word]


def load(word: str):
    """Return a plug-in, its file run once; errors of a function become UserErrors with their line."""
    module, _, name = word.partition(":")
    plugin = getattr(_module(module), name, None)
    if plugin is None:
        raise UserError(f"{_file(module)} has no {name}{suggestion(name, vars(_module(module)))}")
    return plugin if isinstance(plugin, type) else _guarded(plugin, word)


def parse_plugin(word: str) -> Plugin:
    """Return a plug-in as its file shows it; a file or name that is not there is a UserError."""
    module, _, name = word.partition(":")
    path = _file(module)
    named = {given: node for node in _parsed(path).body for given in _names(node)}
    if name not in named:
        raise UserError(f"{path} has no {name}{suggestion(name, named) if named else ''}")
    return Plugin(word, path, named[name])


def check(word: str, kind: str) -> Plugin:
    """Return a plug-in that has the signature of its kind, a key of SIGNATURES; else raise UserError."""
    part = parse_plugin(word)
    shape, counts = SIGNATURES[kind]
    node, form = part.node, shape.format(name=word.partition(":")[2])
    if isinstance(node, ast.ClassDef) and (counts or not node.bases):
        raise UserError(f"{part.place}: a {kind} is written {form}")
    if isinstance(node, ast.FunctionDef) and not (counts and _takes(node, counts)):
        raise UserError(f"{part.place}: a {kind} is written {form}")
    return part


def _file(module: str) -> Path:
    """Return the file of a module, without running any; one that is nowhere is a UserError."""
    if module.endswith(".py"):
        raise UserError(f"{module}: a part is named as it is imported; say {Path(module).stem}:Name, without .py")
    importlib.invalidate_caches()
    first, *rest = module.split(".")
    spec = PathFinder.find_spec(first, _folders) or importlib.util.find_spec(first)
    for name in rest:
        spec = spec and PathFinder.find_spec(name, spec.submodule_search_locations or [])
    if not (spec and spec.has_location and spec.origin and spec.origin.endswith(".py")):
        where = f"in {', '.join(_folders)}" if _folders else "in a folder of catalogues: (there is none)"
        raise UserError(
            f"there is no {module.replace('.', '/')}.py {where}, nor such a module among installed packages"
        )
    return Path(spec.origin)


def _parsed(path: Path) -> ast.Module:
    """Return the syntax of a Python file; broken syntax is a UserError."""
    try:
        return _tree(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{path}:{getattr(error, 'lineno', 1)}: not valid Python ({error})") from error


def _module(name: str) -> ModuleType:
    """Run a part's file as a module, once; whatever it raises is a UserError with its line.

    Python knows it under a name that no other module has, so that my/random.py hides nobody's `random`.
    """
    if name not in _modules:
        path, known = _file(name), f"thaw_part_{name.replace('.', '_')}"
        spec = importlib.util.spec_from_file_location(known, path)
        sys.modules[known] = module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        try:
            spec.loader.exec_module(module)  # type: ignore[union-attr]
        except Exception as error:  # it is the user's code and may raise anything
            raise UserError(said(error, path)) from error
        _modules[name] = module
    return _modules[name]


def _guarded(function, word: str):
    """Return a function whose errors, but for UserErrors, say in one sentence where they were raised."""

    @functools.wraps(function)
    def guarded(*arguments):
        try:
            return function(*arguments)
        except UserError:
            raise
        except Exception as error:  # it is the user's code and may raise anything
            raise UserError(f"{word}: {said(error, _file(word.partition(':')[0]))}") from error

    return guarded


def said(error: Exception, path: Path) -> str:
    """Return `file:line: kind of error: message`, the line being the innermost of that file."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    line = lines[-1] if lines else getattr(error, "lineno", None) or 1
    return f"{path}:{line}: {type(error).__name__}: {error}"


def _names(node: ast.stmt) -> list[str]:
    """Return the names that a statement at the top of a file defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    return [ast.unparse(target) for target in node.targets] if isinstance(node, ast.Assign) else []


def _takes(function: ast.FunctionDef, counts: tuple[int, ...]) -> bool:
    """Return whether a function can be called with one of these numbers of arguments."""
    given = function.args
    most = len(given.posonlyargs) + len(given.args)
    least = most - len(given.defaults)
    needed = None in given.kw_defaults
    return not needed and any(least <= count and (given.vararg or count <= most) for count in counts)
