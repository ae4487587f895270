"""The pages of docs/reference and the comments of the catalogues have every key that the models have."""

import re
import subprocess

import pytest

from command_line_page import command_line_page
from reference_pages import models, reference_page, schemas
from thaw.cli.main import COMMANDS
from thaw.schema.by_kind import ByKind
from thaw.schema.catalogue import BLOCKS
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.keys import documented, key_of
from thaw.schema.phases import PhaseConfig
from thaw.schema.reference import Reference
from thaw.schema.strategy import StrategyConfig

PHASES = models(PhaseConfig)


def every_model(entries) -> list:
    """Return the models of a catalogue's block, and all within them."""
    kinds = [*entries.models.values(), entries.plugin] if isinstance(entries, ByKind) else [entries]
    kinds = [kind for kind in kinds if kind]
    return [model for kind in kinds for model in models(kind)]


ALL = {model for _, entries in BLOCKS.values() for model in every_model(entries)}
ALL |= {*models(ExperimentConfig), *models(Reference)}


@pytest.mark.parametrize("model", sorted(ALL, key=lambda model: model.__name__), ids=lambda model: model.__name__)
def test_every_key_has_a_description_in_plain_words(model):
    words = r"unless stated|\banew\b|\btold\b|\bbeside\b|\bapart\b|\bsettle|\bat hand\b|\bstands\b|\bdue\b"
    for name, field in model.model_fields.items():
        assert field.description, f"{name}: say in Field(description=...) what it is for"
        assert not re.search(words, field.description), f"{name}: {field.description}"


def test_nothing_made_from_the_code_is_committed(home):
    made = [*(f"workflow/schemas/{name}" for name in schemas()), "docs/reference/configuration.md"]
    ignored = subprocess.run(["git", "check-ignore", *made], cwd=home, capture_output=True, text=True).stdout.split()
    assert ignored == made
    headers = [path.read_text(encoding="utf-8").partition("\n")[0] for path in home.glob("config/*.yaml")]
    named = {header.rpartition("/")[2] for header in headers if "$schema=" in header}
    assert named and named <= set(schemas())


def test_the_page_of_commands_has_each_with_its_options():
    page = command_line_page()
    assert all(f"\n## thaw {name}\n" in page for name in COMMANDS)
    assert "| `--text COLUMN ...` | the text column, or the two of a pair |" in page


def test_the_page_has_every_key_its_aliases_and_units():
    page = reference_page()
    for _, entries in BLOCKS.values():
        for model in every_model(entries):
            for name in model.model_fields:
                assert f"| `{documented(model, name)}` |" in page
    for name in PhaseConfig.model_fields:
        key = key_of(PhaseConfig, name)
        assert all(f"`{alias}`" in page for alias in key.aliases) and f"({key.unit})" in page + "()"
    assert "| `learning_rate` | number > 0, < 10 or mapping to number > 0, < 10 | `2e-5` | Peak learning rate; " in page
    assert "that of the largest width not above it, else of the least; also written `lr`, `rate` |" in page
    assert "| `patience` | integer ≥ 1 or `null` (epochs) | `null` |" in page
    assert all(f"### {name}\n".lower() in page.lower() for name in re.findall(r"\(#(\w+)\)", page))


OTHERS = sorted({file for file, _ in BLOCKS.values()} - {"strategies.yaml", "outputs.yaml"})


@pytest.mark.parametrize("file", OTHERS)
def test_the_comments_of_a_catalogue_name_every_key(home, file):
    """Keys of a phase are those of strategies.yaml."""
    lines = (home / "config" / file).read_text().splitlines()
    comments = "\n".join(line.partition("#")[2] for line in lines)
    for block, (name, entries) in BLOCKS.items():
        for model in [model for model in every_model(entries) if model not in PHASES] if name == file else []:
            absent = [key for key in model.model_fields if not _named(documented(model, key), comments)]
            assert absent == [], f"{block}: the comments of config/{file} do not say what these are"


def test_the_comment_of_strategies_names_keys_that_exist(home):
    """It explains the usual keys and leaves the rest to the reference: a new key needs no line in it."""
    lines = (home / "config/strategies.yaml").read_text().partition("\nstrategies:")[0].splitlines()
    named = [match[1] for line in lines if (match := re.match(r"#   ((?:\w+, )*\w+) ", line))]
    known = {documented(model, name) for model in [StrategyConfig, *PHASES] for name in model.model_fields} | {"base"}
    explained = {word for words in named for word in words.split(", ")}
    assert len(explained) > 25 and explained - known == set()


def _named(key: str, text: str) -> bool:
    return re.search(rf"\b{key}\b", text) is not None
