"""Messages as users see them, word by word: the mistakes of a first hour, each one sentence at its place."""

import pytest

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

# what is changed in the experiment, by the old and the new text -> the message of `thaw plan`
IN_AN_EXPERIMENT = {
    ("seeds:", "seed:"): "mine.yaml:9: seed: write seeds: one run for each seed",
    ("seeds: [1]", "seeds: 3"): "mine.yaml:9: seeds: expected a list, as [3] (it is 3)",
    ("seeds: [1]", "seeds: [1, 1]"): "mine.yaml:9: seeds: seed 1 is listed twice; each seed is one run",
    ("seeds: [1]", "seeds: [one]"): "mine.yaml:9: seeds.0: input should be a valid integer, unable to parse string as "
    "an integer (it is 'one')",
    ("title: mine\n", ""): "mine.yaml: the experiment lacks title; a selection must be complete",
    ("title: mine", "experiment: mine"): "mine.yaml:2: duplicate key experiment; first given in line 1",
    ("title: mine", "title: [mine"): "mine.yaml:3:11: not valid YAML (expected ',' or ']', but got ':')",
    ("[my]", "[nope]"): "mine.yaml:3: catalogues: folder 'nope' does not exist",
    ("[reviews]", "[review]"): "mine.yaml:4: tasks: no 'review' in tasks; did you mean 'reviews'?",
    (
        "[reviews]",
        "[sst2]\nsources: [files]",
    ): "corpora.sst2: no data here, there is no file data/sst2/glue/train.tsv; say "
    "--config data_dir=<their folder>, or add another of its sources to the experiment's `sources:`",
    ("[my]", "[my, half]"): "half/encoders.yaml:2: encoders.nn: the key 'layers' is missing: number of layers; 0 for "
    "sentence and word_vectors; so is 'width'",
    ("[reviews]", "reviews"): "mine.yaml:4: tasks: expected a list, as [reviews] (it is 'reviews')",
    ("minilm", "minilmm"): "mine.yaml:5: encoders: no 'minilmm' in encoders; did you mean 'minilm'?",
    ("minilm", "bert"): "mine.yaml:5: encoders: no 'bert' in encoders; it is called 'bert_base_uncased' here",
    (
        "experiment: mine",
        "experiment: my exp/1",
    ): "mine.yaml:1: experiment: an id has only a-z, 0-9 and _, at most 60 of them, as my_exp_1 (it is 'my exp/1')",
    ("minilm", "google/bert-base"): "mine.yaml:5: encoders.0: an id has only a-z, 0-9 and _, at most 60 of them, as "
    "bert_base (it is 'google/bert-base')",
    ("- linear_probe", "- probe"): "mine.yaml:7: strategies: no 'probe' in strategies; it is called 'linear_probe' "
    "here",
    (
        "- linear_probe",
        "- qqqq",
    ): "mine.yaml:7: strategies: no 'qqqq' in strategies; `thaw list strategies` has those that exist",
    (
        "- linear_probe",
        "- linear_probe: [1]",
    ): "mine.yaml:7: strategies: linear_probe has no sweep; write - linear_probe",
    ("- top_k: [1]", "- full: {rate: 0.1}"): "mine.yaml:8: strategies.1.full: expected a list (it is {'rate': 0.1})",
    ("[1]\nseeds", "[9]\nseeds"): "mine.yaml:8: strategies: top_k: 9 is not in its sweep for minilm: [0, 1, 2, 3, 4, "
    "5, 6]",
    ("main_table", "main_tabel"): "mine.yaml:10: outputs: no 'main_tabel' in outputs; did you mean 'main_table'?",
    ("main_table", "savings"): "mine.yaml:10: outputs: savings cannot be drawn: reference: full is none of the "
    "experiment's strategies (linear_probe, top_k); add it, or define the output with reference: one of them",
    ("title:", "learning_rate: 0.1\ntitle:"): "mine.yaml:2: learning_rate: it is a key of a phase; write it in phases: "
    "of a strategy of your own (config/strategies.yaml)",
    ("title:", "subsets: [1000]\ntitle:"): "mine.yaml:2: subsets: 1000 is no id; n1000_d1 is a draw of 1,000 examples, "
    "`thaw list subsets` has those that exist",
    ("title:", "subsets: [n100]\ntitle:"): "mine.yaml:2: subsets: no 'n100' in subsets; did you mean 'n100_d1'?",
    ("title:", "heads: [crf]\ntitle:"): "mine.yaml:2: heads: crf is for tagging and spans, and task reviews is of type "
    "classification",
    ("title:", "baselines: [svm]\ntitle:"): "mine.yaml:2: baselines.0: input should be 'majority', 'bag_of_words', "
    "'cosine' or 'random_encoder' (it is 'svm')",
    ("title:", "adapted: [full]\ntitle:"): "mine.yaml:2: adapted: full is none of the strategies; there are "
    "linear_probe, top_k",
}
FILES = "files: {format: csv, splits: {train: reviews.csv}, delimiter: ';'}"
CORPUS = (
    f"corpora:\n  mine: {{texts: [text], targets: {{stars: label}}, carve: {{validation: 0.1, test: 0.2}}, {FILES}}}\n"
)
TASK = "tasks:\n  reviews: {corpus: mine, target: stars, type: classification, metrics: [accuracy]}\n"
STRATEGY = "strategies:\n  linear_probe:\n    override: true\n    phases: [{train: [head, {top: 1}]}]\n"
# a file of a catalogue, its text, what is changed in it -> the message of `thaw plan`
IN_A_CATALOGUE = {
    (
        "strategies",
        STRATEGY,
        "{top: 1}",
        "{top: 14}",
    ): "my/strategies.yaml:4: strategies.linear_probe.phases: top: 14 is not between 0 and the encoder's 6 layers",
    ("strategies", STRATEGY, "{top: 1}", "blocks"): "my/strategies.yaml:4: strategies.linear_probe.phases: unknown "
    "selector 'blocks'; there are head, embeddings, top, layers, all; {top: 2} trains the last two layers",
    (
        "tasks",
        CORPUS + TASK,
        "format: csv",
        "format: tsv",
    ): "my/tasks.yaml:2: corpora.mine.files: a tsv source must state quoting: none or quoting: double",
    ("tasks", CORPUS + TASK, "target: stars", "target: star"): "my/tasks.yaml:4: tasks.reviews.target: corpus mine has "
    "no target 'star'; did you mean 'stars'?",
    (
        "tasks",
        CORPUS + TASK,
        "[accuracy]",
        "[acc]",
    ): "my/tasks.yaml:4: tasks.reviews.metrics.0: 'acc' is no metric and "
    "no import path, as my_metrics:name; did you mean 'accuracy'?",
    ("tasks", CORPUS + TASK, "type: class", "type: pair_class"): "my/tasks.yaml:4: tasks.reviews.type: "
    "pair_classification takes two texts; corpus mine has one text",
    (
        "tasks",
        CORPUS + TASK,
        "type: classification, metrics: [accuracy]",
        "type: multi_label_classification, metrics: [f1_micro]",
    ): "my/tasks.yaml:4: tasks.reviews.target: type multi_label_classification expects a target of kind "
    "label_set; stars is a label",
    ("tasks", CORPUS + TASK, "delimiter: ';'", "delimiter: ';', columns: {stars: star}"): "reviews.csv:1: column "
    "'star': is missing; did you mean 'stars'?",
    ("tasks", CORPUS + TASK, "delimiter: ';'", "separators: {stars: ';'}"): "my/tasks.yaml:2: corpora.mine: "
    "separators: stars is no target of kind label_set",
}
# a command -> its message
COMMANDS = {
    "plan absent.yaml": "absent.yaml: No such file or directory",
    "plan my": "my: there is no such experiment; name its file first, as thaw plan my.yaml",
    "plan reviews.csv": "reviews.csv: is no experiment; thaw new task reviews.csv writes one, if these are your data",
    "plan mine.yaml --strategies linear_probe": "--strategies: is a key of an experiment and no option; write --config "
    "'strategies=...'",
    "plan mine.yaml --config seeds": "--config seeds: expected KEY=VALUE, as data_dir=path",
    "plan mine.yaml --config seeds=1": "--config: seeds: expected a list, as [1] (it is 1)",
    "plan mine.yaml --config budget=soon": "--config: budget: expected a number with its unit, as 90s, 30m or 2h "
    "(it is 'soon')",
    "plan mine.yaml --config seed=1": "--config: seed: write seeds: one run for each seed",
    "plan mine.yaml --config seeds=[1": "--config seeds=[1: [1 is not valid YAML; quote it, as 'seeds=[1, 2]'",
    "plan mine.yaml --config store.max_gib=3": "--config store.max_gib=3: no key has a dot; write --config "
    "'store={max_gib: 3}'",
    "plan mine.yaml over.yaml": "over.yaml:2: outputs: no 'tabel' in outputs; `thaw list outputs` has those that exist",
    "run absent.yaml": "absent.yaml: No such file or directory",
    "plan mine.yml": "mine.yml: no such file; did you mean 'mine.yaml'?",
    "run mien.yaml": "mien.yaml: no such file; did you mean 'mine.yaml'?",
    "run mine": "mine: an experiment is named by its file, as thaw run mine.yaml",
    "run qqqq --cores 2": "qqqq: there is no such experiment; name its file first, as thaw run my.yaml",
    "run reviews.csv": "reviews.csv: is no experiment; thaw new task reviews.csv writes one, if these are your data",
    "run --cores 2 mine.yaml": "mine.yaml: the experiment comes first, as thaw run mine.yaml --cores ...",
    "run mine.yaml --strategies linear_probe": "--strategies: is a key of an experiment and no option; write --config "
    "'strategies=...'",
    "run mine.yaml --data-dir=elsewhere": "--data_dir: is a key of an experiment and no option; write --config "
    "'data_dir=...'",
    "run mine.yaml --config seeds=[1": "--config seeds=[1: [1 is not valid YAML; quote it, as 'seeds=[1, 2]'",
    "doctor absent.yaml": "absent.yaml: No such file or directory",
    "list strategies qqqq": "no line of `thaw list strategies` contains 'qqqq'",
    "new task absent.csv": "absent.csv: no such file",
    "new task reviews.csv --name Help-Desk": "--name 'Help-Desk': an id has only a-z, 0-9 and _, as help_desk",
    "new task https://a.org/b.csv": "https://a.org/b.csv: is an address; download the file, or name a data set of the "
    "Hub, as hub:a/b",
    "new task my": "my: is a folder; name a file in it",
    "new task broken.csv": "broken.csv:4: 1 field, expected 2, as in the header; check the separator inside a text and "
    "quoting: none",
    "new task reviews.csv --label text": "reviews.csv: no column holds texts of several words; name it by --text, or "
    "the two of a pair\n  column  type    distinct  words\n  text    text          40    7.0\n"
    "  stars   number         2    1.0",
    "new task reviews.csv --label star": "reviews.csv: has no column 'star'; did you mean 'stars'?",
    "new experiment other": "--tasks names the tasks of the experiment; thaw list tasks says which there are",
    "show other": "results has no report; thaw run my.yaml makes one",
    "compare one two": "one: no such folder",
    "keep my": "my is no finished run: expected a folder of "
    "runs/<task>/<subset>/<encoder>/<head>/<strategy>/<variant>/seed<seed>/metrics.json",
    "keep other": "results has no report; thaw run my.yaml makes one",
    "predict my": "my is not an exported model (no thaw.json); create one with thaw export",
    "budget mine.yaml": "thaw budget runs one experiment that has a budget; say --config budget=2h",
}


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
    return caught.value.code


@pytest.mark.parametrize("change", IN_AN_EXPERIMENT, ids=" ".join)
def test_a_mistake_in_an_experiment_has_the_line_of_the_users_file(place, change):
    assert change[0] in EXPERIMENT
    (place / "mine.yaml").write_text(EXPERIMENT.replace(*change, 1))
    assert message(["plan", "mine.yaml"]) == f"error: {IN_AN_EXPERIMENT[change]}"


@pytest.mark.parametrize("case", IN_A_CATALOGUE, ids=lambda case: f"{case[2]} {case[3]}")
def test_a_mistake_in_a_catalogue_has_its_line(place, case):
    name, text, *change = case
    assert change[0] in text
    (place / f"my/{name}.yaml").write_text(text.replace(*change, 1))
    (place / "mine.yaml").write_text(f"{EXPERIMENT}data_dir: .\n")
    assert message(["plan", "mine.yaml"]) == f"error: {IN_A_CATALOGUE[case]}"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mistake_on_the_command_line_is_one_sentence(place, command):
    assert message(command.split()) == f"error: {COMMANDS[command]}"


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
