"""The architecture as tests: what imports what, how long things may be, what must never occur.

Each test collects what breaks its rule and shows it as `file: what`; an empty list passes.
"""

import ast
import functools
import graphlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import code_digests
from code_digests import PACKAGE, RECORD, closure, imports, path_of, sources, step_digest
from thaw.core import layout
from thaw.core.files import read_json
from thaw.core.home import PLUGINS
from thaw.core.steps import STEPS

ROOT = Path(__file__).parents[1]
SCRIPTS = [*sorted((ROOT / "scripts").rglob("*.py")), *sorted(PLUGINS.glob("*.py"))]
WORKFLOW = [*sorted((ROOT / "workflow").rglob("*.smk")), ROOT / "Snakefile"]
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
) + [f"thaw.papers.{path.stem}" for path in sorted(PLUGINS.glob("*.py"))]

# The layers, from below. A package may use what is in lower layers and its own modules, never a neighbour's.
LAYERS = [
    {"core"},
    {"declarations"},
    {"schema"},
    {"data", "encoders", "compute_cost"},
    {"heads", "features", "adaptation", "evaluation"},
    {"statistics"},
    {"decision"},
    {"training"},
    {"words"},
    {"probes", "outputs", "exporting"},
    {"merging"},
    {"steps"},
]
LAYER_OF = {package: layer for layer, packages in enumerate(LAYERS) for package in packages}

# A batch is the type in which features hand examples to heads; a head cannot be written without its name.
EXCEPTIONS = {("heads", "thaw.features.batch")}

# The plan is beside the layers: no step knows of it, and of the packages above schema it reads light modules alone.
PLANNING = {"planning"}
READ_BY_PLANNING = {"core", "declarations", "schema"}
PLANNING_KNOWS = {
    "thaw.adaptation.selectors",
    "thaw.adaptation.stages",
    "thaw.data.edges",
    "thaw.data.sources",
    "thaw.encoders.catalogue_draft",
    "thaw.encoders.weight_sources",
}

# Plug-ins of single papers read everything; declarations name what they have, and nothing else knows of them.
PAPERS = {"papers"}

# For notebooks: reads what steps wrote, runs none, and nothing knows of it.
API = {"api"}

# The command line reads everything, and nothing knows of it.
CLI = {"cli"}

MODULES_OF_STEPS = {path.stem for path in (PACKAGE / "steps").glob("*.py")} - {"__init__", "__main__"}
HEAVY = (
    "torch",
    "pandas",
    "pyarrow",
    "transformers",
    "peft",
    "datasets",
    "sklearn",
    "scipy",
    "matplotlib",
    "seaborn",
)
WITHOUT_STEP = {"free"}  # a rule that deletes files
NETWORK = {"datasets", "huggingface_hub", "requests", "urllib", "httpx", "http", "socket"}
WITH_NETWORK = {"prepare", "fetch"}


def package_of(module: str) -> str:
    """Name the package of a module: heads for thaw.heads.linear, training for thaw.training, api for thaw itself."""
    return module.split(".")[1] if "." in module else "api"


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def links() -> list[tuple[str, str]]:
    """Return each (module, module that it imports) of the package."""
    return [(module, other) for module in MODULES for other in sorted(imports(module) - {"thaw", module})]


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """Return the syntax tree of each file of scripts/."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SCRIPTS}


@functools.cache
def nodes() -> list[tuple[Path, ast.AST]]:
    """Return each (path, syntax node) of scripts/."""
    return [(path, node) for path, tree in trees().items() for node in ast.walk(tree)]


def test_every_module_has_its_package():
    packages = {package_of(module) for module in MODULES if module != "thaw"}
    assert packages == set(LAYER_OF) | PLANNING | PAPERS | API | CLI


def test_no_two_modules_and_no_two_classes_share_a_name():
    """But for registries, and steps, which have the name of their rule; a package may be called as a module is."""
    names, classes = {}, {}
    for module in MODULES:
        if module.count(".") > 1 and path_of(module).name != "__init__.py":
            names.setdefault(module.rpartition(".")[2], []).append(module)
        for node in trees()[path_of(module)].body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes.setdefault(node.name, []).append(module)
    names.pop("registry")
    assert [modules for modules in [*names.values(), *classes.values()] if len(modules) > 1] == []


def test_nothing_knows_of_the_command_line():
    wrong = [pair for pair in links() if package_of(pair[1]) in CLI and package_of(pair[0]) not in CLI]
    assert wrong == []


def test_the_package_imports_no_plugin_of_papers():
    found = [(path, node) for path, node in nodes() if isinstance(node, ast.Import | ast.ImportFrom)]
    found = [(path, node) for path, node in found if "thaw.papers" in ast.unparse(node)]
    assert found and [f"{shown(path)}:{node.lineno}" for path, node in found if PACKAGE in path.parents] == []


def test_nothing_knows_of_the_interface_for_notebooks_which_runs_no_step():
    wrong = [
        f"{module} imports {other}"
        for module, other in links()
        if package_of(other) in API and package_of(module) not in API | CLI
    ]
    unread = PLANNING | {"steps", "training"}
    wrong += [
        f"{module} imports {other}"
        for module, other in links()
        if package_of(module) in API and package_of(other) in unread
    ]
    assert wrong == []


def test_imports_run_downwards():
    wrong = [
        f"{module} imports {other}"
        for module, other in links()
        if package_of(module) in LAYER_OF
        and package_of(other) not in {package_of(module), *PAPERS}
        and (package_of(module), other) not in EXCEPTIONS
        and other.count(".") > 1
        and not LAYER_OF.get(package_of(other), len(LAYERS)) < LAYER_OF[package_of(module)]
    ]
    assert wrong == []


def test_the_page_of_the_structure_has_these_layers(home):
    text = (home / "docs/architecture.md").read_text().partition("## What may import what")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert [set(re.findall(r"`(\w+)`", cell)) for cell in cells] == [*LAYERS, PLANNING, PAPERS, API, CLI]


def test_a_declaration_loads_only_from_the_package_of_its_name():
    """What it names is followed from where `.load()` is called, and there imports must run downwards."""
    named = [(module, source) for module in MODULES for source in sources(module)]
    assert len(named) > 50 and all(path_of(source) for _, source in named)
    wrong = [pair for pair in named if {pair[0].rpartition(".")[2], *PAPERS}.isdisjoint(pair[1].split(".")[1:-1])]
    assert wrong == []


def test_the_plan_knows_only_what_is_light():
    wrong = [
        f"{module} imports {other}"
        for module, other in links()
        if package_of(module) in PLANNING and package_of(other) not in PLANNING | READ_BY_PLANNING
        if other not in PLANNING_KNOWS and other.count(".") > 1
    ]
    assert wrong == []


def test_no_module_leads_back_to_itself():
    graph = {module: {other for first, other in links() if first == module} for module in MODULES}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, which names the cycle


def test_planning_loads_no_heavy_library():
    light = [m for m in MODULES if package_of(m + ".") in READ_BY_PLANNING | PLANNING] + sorted(PLANNING_KNOWS)
    code = f"import sys, {', '.join(light)}; print(*(name for name in {HEAVY} if name in sys.modules))"
    path = {"PYTHONPATH": str(PACKAGE.parent)}
    result = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True)
    assert (result.stdout.strip(), result.stderr) == ("", "")


def test_paths_of_results_are_written_and_read_in_one_place():
    """Templates are those of core/layout.py; only it and planning/jobs.py, built on it, take a path to pieces.

    A folder right below results is named nowhere else, as a text or as a part of a path; nor is a seed's folder.
    """
    rooms = "|".join(layout.top_folders(tuple(layout.PLACES)))
    known = {PACKAGE / "core/layout.py", PACKAGE / "planning/jobs.py"}
    written = re.compile(rf"(^|[\s/{{}}])({rooms})/[<{{*a-z]|\bseed{{|(^|/)seed$")
    wrong = []
    for path, node in nodes():
        if path in known:
            continue
        if _is_part_of_path(node, rooms.split("|")) or (
            isinstance(node, ast.JoinedStr) and written.search(_text(node))
        ):
            wrong.append(f"{shown(path)}:{node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _READS:
            texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if any(written.search(text) for text in texts):
                wrong.append(f"{shown(path)}:{node.lineno}: {ast.unparse(node)}")
        match node:
            case ast.Subscript(value=ast.Attribute(attr="parts"), slice=ast.Constant() | ast.Slice()):
                wrong.append(f"{shown(path)}:{node.lineno}: {ast.unparse(node)}")
            case ast.Subscript(value=ast.Call(func=ast.Attribute(attr="split"), args=[ast.Constant(value="/")])):
                wrong.append(f"{shown(path)}:{node.lineno}: {ast.unparse(node)}")
    assert wrong == []


_READS = {"removeprefix", "removesuffix", "glob", "rglob", "startswith", "split", "partition", "rpartition"}


def _text(node: ast.JoinedStr) -> str:
    """Return an f-string with {} in the place of its values."""
    return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)


def _is_part_of_path(node: ast.AST, rooms: list[str]) -> bool:
    """Tell whether a folder of results is joined to a path."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        parts = [node.left, node.right]
    else:
        parts = node.args if isinstance(node, ast.Call) and ast.unparse(node.func) == "Path" else []
    texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return any(text.partition("/")[0] in rooms for text in texts)


def test_rules_declare_the_paths_that_the_layout_has():
    """A rule writes its outputs and its log with wildcards, for people who read it; both are those of the layout."""
    text = "\n".join(path.read_text() for path in WORKFLOW)
    text = text.replace("{{", "{").replace("}}", "}").replace("{OUTPUTS}", "<results>/outputs/{experiment}")
    text = text.replace("{RUN}", "<results>/" + layout.PLACES["fit_heads"].key)
    per_plan = {"features", "teach"}  # one rule a store or teacher, whose paths are the plan's
    files = {step: place.file for step, place in layout.PLACES.items() if step not in per_plan}
    assert {step: file for step, file in files.items() if f"<results>/{file}" not in text} == {}
    logs = {step: layout.log(step, {name: f"{{{name}}}" for name in _NAMES}) for step in files}
    assert {step: log for step, log in logs.items() if f"<logs>/{log}" not in text} == {}


_NAMES = {name for place in layout.PLACES.values() for name in re.findall(r"{(\w+)}", place.file)}


def test_only_prepare_and_fetch_reach_for_the_network():
    wrong = []
    reach = {}
    for path, node in nodes():
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        reach.setdefault(path, set()).update(
            {name.partition(".")[0] for name in names if name != "urllib.parse"} & NETWORK
        )
    for step in STEPS.keys() - WITH_NETWORK:
        for module in closure(f"thaw.steps.{step}"):
            wrong += [f"{step} leads to {module}, which imports {name}" for name in reach[path_of(module)]]
    assert sorted(wrong) == []


def test_each_rule_has_a_step_a_version_and_their_name():
    rules = "\n".join(path.read_text() for path in WORKFLOW[:-1])
    names = re.findall(r"^ *rule (\w+):", rules, re.MULTILINE)
    run = re.findall(r"python -m thaw\.steps (\w+)", rules)
    assert sorted(set(names) - WITHOUT_STEP) == sorted(run) == sorted(STEPS) == sorted(MODULES_OF_STEPS)


def test_each_step_reports_a_users_mistake_in_one_line():
    assert [step for step in STEPS if "run_step(main)" not in path_of(f"thaw.steps.{step}").read_text()] == []


def test_modules_and_classes_say_what_they_are():
    wrong = [f"{shown(path)}: module" for path, tree in trees().items() if not ast.get_docstring(tree)]
    for path, node in nodes():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not ast.get_docstring(node):
            wrong.append(f"{shown(path)}:{node.lineno} {node.name}")
    assert wrong == []


def test_functions_have_at_most_60_lines():
    wrong = [
        f"{shown(path)}: {node.name} has {length}"
        for path, node in nodes()
        if isinstance(node, ast.FunctionDef) and (length := node.end_lineno - node.lineno + 1) > 60
    ]
    assert wrong == []


def test_files_have_at_most_500_lines():
    lengths = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in [*SCRIPTS, *WORKFLOW]}
    assert {path: length for path, length in lengths.items() if length > 500} == {}


def test_nothing_runs_code_that_came_with_data():
    """No pickle in any form, no YAML that builds objects, no code from a model's repository, no eval.

    Declarations alone load by name, what they name themselves, and the fork server the steps and their libraries.
    """
    unsafe = [(path, node) for path, node in nodes() if _is_unsafe(node)]
    by_name = {"resolve_name(self.source)", "importlib.import_module(name)", "importlib.import_module(module)"}
    loaders = [path for path, node in unsafe if ast.unparse(node) in by_name]
    files = ("declarations/lazy_import.py", "core/fork_client.py", "core/fork_server.py")
    assert set(loaders) == {PACKAGE / file for file in files}
    wrong = [f"{shown(path)}:{node.lineno}: {ast.unparse(node)}" for path, node in unsafe if path not in loaders]
    assert wrong == []


_PICKLES = {"cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
_UNSAFE = {"eval", "exec", "compile", "__import__", "yaml.load", "yaml.unsafe_load", "yaml.full_load"}
_UNSAFE |= {"importlib.import_module", "resolve_name", "pkgutil.resolve_name", "pandas.read_pickle", "pd.read_pickle"}


def _is_unsafe(node: ast.AST) -> bool:
    """Tell whether a piece of code may run what it reads. Of pickle the name of its error is all that may be used."""
    match node:
        case ast.Import(names=names):
            return any(alias.name in _PICKLES for alias in names)
        case ast.ImportFrom(module=module):
            return module in {"pickle", *_PICKLES}
        case ast.Attribute(value=ast.Name(id="pickle"), attr=name):
            return name != "UnpicklingError"
        case ast.Call():
            return _may_run_what_it_reads(node)
    return False


def _may_run_what_it_reads(call: ast.Call) -> bool:
    """Tell whether a call is of an unsafe function, or of a safe one without its guard."""
    settings = {word.arg: ast.unparse(word.value) for word in call.keywords}
    name = ast.unparse(call.func)
    return (
        name in _UNSAFE
        or (name == "torch.load" and settings.get("weights_only") != "True")
        or settings.get("trust_remote_code", "False") != "False"
        or settings.get("allow_pickle", "False") != "False"
    )


def test_no_path_of_anybodys_machine_is_written_down():
    rooms = ("benchmarks", "scripts", "workflow", "config", "quality", "tests", "docs", ".ci", ".github")
    files = [path for name in rooms for path in (ROOT / name).rglob("*") if path.is_file()]
    files += [path for path in ROOT.glob("*") if path.is_file() and path.name != ".git"]
    private = re.compile(r"(?<![\w.])/(home/\w|root/|Users/\w|work/|tmp/\w)")
    texts = {path: path.read_text(encoding="utf-8", errors="ignore") for path in files if path.suffix not in _BINARY}
    assert {shown(path): private.search(text)[0] for path, text in texts.items() if private.search(text)} == {}


_BINARY = {".png", ".pdf", ".pyc", ".parquet"}


# by `make reference` and `make site`
_MADE = {"docs/reference/configuration.md", "docs/reference/command-line.md", "docs/verified.md"}


def test_what_the_documents_point_to_exists():
    missing = []
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("config/*.md")]
    for path in (page for page in pages if shown(page) not in _MADE):
        text = path.read_text(encoding="utf-8")
        links = [path.parent / link for link in re.findall(r"\]\(([^)#:]+)\)", text)]
        named = re.findall(
            r"\b(?:benchmarks|config|docs|quality|scripts|tests|workflow)/[\w/]+\.(?:py|yaml|md|smk)\b", text
        )
        missing += [
            f"{shown(path)}: {target}"
            for target in [*links, *(ROOT / name for name in named)]
            if not target.exists() and target.resolve().relative_to(ROOT).as_posix() not in _MADE
        ]
    assert missing == []


@pytest.mark.parametrize("step", STEPS)
def test_code_of_each_step_is_signed_off(step):
    """Results must not change unnoticed, and no change of code may make all of them again in silence."""
    sign_off = f"run: python scripts/sign_off.py {step}"
    signed = (read_json(RECORD) if RECORD.exists() else {}).get(step)
    assert signed, f"tests/digests.json lacks {step}; when the step is finished, {sign_off}"
    assert signed["version"] == STEPS[step].version, (
        f"VERSION of {step} went from {signed['version']} to {STEPS[step].version}; if you mean to make all its "
        f"results again, {sign_off}"
    )
    assert signed["code"] == step_digest(step), (
        f"code that {step} runs has changed. If results change, raise its VERSION in thaw/core/steps.py, or of one "
        "kind of probe alone its `version` in thaw/declarations/probes.py; "
        f"if they stay as they are, leave it. Then {sign_off}"
    )


def test_what_a_declaration_loads_is_code_of_the_step_that_loads_it():
    heads = {"thaw.heads.linear", "thaw.papers.bcn", "thaw.papers.pairs"}
    assert heads <= set(closure("thaw.steps.train")) and not heads & set(closure("thaw.steps.prepare"))
    assert "thaw.declarations.heads" in closure("thaw.planning.plan")


def test_comments_docstrings_and_layout_are_no_code(tmp_path, monkeypatch):
    (tmp_path / "steps").mkdir()
    step, helper = tmp_path / "steps" / "toy.py", tmp_path / "helper.py"
    monkeypatch.setattr("code_digests.PACKAGE", tmp_path)

    def written(code: str, help_code: str) -> str:
        step.write_text(code)
        helper.write_text(help_code)
        return step_digest("toy")

    first = written("from thaw.helper import f\nprint(f(1))\n", 'def f(x):\n    """Add."""\n    return x + 1\n')
    same = written("# why\nfrom thaw.helper import f\n\n\nprint(f(1))\n", "def f(x):\n    return (x\n     + 1)\n")
    assert same == first
    assert written("from thaw.helper import f\nprint(f(1))\n", "def f(x):\n    return x + 2\n") != first


@pytest.fixture
def changed_steps(tmp_path, monkeypatch):
    """Return a function that changes a copy of the package and returns the steps whose code differs then."""
    copy = tmp_path / "thaw"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = {step: step_digest(step) for step in STEPS}

    def changed(*changes: tuple[str, str, str]) -> set[str]:
        for pattern, old, new in changes:
            files = [path for path in copy.glob(pattern) if old in path.read_text(encoding="utf-8")]
            assert files, f"no {pattern} has {old!r}"
            for path in files:
                path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        with monkeypatch.context() as context:
            context.setattr(code_digests, "PACKAGE", copy)
            now = {step: step_digest(step) for step in STEPS}
        return {step for step in STEPS if now[step] != before[step]}

    return changed


def test_a_reworded_message_changes_the_code_of_no_step(changed_steps):
    told = [(f"{package}/*.py", " the ", " what is called the ") for package in ("schema", "declarations", "words")]
    errors = [
        ("**/*.py", "raise UserError(", "raise UserError('Alas: ' + "),
        ("core/errors.py", "did you", "should you"),
    ]
    assert changed_steps(*told, *errors) == set()


def test_a_changed_number_changes_the_code_of_the_steps_that_compute_it(changed_steps):
    changed = changed_steps(("adaptation/stages.py", "* phase.batch_size", "+ phase.batch_size"))
    assert {"train", "fit_heads"} <= changed


def test_a_new_key_of_a_table_changes_at_most_two_steps(changed_steps):
    key = ("declarations/output_options.py", "(OutputOptions):\n", "(OutputOptions):\n    new: int = 1\n")
    table = ("outputs/tables/recommendation.py", "def build(", "NEW = 1\n\n\ndef build(")
    assert changed_steps(key, table) == {"table"}
