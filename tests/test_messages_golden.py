"""Messages as users see them, word by word: the mistakes of a first hour, each one sentence at its place.

tests/messages.json has each mistake, by where it is made, with its sentence. For a further one add it with "" there.
After this or a change of words: pytest tests/test_messages_golden.py --update-messages, and read the difference.
"""

import re

import pytest
import yaml

from conftest import HOME, MESSAGES
from thaw.cli.main import main
from thaw.core.errors import UserError
from thaw.planning.configuration import load_plan, read_config
from thaw.schema.catalogue import Catalogue, shipped

EXPERIMENT = """\
experiment: mine
title: mine
catalogues: [my]
tasks: [reviews]
encoders: [minilm]
strategies:
  - linear_probe
  - top_k: [1]
seeds: [1]
outputs: [main_table]
"""
ROWS = [f"film number {i} was {word} and long;{label}" for i in range(20) for word, label in (("good", 1), ("bad", 0))]
CSV = "\n".join(["text;stars", *ROWS, ""])
FILES = "files: {format: csv, splits: {train: reviews.csv}, delimiter: ';'}"
CORPUS = (
    f"corpora:\n  mine: {{texts: [text], targets: {{stars: label}}, carve: {{validation: 0.1, test: 0.2}}, {FILES}}}\n"
)
TASK = "tasks:\n  reviews: {corpus: mine, target: stars, type: classification, metrics: [accuracy]}\n"
OWN = {
    "tasks": CORPUS + TASK,
    "strategies": "strategies:\n  linear_probe:\n    override: true\n    phases: [{train: [head, {top: 1}]}]\n",
}
USUAL = "corpora: {c: {texts: [text], targets: {label: label}, synthetic: acceptability}}"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a task of the user's, of synthetic texts, its experiment and some broken files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my").mkdir()
    task = "{corpus: acceptability, target: label, type: classification, metrics: [accuracy]}"
    (tmp_path / "my/tasks.yaml").write_text(f"tasks:\n  reviews: {task}\n")
    (tmp_path / "mine.yaml").write_text(EXPERIMENT)
    (tmp_path / "half").mkdir()
    (tmp_path / "over.yaml").write_text("title: other\noutputs: [tabel]\n")
    (tmp_path / "reviews.csv").write_text(CSV)
    (tmp_path / "broken.csv").write_text(CSV.replace("1 was good and long;", "1 was good and long"))
    return tmp_path


def message(words: list[str]) -> str:
    """Return what a command that fails says."""
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert isinstance(caught.value.code, str), "a sentence, which exits with 1"
    assert caught.value.code.startswith("error: ")
    return of_ours(caught.value.code.removeprefix("error: "))


def of_ours(sentence: str) -> str:
    """Return a message without this folder, and without the lines of our catalogues, which move."""
    return re.sub(r"(?<![\w/])(config/(?:papers/)?\w+\.yaml):\d+", r"\1", sentence.replace(f"{HOME}/", ""))


@pytest.mark.parametrize("case", MESSAGES["an experiment"])
def test_a_mistake_in_an_experiment_has_the_line_of_the_users_file(place, recorded, case):
    old, new = case.split(" -> ")
    assert old in EXPERIMENT
    (place / "mine.yaml").write_text(EXPERIMENT.replace(old, new, 1))
    (place / "half/encoders.yaml").write_text("encoders:\n  nn: {hub: a/b}\n")
    recorded("an experiment", case, message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("case", MESSAGES["a change of a catalogue"])
def test_a_mistake_in_a_catalogue_has_its_line(place, recorded, case):
    name, old, new = re.fullmatch(r"(\w+)\.yaml: (.*) -> (.*)", case).groups()
    assert old in OWN[name]
    (place / f"my/{name}.yaml").write_text(OWN[name].replace(old, new, 1))
    (place / "mine.yaml").write_text(f"{EXPERIMENT}data_dir: .\n")
    recorded("a change of a catalogue", case, message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("case", MESSAGES["a head"])
def test_a_head_that_cannot_be_has_its_line(place, recorded, case):
    head, strategy = case.split(" <- ")
    (place / "my/heads.yaml").write_text(f"heads:\n  mine: {head}\n")
    text = EXPERIMENT.replace("linear_probe\n  - top_k: [1]", strategy).replace("title:", "heads: [mine]\ntitle:")
    (place / "mine.yaml").write_text(text)
    recorded("a head", case, message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("case", MESSAGES["a strategy"])
def test_a_strategy_that_cannot_be_has_its_line(place, recorded, case):
    (place / "my/strategies.yaml").write_text(f"strategies: {{{case}}}\n")
    (place / "mine.yaml").write_text(EXPERIMENT.replace("linear_probe\n  - top_k: [1]", "mine"))
    recorded("a strategy", case, message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("case", MESSAGES["a catalogue"])
def test_a_catalogue_that_cannot_be_has_its_line(place, recorded, case):
    file, text = case.split(" <- ")
    (place / f"half/{file}").write_text(f"{{{text.replace('{CORPUS}', USUAL)}}}\n" if text[0] != "[" else text)
    with pytest.raises(UserError) as caught:
        Catalogue([*shipped(HOME), "half"])
    recorded("a catalogue", case, str(caught.value))


@pytest.mark.parametrize("case", MESSAGES["a plan"])
def test_an_experiment_that_cannot_be_planned_says_why(place, recorded, case):
    wish = yaml.safe_load(case)
    if other := wish.pop("file", ""):
        file, wish = HOME / f"config/experiments/{other}.yaml", {"sources": ["hub"]} | wish
    else:
        file, wish = HOME / "tests/base.yaml", {"strategies": ["linear_probe"], "outputs": ["main_table"]} | wish
    for name in [name for name in wish if name.endswith(".yaml")]:
        wish["catalogues"] = ["own"]
        (place / "own").mkdir()
        (place / "own" / name).write_text(yaml.safe_dump(wish.pop(name)))
    with pytest.raises(UserError) as caught:
        load_plan(read_config([str(file)], wish), HOME)
    recorded("a plan", case, of_ours(str(caught.value)))


@pytest.mark.parametrize("case", MESSAGES["a further pretraining"])
def test_a_further_pretraining_that_cannot_be_has_its_line(place, recorded, case):
    (place / "my/encoders.yaml").write_text(f"further_pretraining:\n  mine: {case}\n")
    (place / "my/strategies.yaml").write_text("strategies: {mine: {base: full, from: mine}}\n")
    (place / "mine.yaml").write_text(EXPERIMENT.replace("linear_probe\n  - top_k: [1]", "mine"))
    recorded("a further pretraining", case, message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("command", MESSAGES["a command"])
def test_a_mistake_on_the_command_line_is_one_sentence(place, recorded, command):
    recorded("a command", command, message(command.split()))


@pytest.mark.parametrize(
    ("command", "sentence"),
    {
        "new tasks reviews.csv": "argument task: invalid choice: 'tasks' (choose from 'task')",
        "plan mine.yaml --strategy-names linear_probe": "unrecognized arguments: --strategy-names linear_probe",
    }.items(),
)
def test_a_wrong_word_is_one_sentence_without_the_list_of_options(place, capsys, command, sentence):
    with pytest.raises(SystemExit) as caught:
        main(command.split())
    assert caught.value.code == 2
    name = command.split()[0]
    assert capsys.readouterr().err == f"error: thaw {name}: {sentence}; thaw {name} --help describes it\n"
