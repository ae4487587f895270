"""Exports: real runs of small encoders, read again by fresh processes; what is refused; lines in, lines out."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer, pipeline

import forked
from read_again import read_again
from thaw.cli.predict_command import examples as read
from thaw.cli.predict_command import printed
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.encoders.loading import load_tokenizer
from thaw.exporting import formats
from thaw.exporting.checking import check, examples
from thaw.exporting.export import export, export_summary
from thaw.exporting.finished_run import open_run
from thaw.exporting.model_card import card
from thaw.exporting.standalone_model import Model
from thaw.schema.head import HeadConfig
from tiny import tiny_encoder
from tiny_corpus import Bench, tiny_corpus

FULL = {"train": ["all"], "epochs": 1}
FROZEN = {"train": ["head"], "optimizer": "lbfgs", "l2": [1e-2]}
SGD = {"train": ["head"], "epochs": 1}
PLAIN = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
FILES = PLAIN | {"thaw.json", "model.py", "README.md", "check.json"}


class House:
    """A results folder with one encoder, one corpus and its features, in which runs are trained."""

    def __init__(self, folder: Path, family: str, kind: str, **bench):
        self.bench = Bench(folder, family, tiny_corpus(folder / "corpus", kind), kind, **bench)
        self.results = self.bench.linked(folder / "results")

    def run(self, name: str, phase: dict, **changes) -> Path:
        """Train a run where there is none of this name, and return its folder."""
        folder = self.results / "runs/t/all/e/linear" / name / "base"
        spec = self.bench.spec(phase, **changes)
        if not folder.exists() and "optimizer" in phase:
            self.bench.step("fit_heads", {key: spec[key] for key in spec.keys() - {"seed"}}, folder, "--seeds", 1)
        elif not folder.exists():
            self.bench.step("train", spec, folder / "seed1")
        return folder / "seed1"


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    """Give the house of a family and a type of task, made once."""
    made = {}

    def house(family: str, kind: str, **bench) -> House:
        key = (family, kind, *bench.items())
        if key not in made:
            made[key] = House(tmp_path_factory.mktemp(family), family, kind, **bench)
        return made[key]

    return house


def recorded(run: Path):
    predictions = pandas.read_parquet(run / "predictions.parquet")
    return predictions[predictions["split"] == "test"]


def test_an_export_is_whole_and_predicts_as_its_run_in_a_fresh_process(houses, tmp_path):
    run = houses("bert", "spans").run("full", FULL, keep=True)
    found = export(run, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    assert found == read_json(tmp_path / "out/check.json") and found["passed"]
    part, metrics = found["splits"]["test"], read_json(run / "metrics.json")
    assert part["changed"] == 0 and part["largest_difference"] < 1e-5 and part["answers"] > 8
    for name, value in metrics["scores"]["test"].items():
        assert part["scores"][name] == {"run": value, "export": value}
    assert "0 of" in export_summary(found) and metrics["digest"] in (tmp_path / "out/README.md").read_text()
    with pytest.raises(UserError, match="is there already"):
        export(run, tmp_path / "out")


def test_a_run_whose_tensors_do_not_give_its_predictions_is_refused_and_leaves_nothing(houses, tmp_path, monkeypatch):
    monkeypatch.setattr("thaw.exporting.export.check", read_again)
    run = houses("distilbert", "classification").run("sgd", SGD)
    other = run.parents[1] / "other/base/seed1"
    other.mkdir(parents=True)
    for file in run.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    head = load_file(run / "head.safetensors")
    save_file({name: -tensor for name, tensor in head.items()}, other / "head.safetensors")
    with pytest.raises(UserError, match="does not predict what its run did.*\n.*8 of 8 predictions are others"):
        export(other, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_computes_a_little_else_does_not_pass(houses, tmp_path):
    source = open_run(houses("distilbert", "classification").run("frozen", FROZEN))
    formats.write(source, tmp_path)
    head = load_file(tmp_path / "head.safetensors")
    save_file({name: 1.01 * tensor for name, tensor in head.items()}, tmp_path / "head.safetensors")
    found = read_again(source, tmp_path)
    assert not found["passed"] and found["splits"]["test"]["changed"] == 0


def test_a_folder_that_needs_thaw_does_not_pass(houses, tmp_path):
    """Though Thaw is installed where the tests run, as it is where users export."""
    source = open_run(houses("distilbert", "classification").run("frozen", FROZEN))
    formats.write(source, tmp_path)
    program = (tmp_path / "model.py").read_text()
    assert "\nimport json\n" in program
    (tmp_path / "model.py").write_text(program.replace("\nimport json\n", "\nimport json\nimport thaw\n", 1))
    with pytest.raises(UserError, match="the folder fails in a fresh process: .*thaw"):
        check(source, tmp_path)


LADDER = {"combine": "ladder", "width": 8, "heads": 2}
STORED = SGD | {"epochs": 3, "head_rate": 0.05, "boundary": 3, "reads": [0, 1, 2]}
ATTENTION = {"layers": {"combine": "attention"}, "pooling": "attention", "separate_pooling": "attention"}
CASES = [
    ("bert", "pair_classification", FULL, {}, {}),
    ("roberta", "spans", FROZEN, {}, {}),
    ("modernbert", "regression", FULL, {}, {}),
    ("roberta", "classification", SGD, {"pooling": "attention"}, {}),
    ("bert", "pair_classification", FROZEN, {"kind": "cosine"}, {"pairs": "separate"}),
    ("distilbert", "classification", FROZEN, {}, {"dtype": "bf16"}),
    ("bert", "spans", FROZEN, {}, {"max_length": 12}),
    ("gpt2", "pair_classification", FULL, {"pooling": "last"}, {}),
    ("bert", "spans", STORED, {"layers": LADDER | {"norm": True}}, {}),
    ("distilbert", "classification", STORED, {"layers": LADDER, "pooling": "mean"}, {}),
    ("bert", "pair_classification", STORED, {"layers": LADDER}, {"pairs": "separate"}),
    ("modernbert", "regression", FULL, {"layers": LADDER}, {}),
    ("distilbert", "classification", STORED, {"layers": {"combine": "mix"}, "pooling": "attention"}, {}),
    ("bert", "spans", STORED, {"layers": {"combine": "mix", "norm": True}}, {}),
    ("bert", "spans", STORED, {"layers": {"combine": "attention", "norm": True}}, {}),
    ("bert", "pair_classification", STORED, ATTENTION, {"pairs": "separate"}),
]


EXAMPLE = {  # of so many words
    "text": lambda count: "the " * count,
    "pair": lambda count: ["the", "the " * count],
    "words": lambda count: ["the"] * count,
}


@pytest.mark.parametrize(("family", "kind", "phase", "head", "bench"), CASES)
def test_the_loader_predicts_as_the_run_did(houses, tmp_path, family, kind, phase, head, bench):
    name = "_".join([str(len(phase)), *(value if isinstance(value, str) else name for name, value in head.items())])
    run = houses(family, kind, **bench).run(name, phase, head=head, keep="optimizer" not in phase)
    source = open_run(run)
    formats.write(source, tmp_path)
    found = read_again(source, tmp_path)["splits"]["test"]
    assert found["changed"] == 0 and found["largest_difference"] < 1e-5
    assert all(one["export"] == pytest.approx(one["run"], abs=1e-4) for one in found["scores"].values())
    if "max_length" in bench:
        predictions = list(Model(tmp_path).predict_with_probabilities(examples(source, "test")))
        cut_off = [None in prediction["probabilities"] for prediction in predictions]
        assert any(cut_off) and cut_off == ["cut" in prediction for prediction in predictions]
    most = source.view.max_length
    texts = [EXAMPLE[source.reads](count) for count in (1, most + 1)]  # gpt2 adds no token of its own
    cut = [prediction.get("cut") for prediction in Model(tmp_path).predict_with_probabilities(texts)]
    assert cut == [None, most]


def test_the_card_says_what_the_run_is_flagged_for(houses):
    source = open_run(houses("bert", "classification").run(str(len(FULL)), FULL, keep=True))
    flagged = replace(source, metrics=source.metrics | {"flags": ["one_class"]})
    warning = "\n\nWarning: predicts a single class, or one set of labels, on validation.\n"
    assert warning in card(flagged, "encoder_and_head")


ALL = {"combine": "concat"}
SEVERAL = ["mean", "max", "first"]
READING = [  # family, kind of task, what the head reads, what is kept of three layers, other settings of the bench
    ("bert", "classification", {"layers": ALL, "pooling": "mean"}, 3, {}),
    ("bert", "pair_classification", {"layers": ALL, "separate_pooling": SEVERAL}, 3, {"pairs": "separate"}),
    ("distilbert", "regression", {"layers": {"layer": 1}, "pooling": "max"}, 1, {}),
    ("modernbert", "spans", {"layers": {"layer": 2}}, 2, {}),
    ("gpt2", "pair_classification", {"layers": ALL | {"last": 2}, "pooling": "last"}, 3, {}),
    ("llama", "spans", {"layers": {"combine": "mean", "last": 3}}, 3, {}),
    ("roberta", "classification", {"layers": {"layer": 0}, "pooling": SEVERAL}, 1, {}),
    ("deberta_v2_conv", "spans", {"layers": {"layer": 1}}, 1, {}),
]


@pytest.mark.parametrize(("family", "kind", "head", "kept", "bench"), READING)
def test_a_head_on_other_layers_has_an_encoder_that_ends_at_the_highest(
    houses, tmp_path, family, kind, head, kept, bench
):
    house = houses(family, kind, **bench)
    read = HeadConfig(kind="linear", **head).layers.reads(3)
    phase = FROZEN | {"boundary": read[-1]} | ({"reads": read[:-1]} if read[:-1] else {})
    source = open_run(house.run("_".join(map(str, read)), phase, head=head))
    formats.write(source, tmp_path)
    assert AutoConfig.from_pretrained(tmp_path).num_hidden_layers == kept
    report = read_again(source, tmp_path)
    assert report["passed"] and report["splits"]["test"]["largest_difference"] < 1e-5
    assert report["splits"]["test"]["changed"] == 0


def test_the_layer_that_validation_chose_is_the_last_of_the_export(houses, tmp_path):
    """A run on layer 2 is given the record that the same run has where validation chose this layer."""
    house = houses("bert", "spans")
    run = house.run("chosen", FROZEN | {"boundary": 2}, head={"layers": {"layer": 2}})
    metrics = read_json(run / "metrics.json")
    spec = metrics["spec"] | {"head": {"kind": "linear", "layers": {"layer": "best"}}}
    write_json(run / "metrics.json", metrics | {"spec": spec, "chosen": metrics["chosen"] | {"layer": 2}})
    source = open_run(run)
    assert formats.write(source, tmp_path) == "token_classification"
    assert AutoModelForTokenClassification.from_pretrained(tmp_path).config.num_hidden_layers == 2
    assert read_again(source, tmp_path)["passed"]
    assert "layers: {combine: one, layer: 2} (the encoder has 3 layers)" in card(source, "token_classification")


CLAIMS = [  # family, kind of task, phase, head, form
    ("bert", "spans", FULL, {}, "token_classification"),
    ("roberta", "spans", FULL, {}, "token_classification"),
    ("bert", "classification", SGD, {"pooling": "pooler"}, "sequence_classification"),
    ("bert", "pair_classification", SGD, {"pooling": "pooler"}, "sequence_classification"),
    ("distilbert", "classification", FROZEN, {"pooling": "mean"}, "encoder_and_head"),
    ("bert", "pair_classification", FULL, {"pooling": ["mean", "max"]}, "encoder_and_head"),
    ("gpt2", "classification", FULL, {"pooling": "last"}, "encoder_and_head"),
    ("modernbert", "regression", FULL, {"layers": LADDER}, "encoder_and_head"),
    ("roberta", "spans", STORED, {"layers": {"combine": "mix"}}, "encoder_and_head"),
]


@pytest.mark.parametrize(("family", "kind", "phase", "head", "form"), CLAIMS)
def test_a_card_claims_a_pipeline_only_where_it_predicts_as_the_loader(
    houses, tmp_path, family, kind, phase, head, form
):
    run = houses(family, kind).run(f"claims_{form}", phase, head=head, keep="optimizer" not in phase)
    source = open_run(run)
    assert formats.write(source, tmp_path) == form
    (tmp_path / "README.md").write_text(card(source, form))
    data = ModelCard.load(tmp_path / "README.md").data
    assert data.library_name == "transformers"
    most = source.view.max_length
    asked = [*examples(source, "test"), EXAMPLE[source.reads](most + 1)]
    asked += [""] if source.reads == "text" else []
    own = form == "encoder_and_head"
    pipe = pipeline(data.pipeline_tag, str(tmp_path), trust_remote_code=own)
    due = Model(tmp_path).predict_with_probabilities(asked)
    for example, prediction in zip(asked, due, strict=True):
        if source.reads == "words":
            (pieces,) = pipe(example, is_split_into_words=True, ignore_labels=[])
            starts = np.cumsum([0, *(len(word) + 1 for word in example)])  # in the text of words with blanks between
            words = zip(example, starts, prediction["prediction"], prediction["probabilities"], strict=False)
            seen = [  # a byte-level piece begins after its blank
                (next(one for one in pieces if start <= one["start"] <= start + len(word)), tag, shares)
                for word, start, tag, shares in words
                if shares is not None
            ]
            assert len(seen) > 0 and [one["entity"] for one, _, _ in seen] == [tag for _, tag, _ in seen]
            assert [one["score"] for one, _, _ in seen] == pytest.approx([max(s) for _, _, s in seen], abs=1e-5)
            continue
        given = {"text": example} if source.reads == "text" else dict(zip(("text", "text_pair"), example, strict=True))
        options = {} if own else {"truncation": True}
        found = {one["label"]: one["score"] for one in pipe(given, top_k=None, **options)}
        expected = prediction["probabilities"] or [prediction["prediction"]]
        assert [found[label] for label in source.labels or found] == pytest.approx(expected, abs=1e-5)


def test_a_card_of_texts_that_are_read_apart_claims_no_pipeline(houses, tmp_path):
    run = houses("bert", "pair_classification", pairs="separate").run("apart", FROZEN)
    source = open_run(run)
    form = formats.write(source, tmp_path)
    (tmp_path / "README.md").write_text(card(source, form))
    data = ModelCard.load(tmp_path / "README.md").data
    assert (data.library_name, data.pipeline_tag) == ("thaw", None)
    assert not (tmp_path / "modeling_thaw.py").exists()


def test_byte_level_tokenizers_part_given_words_as_the_run_did(tmp_path):
    """RoBERTa's own class forgets the blank before given words unless its settings say so."""
    tokenizer = load_tokenizer(tiny_encoder("roberta", tmp_path / "tiny"))
    encoder = tmp_path / "roberta"
    encoder.mkdir()
    tokenizer.backend_tokenizer.model.save(str(encoder))
    write_json(encoder / "config.json", {"model_type": "roberta"})
    formats.write_tokenizer(encoder, True, 16, tmp_path / "out")
    write_json(tmp_path / "out/config.json", {"model_type": "roberta"})
    found, words = AutoTokenizer.from_pretrained(tmp_path / "out"), ["cat", "sings", "Anna"] * 9
    due = load_tokenizer(encoder, words=True)
    assert type(found).__name__ == "RobertaTokenizer"
    ids = due(words, is_split_into_words=True, truncation=True, max_length=16)["input_ids"]
    assert found(words, is_split_into_words=True, truncation=True)["input_ids"] == ids
    assert ids != load_tokenizer(encoder)(words, is_split_into_words=True, truncation=True, max_length=16)["input_ids"]


@pytest.mark.parametrize(("pooler", "fits"), [(False, True), (True, False)])
def test_a_text_model_of_the_architecture_is_taken_only_where_it_has_no_layer_between(pooler, fits):
    """MobileBERT's head is one layer on the first token or has another before it, as its settings say."""
    from transformers import AutoModel, MobileBertConfig

    sizes = {"num_hidden_layers": 2, "hidden_size": 32, "intra_bottleneck_size": 16, "intermediate_size": 32}
    sizes |= {"embedding_size": 16, "num_attention_heads": 2, "vocab_size": 50, "true_hidden_size": 16}
    encoder = AutoModel.from_config(MobileBertConfig(classifier_activation=pooler, **sizes)).eval()
    encoder.pooler = None
    head = {"output.weight": torch.randn(3, 32), "output.bias": torch.randn(3)}
    whole = formats.own_model(encoder, head, HeadConfig(kind="linear"), "text", ["a", "b", "c"])
    assert (whole is not None) == fits
    mean = HeadConfig(kind="linear", pooling="mean")
    assert formats.own_model(encoder, head, mean, "text", ["a", "b", "c"]) is None


def test_runs_that_cannot_be_exported_say_why(houses, tmp_path):
    house = houses("bert", "spans")
    run = house.run("lost", {"train": [{"top": 2}, "head"], "epochs": 1})
    with pytest.raises(UserError, match=r"trained layer.\d, layer.\d and did not keep them; `thaw export .*MiB"):
        open_run(run)
    metrics = read_json(run / "metrics.json")
    for change, message in [
        ({"flags": ["diverged"]}, "training diverged"),
        ({"spec": metrics["spec"] | {"head": {"kind": "my_heads:Gated"}}}, "a plug-in"),
        ({"spec": metrics["spec"] | {"head": {"kind": "esim"}}}, "its head is esim; export knows linear and cosine"),
        ({"spec": metrics["spec"] | {"keep": True, "phases": [], "data": "0000"}}, "none has digest 0000"),
    ]:
        write_json(run / "metrics.json", metrics | change)
        with pytest.raises(UserError, match=message):
            open_run(run)
    write_json(run / "metrics.json", metrics)


def test_a_head_alone_after_another_head_alone_has_the_pretrained_layers(houses):
    """Below the last layer too: what is read of the store was trained by no run before it."""
    house = houses("bert", "spans")
    run = house.run("low", SGD | {"boundary": 2}, head={"layers": {"layer": 2}})
    metrics = read_json(run / "metrics.json")
    for boundary in (2, None):
        phase = metrics["spec"]["phases"][0] | {"boundary": boundary}
        spec = metrics["spec"] | {"after": {"run": "0123", "epoch": "last"}, "phases": [phase]}
        write_json(run / "metrics.json", metrics | {"spec": spec})
        if boundary is not None:
            assert open_run(run).read == [2]
            continue
        with pytest.raises(UserError, match="trained layers in the run that it started from and did not keep them"):
            open_run(run)


def test_a_run_that_chose_between_two_views_is_exported_in_the_chosen_one(houses):
    house = houses("bert", "pair_classification", pairs="separate")
    run = house.run("best", SGD)
    metrics = read_json(run / "metrics.json")
    due = metrics["spec"]["features"]
    for features, chosen in ((["0000", due], "separate"), ([due, "0000"], "joint")):
        spec = metrics["spec"] | {"features": features}
        write_json(run / "metrics.json", metrics | {"spec": spec, "chosen": {"pairs": chosen}})
        assert open_run(run).separate_encoding  # the store that the test made, whose digest stands at this place


def test_lines_become_examples():
    assert list(read([b"\xef\xbb\xbfa text\r\n", b"b\tc"], "text")) == ["a text", "b\tc"]
    assert list(read(["ä\tb c\n".encode()], "pair")) == [["ä", "b c"]]
    assert list(read([b"Anna  sings .\n"], "words")) == [["Anna", "sings", "."]]
    assert list(read([b"a\n", b"\n", b" \r\n"], "text")) == ["a"] and list(read([b"\n"], "words")) == []
    for lines, reads, message in [
        ([b"a\n", b" \n", b"\n", b"b\n"], "text", "line 2 is empty; expected one text a line"),
        ([b"a\tb\n", b"a b\n"], "pair", "line 2 has 0 tabs"),
        ([b"a\tb\tc\n"], "pair", "line 1 has 2 tabs"),
        ([b"a\t \n"], "pair", "line 1 has"),
        ([b"\xff\n"], "text", "line 1 is not UTF-8"),
    ]:
        with pytest.raises(UserError, match=message):
            list(read(lines, reads))


def test_predictions_become_lines():
    label = {"prediction": "yes", "probabilities": [0.25, 0.75]}
    assert printed("a", label, "text", False) == "yes"
    assert printed("a", label, "text", True) == "yes\t0.250000\t0.750000"
    assert printed("a", {"prediction": 2.3456789, "probabilities": None}, "text", False) == "2.34568"
    tags = {"prediction": ["B-PER", "O"], "probabilities": [[0.5, 0.5], None]}
    assert printed(["Anna", "."], tags, "words", False) == "Anna\tB-PER\n.\tO\n"
    assert printed(["Anna", "."], tags, "words", True) == "Anna\tB-PER\t0.500000\t0.500000\n.\tO\n"


def predict(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess:
    return forked.run(["thaw.cli.main", "predict", folder, *options], given=text)


def test_predict_labels_lines_in_their_order(houses, tmp_path):
    house = houses("bert", "pair_classification")
    run = house.run(str(len(FULL)), FULL, keep=True)
    formats.write(open_run(run), tmp_path)
    pairs = examples(open_run(run), "test") * 5
    done = predict(tmp_path, "".join("\t".join(pair) + "\n" for pair in pairs), "--probabilities")
    assert done.returncode == 0 and not done.stderr, done.stderr
    found = [line.split("\t") for line in done.stdout.splitlines()]
    assert [fields[0] for fields in found] == recorded(run)["prediction"].tolist() * 5
    due = np.stack(recorded(run)["probabilities"].tolist() * 5)
    assert np.array([fields[1:] for fields in found], float) == pytest.approx(due, abs=1e-5)
    program = forked.run([tmp_path / "model.py"], given="".join(json.dumps(pair) + "\n" for pair in pairs[:3]))
    answers = [json.loads(line)["prediction"] for line in program.stdout.splitlines()]
    assert answers == recorded(run)["prediction"].tolist()[:3], program.stderr


def test_predict_says_of_which_lines_it_has_not_read_all(houses, tmp_path):
    house = houses("bert", "classification")
    formats.write(open_run(house.run(str(len(FULL)), FULL, keep=True)), tmp_path)
    limit = read_json(tmp_path / "thaw.json")["max_length"]
    done = predict(tmp_path, f"a short one\n{'the ' * limit}\n{'the ' * limit}\n")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3
    assert done.stderr.startswith(
        f"warning: 2 lines longer than the {limit} tokens that the model reads, the first is "
    )
    assert done.stderr.endswith("line 2; what is beyond was not read\n")


def test_predict_of_a_table_says_that_it_is_read_line_by_line(houses, tmp_path):
    formats.write(open_run(houses("bert", "classification").run(str(len(FULL)), FULL, keep=True)), tmp_path / "model")
    for name, warned in (("new.csv", True), ("new.tsv", True), ("new.txt", False)):
        (tmp_path / name).write_text("text,id\na short one,1\n\n")
        done = forked.run(["thaw.cli.main", "predict", tmp_path / "model", tmp_path / name])
        assert done.returncode == 0 and len(done.stdout.splitlines()) == 2, done.stderr
        said = f"warning: {tmp_path / name}: each line is read as it is, a header and other columns too; expected one"
        assert done.stderr.startswith(said) == warned and bool(done.stderr) == warned
