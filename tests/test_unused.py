"""Every public name is used by the package, its programs or its workflow, and every entry by an experiment."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from code_digests import SOURCE
from thaw.core.home import PLUGINS
from thaw.schema.experiment import RUN_BASELINES

# Used in a way that no import shows, with the reason.
ALLOWED = {
    r"thaw\.planning\.run_progress\.RunProgress\.emit": "what logging calls of a handler",
    r"thaw\.core\.plugins\._Declaration\.get_\w+": "what importlib calls of a loader",
    r"thaw\.api\.(advised\.advise|resumed\.(resume|Resumed\.whole|States\.collate))": "what a notebook calls",
    r"thaw\.exporting\.modeling_thaw\..*": "what transformers finds by auto_map of an export",
    r"thaw\.papers\.\w+\.[A-Z]+S": "what thaw.core.plugins.shipped looks for",
}

Definition = tuple[str, str]  # module, name


class Uses(ast.NodeVisitor):
    """What one file uses: names of its own module, names of other modules, and attributes of whatever."""

    def __init__(self, module: str):
        """Start with the module's name."""
        self.module, self.inside, self.imported = module, [], {}
        self.names: set[Definition] = set()
        self.attributes: set[str] = set()

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Note each imported name: it may be a module, whose attributes are its names."""
        for alias in node.names:
            self.names.add((node.module, alias.name))
            self.imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def visit_definition(self, node) -> None:
        """Note what a definition uses, but not that it uses itself."""
        self.inside.append(node.name)
        self.generic_visit(node)
        self.inside.pop()

    visit_FunctionDef = visit_ClassDef = visit_definition

    def visit_Name(self, node: ast.Name) -> None:
        """Note a name that is read."""
        if isinstance(node.ctx, ast.Load) and node.id not in self.inside:
            self.names.add((self.module, node.id))

    def visit_Constant(self, node: ast.Constant) -> None:
        """Note what a declaration names, as thaw.heads.linear:MlpHead."""
        if isinstance(node.value, str) and SOURCE.fullmatch(node.value):
            self.names.add(tuple(node.value.split(":")))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Note an attribute, and of which module it is one."""
        self.attributes.add(node.attr)
        if isinstance(node.value, ast.Name) and node.value.id in self.imported:
            self.names.add((self.imported[node.value.id], node.attr))
        self.generic_visit(node)


def module_of(path: Path, scripts: Path) -> str:
    """Return the dotted name of a module."""
    if path.parent == PLUGINS:
        return f"thaw.papers.{path.stem}"
    return ".".join(path.relative_to(scripts).with_suffix("").parts).removesuffix(".__init__")


def definitions(tree: ast.Module) -> list[tuple[str, str | None]]:
    """Return the public functions, classes and constants of a module, and the methods with their class."""
    names = []
    for node in tree.body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        names += [(target.id, None) for target in targets if isinstance(target, ast.Name)]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append((node.name, None))
        if isinstance(node, ast.ClassDef):
            names += [(method.name, node.name) for method in node.body if isinstance(method, ast.FunctionDef)]
    return [(name, of) for name, of in names if not name.startswith("_")]


@pytest.fixture(scope="module")
def used(home) -> tuple[set[Definition], set[str], str]:
    """Return the names of modules and the attributes that scripts/ uses, and the text of the rules."""
    names, attributes = set(), set()
    for path in [*(home / "scripts").rglob("*.py"), *PLUGINS.glob("*.py")]:
        uses = Uses(module_of(path, home / "scripts"))
        uses.visit(ast.parse(path.read_text(encoding="utf-8")))
        names |= uses.names
        attributes |= uses.attributes
    rules = [home / "Snakefile", *(home / "workflow").rglob("*.smk")]
    templates = (home / "scripts").rglob("*.j2")
    return names, attributes, " ".join(path.read_text(encoding="utf-8") for path in [*rules, *templates])


def test_every_public_name_is_used_outside_of_tests(home, used):
    names, attributes, text = used
    unused = []
    for path in [*sorted((home / "scripts/thaw").rglob("*.py")), *sorted(PLUGINS.glob("*.py"))]:
        module = module_of(path, home / "scripts")
        for name, of in definitions(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{module}.{of}.{name}" if of else f"{module}.{name}"
            direct = name in attributes if of else (module, name) in names
            if (
                not direct
                and not re.search(rf"\b{name}\b", text)
                and not any(re.fullmatch(rule, where) for rule in ALLOWED)
            ):
                unused.append(where)
    assert not unused, "\n".join(unused)


@pytest.mark.parametrize("block", ["tasks", "encoders", "heads", "strategies", "probes", "outputs"])
def test_every_entry_of_the_catalogues_is_named_by_an_experiment_or_another_entry(block, home, catalogue):
    texts = [re.sub(r"#.*", "", path.read_text(encoding="utf-8")) for path in (home / "config").rglob("*.yaml")]
    counts = Counter(word for text in texts for word in re.findall(r"[a-z0-9_]+", text))
    fitted = {strategy for _, strategy, _ in RUN_BASELINES.values()} if block == "strategies" else set()
    assert [name for name in catalogue.ids(block) if counts[name] < 2 and name not in fitted] == []
