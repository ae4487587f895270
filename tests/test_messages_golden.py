"""Messages as users see them, word by word: the mistakes of a first hour, each one sentence at its place.

tests/messages.json has them. After a change of words: pytest tests/test_messages_golden.py --update-messages, and read
the difference.
"""

import pytest

from conftest import HOME
from thaw.cli.main import main

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

# what is changed in the experiment: the old and the new text
IN_AN_EXPERIMENT = [
    ("seeds:", "seed:"),
    ("seeds: [1]", "seeds: 3"),
    ("seeds: [1]", "seeds: [1, 1]"),
    ("seeds: [1]", "seeds: [one]"),
    ("title: mine\n", ""),
    ("title: mine", "experiment: mine"),
    ("title: mine", "title: [mine"),
    ("[my]", "[nope]"),
    ("[reviews]", "[review]"),
    ("[reviews]", "[sst2]\nsources: [files]"),
    ("[my]", "[my, half]"),
    ("[reviews]", "reviews"),
    ("minilm", "minilmm"),
    ("minilm", "bert"),
    ("experiment: mine", "experiment: my exp/1"),
    ("minilm", "google/bert-base"),
    ("- linear_probe", "- probe"),
    ("- linear_probe", "- qqqq"),
    ("- linear_probe", "- linear_probe: [1]"),
    ("- top_k: [1]", "- full: {rate: 0.1}"),
    ("[1]\nseeds", "[9]\nseeds"),
    ("main_table", "main_tabel"),
    ("main_table", "comparisons"),
    ("title:", "learning_rate: 0.1\ntitle:"),
    ("title:", "subsets: [1000]\ntitle:"),
    ("title:", "subsets: [n100]\ntitle:"),
    ("title:", "heads: [crf]\ntitle:"),
    ("title:", "baselines: [svm]\ntitle:"),
    ("title:", "adapted: [full]\ntitle:"),
]
FILES = "files: {format: csv, splits: {train: reviews.csv}, delimiter: ';'}"
CORPUS = (
    f"corpora:\n  mine: {{texts: [text], targets: {{stars: label}}, carve: {{validation: 0.1, test: 0.2}}, {FILES}}}\n"
)
TASK = "tasks:\n  reviews: {corpus: mine, target: stars, type: classification, metrics: [accuracy]}\n"
STRATEGY = "strategies:\n  linear_probe:\n    override: true\n    phases: [{train: [head, {top: 1}]}]\n"
# a file of a catalogue, its text, what is changed in it
IN_A_CATALOGUE = [
    ("strategies", STRATEGY, "{top: 1}", "{top: 14}"),
    ("strategies", STRATEGY, "{top: 1}", "blocks"),
    ("tasks", CORPUS + TASK, "format: csv", "format: tsv"),
    ("tasks", CORPUS + TASK, "target: stars", "target: star"),
    ("tasks", CORPUS + TASK, "[accuracy]", "[acc]"),
    ("tasks", CORPUS + TASK, "type: class", "type: pair_class"),
    (
        "tasks",
        CORPUS + TASK,
        "type: classification, metrics: [accuracy]",
        "type: multi_label_classification, metrics: [f1_micro]",
    ),
    ("tasks", CORPUS + TASK, "delimiter: ';'", "delimiter: ';', columns: {stars: star}"),
    ("tasks", CORPUS + TASK, "delimiter: ';'", "separators: {stars: ';'}"),
]
# a head of the user's, and the strategy that trains it
HEADS = """
{kind: linear, layers: {combine: mix}} <- frozen
{kind: linear, layers: {layer: 9}} <- full
{kind: linear, layers: {layer: 4}} <- full
{kind: linear, layers: {layer: best}} <- frozen
{kind: linear, layers: {norm: true}} <- full
{kind: linear, layers: {combine: attention}} <- frozen
{kind: linear, layers: {combine: attention, last: 9}} <- full
{kind: linear, layers: {combine: attention, heads: 4}} <- full
{kind: linear, layers: {combine: atention}} <- full
{kind: linear, layers: {combine: ladder, heads: 7}} <- full
{kind: linear, layers: {combine: ladder, gates: fixed, temperature: 1}} <- full
""".strip().splitlines()
# strategies of the user's, of which `mine` is run
STRATEGIES = """
mine: {phases: [{train: [all], epochs: 3, updates: 9}]}
mine: {phases: [{train: [all], num_train_epochs: 3, max_steps: 9}]}
mine: {phases: [{train: [all], judge: 3}]}
mine: {phases: [{train: [all], updates: 9, warmup_of: phase}]}
mine: {phases: [{train: [all], updates: 9, judge: 10}]}
mine: {phases: [{train: [all], updates: 9, unfreeze: {epochs: 1}}]}
mine: {phases: [{train: [all], unfreeze: {updates: 1}}]}
mine: {phases: [{train: [head], updates: 9, optimizer: lbfgs}]}
mine: {phases: [{train: [head, {top: 3}], updates: 3, unfreeze: {}}]}
mine: {phases: [{train: [all], unfreeze: {}, one_by_one: true}]}
mine: {phases: [{train: [all], unfreeze: {}, reinit_top: 1}]}
mine: {phases: [{train: [all], layer_decay: 0.5, layer_rates: [1.0e-4]}]}
mine: {phases: [{train: [all], cut_frac: 0.2}]}
mine: {phases: [{train: [all], schedule: slanted_triangular, warmup: 0.2}]}
mine: {phases: [{train: [all], stop: {}}]}
mine: {phases: [{train: [head], reinit_top: 2}]}
mine: {phases: [{train: [head], folds: 5}]}
mine: {phases: [{train: [head], optimizer: lbfgs, folds: 1}]}
mine: {phases: [{train: [head], optimizer: lbfgs, folds: 5, select: {by: clusters}}]}
mine: {phases: [{train: [head], select: {by: clusters}}]}
mine: {phases: [{train: [head], optimizer: lbfgs, select: {by: clusters, penalty: 0.2}}]}
mine: {phases: [{train: [head], optimizer: lbfgs, select: {by: group_lasso, fractions: [1.5]}}]}
mine: {base: full, from: task_texts}
mine: {base: full, form: task_text}
mine: {base: full, after: frozen_sgd, from: task_text}
mine: {phases: [{train: [all]}], rates_from: other}
mine: {phases: [{train: [all]}], rates_from: other}, other: {phases: [{train: [all]}]}
mine: {phases: [{train: [all]}], search: {grid: {epochs: [0, 2]}, seeds: [3]}}
mine: {phases: [{train: [all]}], search: {grid: {epochs: [2, 2]}, seeds: [3]}}
mine: {phases: [{train: [all]}], search: {grid: {layers: [1, 2]}, seeds: [3]}}
mine: {phases: [{train: [all]}], search: {grid: {2.epochs: [1, 2]}, seeds: [3]}}
mine: {phases: [{train: [all]}], sweep: {learning_rate: [1.0e-5, 2.0e-4]}}
mine: {phases: [{train: [all], auxiliary: {tasks: [reviews]}}]}
mine: {phases: [{train: [all], auxiliary: {tasks: [sentimental]}}]}
mine: {phases: [{train: [head], auxiliary: {tasks: [sentiment]}}]}
mine: {phases: [{train: [all], coral: {to: other}, auxiliary: {tasks: [sentiment]}}]}
mine: {phases: [{train: [head], coral: {to: other}}]}
mine: {phases: [{train: [all], coral: {to: other}}]}
mine: {phases: [{train: [head, {top: 1}], coral: {to: other}, distil: {logits: {}}}]}
mine: {phases: [{train: [all]}], after: {strategy: other}}, other: {phases: [{train: [all]}], keep: false}
mine: {phases: [{train: [all]}], after: {strategy: other, subset: all}}, other: {phases: [{train: [all]}], keep: true}
mine: {phases: [{train: [head], insert: {kind: adapters, rank: 4}}]}
mine: {phases: [{insert: {kind: lora}}, {insert: {kind: lora, rank: 4}}]}
""".strip().splitlines()
# how the encoder is pretrained further
FURTHER = """
{phase: {pick: best}}
{phase: {optimizer: lbfgs}}
{phase: {distil: {logits: {}}}}
{phase: {schedule: plateau}}
{phase: {epochs: 1}, student: {layers: 7}}
""".strip().splitlines()
COMMANDS = """
plan absent.yaml
plan my
plan reviews.csv
plan mine.yaml --strategies linear_probe
plan mine.yaml --config seeds
plan mine.yaml --config seeds=1
plan mine.yaml --config seed=1
plan mine.yaml --config seeds=[1
plan mine.yaml --config store.max_gib=3
plan mine.yaml over.yaml
run absent.yaml
plan mine.yml
run mien.yaml
run mine
run qqqq --cores 2
run reviews.csv
run --cores 2 mine.yaml
run mine.yaml --strategies linear_probe
run mine.yaml --data-dir=elsewhere
run mine.yaml --config seeds=[1
doctor absent.yaml
list strategies qqqq
new task absent.csv
new task reviews.csv --name Help-Desk
new task https://a.org/b.csv
new task my
new task broken.csv
new task reviews.csv --label text
new task reviews.csv --label star
new experiment other
show other
compare one two
export my out
export mine.yaml out
predict my
""".strip().splitlines()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a task of the user's, of synthetic texts, its experiment and some broken files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my").mkdir()
    task = "{corpus: sentiment, target: label, type: classification, metrics: [accuracy]}"
    (tmp_path / "my/tasks.yaml").write_text(f"tasks:\n  reviews: {task}\n")
    (tmp_path / "mine.yaml").write_text(EXPERIMENT)
    (tmp_path / "half").mkdir()
    (tmp_path / "half/encoders.yaml").write_text("encoders:\n  nn: {hub: a/b}\n")
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
    return caught.value.code.removeprefix("error: ").replace(f"{HOME}/", "")


@pytest.mark.parametrize("change", IN_AN_EXPERIMENT, ids=" ".join)
def test_a_mistake_in_an_experiment_has_the_line_of_the_users_file(place, recorded, change):
    assert change[0] in EXPERIMENT
    (place / "mine.yaml").write_text(EXPERIMENT.replace(*change, 1))
    recorded(" -> ".join(change), message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("case", IN_A_CATALOGUE, ids=lambda case: f"{case[2]} {case[3]}")
def test_a_mistake_in_a_catalogue_has_its_line(place, recorded, case):
    name, text, *change = case
    assert change[0] in text
    (place / f"my/{name}.yaml").write_text(text.replace(*change, 1))
    (place / "mine.yaml").write_text(f"{EXPERIMENT}data_dir: .\n")
    recorded(f"{name}.yaml: {' -> '.join(change)}", message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("case", HEADS)
def test_a_head_that_cannot_be_has_its_line(place, recorded, case):
    head, strategy = case.split(" <- ")
    (place / "my/heads.yaml").write_text(f"heads:\n  mine: {head}\n")
    text = EXPERIMENT.replace("linear_probe\n  - top_k: [1]", strategy).replace("title:", "heads: [mine]\ntitle:")
    (place / "mine.yaml").write_text(text)
    recorded(f"heads.yaml: {case}", message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("case", STRATEGIES)
def test_a_strategy_that_cannot_be_has_its_line(place, recorded, case):
    (place / "my/strategies.yaml").write_text(f"strategies: {{{case}}}\n")
    (place / "mine.yaml").write_text(EXPERIMENT.replace("linear_probe\n  - top_k: [1]", "mine"))
    recorded(f"strategies.yaml: {case}", message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("case", FURTHER)
def test_a_further_pretraining_that_cannot_be_has_its_line(place, recorded, case):
    (place / "my/encoders.yaml").write_text(f"further_pretraining:\n  mine: {case}\n")
    (place / "my/strategies.yaml").write_text("strategies: {mine: {base: full, from: mine}}\n")
    (place / "mine.yaml").write_text(EXPERIMENT.replace("linear_probe\n  - top_k: [1]", "mine"))
    recorded(f"encoders.yaml: {case}", message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mistake_on_the_command_line_is_one_sentence(place, recorded, command):
    recorded(f"thaw {command}", message(command.split()))


@pytest.mark.parametrize(
    ("command", "sentence"),
    {
        "new tasks reviews.csv": "argument what: invalid choice: 'tasks' (choose from 'task', 'encoder', 'experiment')",
        "new task": "the following arguments are required: source",
        "plan mine.yaml --strategy-names linear_probe": "unrecognized arguments: --strategy-names linear_probe",
    }.items(),
)
def test_a_wrong_word_is_one_sentence_without_the_list_of_options(place, capsys, command, sentence):
    with pytest.raises(SystemExit) as caught:
        main(command.split())
    assert caught.value.code == 2
    name = command.split()[0]
    assert capsys.readouterr().err == f"error: thaw {name}: {sentence}; thaw {name} --help describes it\n"


def test_the_columns_that_were_taken_are_shown(place, capsys):
    main(["new", "task", "reviews.csv", "--name", "films"])
    assert "  text: text\n  label: stars (2 labels: 0, 1)\n" in capsys.readouterr().out


def test_a_label_that_one_row_has_is_shown(place, capsys):
    (place / "typo.csv").write_text(CSV.replace(";1", ";good").replace(";0", ";bad").replace(";good", ";goood", 1))
    main(["new", "task", "typo.csv"])
    assert "  guessed labels: 'goood': in one row only; correct the file if it is a slip\n" in capsys.readouterr().out
