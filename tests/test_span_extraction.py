"""Span extraction from a file in SQuAD's format to the table: what is read, trained, scored, shown and refused."""

import copy
import json

import numpy as np
import pandas
import pyarrow
import pytest
import torch

from conftest import HOME
from corpora import spec_for
from shown import Shown
from thaw.core.errors import UserError
from thaw.data.corpus import Corpus
from thaw.data.preparation import prepare
from thaw.evaluation.baselines import fit_baseline
from thaw.evaluation.metrics import score
from thaw.evaluation.target_kinds import TARGET_KINDS
from thaw.features.store import FeatureStore
from tiny_corpus import Bench, rows, tiny_corpus

KIND = "span_extraction"
METRICS = ["answer_f1", "exact_match", "best_f1", "best_exact"]
TASK = {"id": "t", "corpus": "mine", "type": KIND, "target": "answers", "metrics": METRICS, "validation": "validation"}
TASK |= {"test": ["test"]}
HEAD = {"kind": "start_end"}
STRATEGIES = {"frozen": ["head"], "top_k": ["head", {"top": "k"}], "full": ["all"]}

# Two articles, invented here; the second has a question without an answer, as in version 2.0.
FERRY = "The ferry to Lindholm leaves at nine. In winter, ice keeps it in the harbour of Varde."
KILN = "Clay from the river bank is fired in a kiln of brick. The kiln cools for two days."


def article(title: str, context: str, *questions: dict) -> dict:
    return {"title": title, "paragraphs": [{"context": context, "qas": list(questions)}]}


def asked(name: str, question: str, *answers: tuple[str, int], **more) -> dict:
    given = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": name, "question": question, "answers": given} | more


WINTER = asked("f2", "Where is it in winter?", ("the harbour of Varde", 65), ("Varde", 80))
PLAUSIBLE = {"is_impossible": True, "plausible_answers": [{"text": "brick", "answer_start": 46}]}
FILE = {
    "version": "made up",
    "data": [
        article("Ferry", FERRY, asked("f1", "When does it leave?", ("nine", 32)), WINTER),
        article("Kiln", KILN, asked("k1", "Who built it?", **PLAUSIBLE)),
    ],
}
ENTRY = {"texts": ["question", "context"], "targets": {"answers": "answers"}, "keep": ["id"], "group_by": "title"}


def write(folder, content, name="train.json"):
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def from_file(folder, content=FILE) -> Corpus:
    """Prepare a corpus of one file."""
    write(folder, content)
    entry = ENTRY | {"files": {"format": "squad", "splits": {"train": "train.json"}}}
    prepare(spec_for(entry, folder), folder, folder / "out")
    return Corpus(folder / "out")


def test_a_file_in_squads_format_is_read(tmp_path):
    corpus = from_file(tmp_path)
    assert corpus.frame("train")["id"].tolist() == ["f1", "f2", "k1"] and corpus.labels("answers") == []
    assert corpus.targets(TASK, "train") == [[(32, "nine")], [(65, "the harbour of Varde"), (80, "Varde")], []]
    assert corpus.frame("train")["context"].tolist() == [FERRY, FERRY, KILN]


def changed(*changes) -> dict:
    """Return the file with some changes: (path of keys, key, value), a value of None for a key that is deleted."""
    content = copy.deepcopy(FILE)
    for path, key, value in changes:
        place = content
        for step in path:
            place = place[step]
        if value is None:
            del place[key]
        else:
            place[key] = value
    return content


FIRST = ("data", 0, "paragraphs", 0, "qas", 0)
LAST = ("data", 1, "paragraphs", 0, "qas", 0)
FIRST_ANSWER = (*FIRST, "answers", 0)
# what is wrong, where, and what is said of it
MISTAKES = {
    "offset": (changed((FIRST_ANSWER, "answer_start", 31)), "data[0].paragraphs[0].qas[0]: .*it begins at 32"),
    "other text": (changed((FIRST_ANSWER, "text", "ten")), "qas[0]: .*the context does not hold it"),
    "no start": (changed((FIRST_ANSWER, "answer_start", "32")), "answer_start is '32'"),
    "empty": (changed((FIRST_ANSWER, "text", " ")), "its text is ' '"),
    "no id": (changed((LAST, "id", None)), "data[1].paragraphs[0].qas[0]: 'id' is missing"),
    "same id": (changed((LAST, "id", "f2")), "the id f2 is that of data[0].paragraphs[0].qas[1]"),
    "no answer": (changed((FIRST, "answers", [])), "qas[0]: has no answer"),
    "impossible": (changed((FIRST, "is_impossible", True)), "qas[0]: has answers"),
    "no context": (
        changed((("data", 1, "paragraphs", 0), "context", None)),
        "data[1].paragraphs[0]: 'context' is",
    ),
    "list": ([], "expected a JSON object"),
    "other json": ({"rows": []}, "'data' is missing or no list"),
    "no json": ('{"data": [\n}', "train.json:2:1: not valid JSON"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_said_with_its_place(mistake, tmp_path):
    content, message = MISTAKES[mistake]
    place, _, words = message.rpartition(": .*")
    with pytest.raises(UserError) as said:
        from_file(tmp_path, content)
    assert place in str(said.value) and words in str(said.value)


# --- training ---------------------------------------------------------------------------------------------------------


def made(folder, answered: bool, **view) -> Bench:
    """Return a bench of questions that all have an answer (1.1), or of which a quarter has none (2.0)."""
    sizes = {"train": (90, 1), "validation": (30, 2), "test": (30, 3)}
    splits = {name: rows(KIND, *size) for name, size in sizes.items()}
    if answered:
        splits = {name: [one for one in split if one["answers"]["text"]] for name, split in splits.items()}
    return Bench(folder, "bert", tiny_corpus(folder / "data", KIND, **splits), KIND, **view)


@pytest.fixture(scope="module")
def benches(tmp_path_factory):
    return {version: made(tmp_path_factory.mktemp("b"), version == "1.1") for version in ("1.1", "2.0")}


def spec_of(bench: Bench, strategy: str, **phase) -> dict:
    phase = {"train": STRATEGIES[strategy], "epochs": 8, "rate": 3e-3, "head_rate": 2e-2} | phase
    spec = bench.spec(phase, head=HEAD)
    return spec | {"task": spec["task"] | {"metrics": METRICS}}


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_what_is_planted_is_learnt(version, benches):
    bench = benches[version]
    _, left = bench.train(spec_of(bench, "full"))
    scores, test = left.outcome["scores"]["test"], left.predictions["test"]
    assert bench.store.counts("train").max() > 3  # windows
    assert left.history[-1]["loss"] < 0.9 * left.history[0]["loss"]
    assert scores["answer_f1"] > 0.85
    gold = bench.corpus.targets(TASK, "test")
    assert score(TASK, gold, test.values) == scores
    contexts = bench.corpus.frame("test")["context"]
    assert all(one.text in context for one, context in zip(test.values, contexts, strict=True))
    for one in test.values:
        behind = [margin for _, margin in one.others]
        assert behind == sorted(behind) and behind[0] >= 0
    assert max(len(one.others) for one in test.values) == 4  # of five; a short context has fewer
    empty = sum(not one.given for one in test.values)
    assert empty == 0 if version == "1.1" else empty > 0
    assert ("no_answer_threshold" in left.outcome["chosen"]) == (version == "2.0")
    found = left.outcome["scores"]["validation"]
    assert found["answer_f1"] >= found["best_f1"] - 1e-9  # the threshold is the best one there; more where it is "the"


def test_cached_equals_uncached_and_again(benches):
    bench, strategy = benches["2.0"], "top_k"
    few = {"subset": {"rows": 30}}
    _, cached = bench.train(spec_of(bench, strategy, epochs=2) | few)
    _, again = bench.train(spec_of(bench, strategy, epochs=2) | few)
    _, computed = bench.train(spec_of(bench, strategy, epochs=2, boundary=None) | few)
    assert again.history == cached.history and again.predictions["test"].values == cached.predictions["test"].values
    losses = ([note["loss"] for note in one.history] for one in (cached, computed))
    assert np.allclose(*losses, atol=1e-4)
    scores = (one.outcome["scores"]["test"]["answer_f1"] for one in (cached, computed))
    assert next(scores) == pytest.approx(next(scores), abs=1e-3)


def test_some_rows_have_the_states_that_they_have_among_all(benches, tmp_path):
    from thaw.encoders.transformers import Encoder
    from thaw.features.extract import StatesFormat, extract

    bench = benches["2.0"]
    for name in ("tokens.json", "tokens.parquet"):
        (tmp_path / name).write_bytes((bench.features / name).read_bytes())
    some = FeatureStore(tmp_path)
    masks = {split: np.arange(len(some.lengths(split))) % 5 == 1 for split in some.splits}
    facts = extract(some, Encoder.load(bench.encoder), [2], StatesFormat("fp32"), torch.device("cpu"), rows=masks)
    (tmp_path / "b2.json").write_text(json.dumps(json.loads((bench.features / "b2.json").read_text()) | facts[2]))
    chosen = np.flatnonzero(masks["train"])
    batches = some.batch("train", chosen), bench.store.batch("train", chosen)
    states = [
        one.states(2, "train").gather(chosen, batch) for one, batch in zip((some, bench.store), batches, strict=True)
    ]
    assert torch.equal(*states) and "rows" in facts[2]


def test_states_are_those_of_each_window_alone(benches):
    from thaw.encoders.transformers import Encoder

    bench = benches["2.0"]
    row = int(bench.store.counts("test").argmax())
    batch, encoder = bench.store.batch("test", [row]), Encoder.load(bench.encoder)
    stored = bench.store.states(2, "test").gather([row], batch)
    for window in range(len(batch.mask)):
        size = int(batch.mask[window].sum())
        alone = encoder.model(
            input_ids=batch.input_ids[[window], :size],
            token_type_ids=batch.type_ids[[window], :size],
            output_hidden_states=True,
        )
        assert torch.allclose(stored[window, :size], alone.hidden_states[2][0], atol=1e-5)


@pytest.fixture(scope="module")
def shown(benches, tmp_path_factory):
    shown = Shown(benches["2.0"], tmp_path_factory.mktemp("shown"))
    for strategy in ("frozen", "full"):
        phase = {"train": STRATEGIES[strategy], "rate": 3e-3, "epochs": 5}
        shown.train(strategy, phase, head=HEAD)
    return shown


def test_results_are_recorded_and_shown(shown, benches):
    folder = shown.folder / "runs/t/all/e/linear/full/base/seed1"
    record, frame = (
        json.loads((folder / "metrics.json").read_text()),
        pandas.read_parquet(folder / "predictions.parquet"),
    )
    part = frame[frame["split"] == "test"]
    kind = TARGET_KINDS["answers"]
    read = kind.read(pyarrow.chunked_array([pyarrow.array(part["extracted"].tolist())]), [])
    assert kind.named(read, []) == part["prediction"].tolist()
    assert max(len(each["others"]) for each in part["extracted"]) == 4
    again = score(TASK | {"metrics": ["answer_f1"]}, benches["2.0"].corpus.targets(TASK, "test"), read)
    assert again["answer_f1"] == record["scores"]["test"]["answer_f1"]
    assert "answer F1" in shown.table("frozen", "full") and shown.flags("full") == []


def test_baselines(benches):
    for version, bench in benches.items():
        sizes = {split: len(bench.corpus.frame(split)) for split in ("train", "validation", "test")}
        wanted = {split: np.arange(size) for split, size in sizes.items()}
        gold = bench.corpus.targets(TASK, "validation")
        majority = fit_baseline("majority", TASK, bench.corpus, wanted["train"], wanted).predictions["validation"]
        least = score(TASK, gold, majority.values)
        assert least["exact_match"] == sum(not answers for answers in gold) / len(gold)
        words = fit_baseline("bag_of_words", TASK, bench.corpus, wanted["train"], wanted)
        assert {"words", "reach"} <= set(words.chosen)
        assert score(TASK, gold, words.predictions["validation"].values)["answer_f1"] >= least["answer_f1"], version


def test_the_lexical_baseline_answers_near_the_questions_words():
    from thaw.evaluation.baselines import NearbyWords

    known = NearbyWords([FERRY, KILN])
    assert known.answer("When does the ferry to Lindholm leave?", FERRY, 1, 3).text == "leaves"
    assert known.answer("What keeps it in the harbour in winter?", FERRY, 1, 3).text == "ice"
    assert known.answer("?", FERRY, 1, 3).given == "" and known.answer("ferry", "ferry", 1, 3).text in ("", "ferry")


# --- plan and draft ---------------------------------------------------------------------------------------------------


def many(count: int = 24) -> dict:
    """Return a file of so many articles, each with a question on where its number is."""
    articles = []
    for n in range(count):
        context = f"In hall {n} there is a lamp. The lamp of hall {n} was made in Varde."
        pairs = enumerate([("Where is the lamp?", f"hall {n}"), ("Where was it made?", "Varde")])
        questions = [asked(f"{n}.{m}", text, (answer, context.index(answer))) for m, (text, answer) in pairs]
        articles.append(article(f"Hall {n}", context, *questions))
    return {"data": articles}


def test_a_draft_recognises_the_format(tmp_path):
    from thaw.data.catalogue_stub import draft_of_file

    write(tmp_path, many(), "halls.json")
    draft = draft_of_file(tmp_path / "halls.json", set())
    assert [*draft.types.values()] == [KIND] and draft.rows == 48
    assert "format: squad" in draft.corpus and "group_by: title" in draft.corpus and "keep: [id]" in draft.corpus
    assert "view: windows" in draft.tasks and "best_f1" not in draft.tasks
    write(tmp_path, changed(((*FIRST, "answers", 0), "answer_start", 31)), "wrong.json")
    with pytest.raises(UserError, match="expected at least 20"):
        draft_of_file(tmp_path / "wrong.json", set())


def planned(folder, **changes):
    from thaw.planning.configuration import load_plan, read_config

    config = read_config([str(HOME / "config/experiments/squad.yaml")], {"data_dir": str(folder)} | changes)
    return load_plan(config, HOME, results=str(folder / "results"))


def test_the_experiment_is_planned_from_files_and_from_the_hub(tmp_path):
    from_hub = {job.spec["source"] for job in planned(tmp_path).jobs["prepare"].values()}
    (tmp_path / "squad").mkdir()
    for name in ("train-v1.1", "dev-v1.1", "train-v2.0", "dev-v2.0"):
        write(tmp_path / "squad", many(), f"{name}.json")
    plan = planned(tmp_path, subsets=["all"])
    from_files = {job.spec["source"] for job in plan.jobs["prepare"].values()}
    assert (from_hub, from_files) == ({"hub"}, {"files"}) and len(plan.jobs["train"]) == 24
    assert {job.spec["view"]["stride"] for job in plan.jobs["features"].values()} == {128}
