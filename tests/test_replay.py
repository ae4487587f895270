"""The replay of the decision: the committed numbers are those of today's code on the committed answers."""

import pandas as pd
import pytest

import answers
import replay
from test_advice import runs_of
from thaw.decision.decide import SPREAD
from thaw.decision.prior import GAINS
from thaw.decision.stops import SPREAD_OF_TRAINED
from thaw.words import answer_text


@pytest.fixture(scope="module")
def record() -> answers.Record:
    return answers.Record(answers.recorded("grid"))


@pytest.fixture(scope="module")
def made(record) -> dict[str, pd.DataFrame]:
    found = replay.cases(record)
    return {
        replay.SUMMARY: replay.summary(replay.replay(record)),
        replay.GRID / "calibration.csv": replay.calibration(found),
    }


def test_the_committed_tables_and_points_are_worked_out_again(made):
    for path, frame in made.items():
        kept = pd.read_json(path) if path == replay.SUMMARY else pd.read_csv(path)
        assert set(kept) == set(frame) and len(kept) == len(frame), "run scripts/replay.py"
        for name in kept:
            same = kept[name].tolist() == pytest.approx(frame[name].tolist(), abs=2e-4)
            assert same, f"{path.name}: {name} differs; run scripts/replay.py"


def test_the_answer_of_the_readme_is_that_of_the_record(record):
    shown = answer_text.in_terminal(replay.answer(record, *replay.SHOWN)).splitlines()
    assert (replay.GRID / "answer.txt").read_text("utf-8") == "".join(f"    {line}\n" for line in shown)


def test_every_score_of_the_record_follows_from_its_rows(record):
    """Pearson's r has its scores in thousandths."""
    for line in record.lines.values():
        assert answers.score(line) == pytest.approx(100 * line.value, abs=0.01 if line.metric == "pearson" else 1e-9)


def test_the_expected_loss_is_what_comes(made):
    calibrated = made[replay.GRID / "calibration.csv"]
    assert set(calibrated["rows"]) == {30, 60, 100, 200, 1000}
    for name in ("all_slope", "cheaper_slope"):
        assert calibrated[name].between(0.8, 1.25).all(), calibrated


def test_the_constants_of_the_prior_are_those_of_the_record(record):
    gains = record.gains.groupby(["kind", "arm"])["gain"].mean().round(1)
    assert gains.to_dict() == {(kind, arm): gain for kind, of in GAINS["minilm"].items() for arm, gain in of.items()}
    assert round(record.spread(), 1) == SPREAD and round(record.spread(of="trained"), 1) == SPREAD_OF_TRAINED


def test_strategies_are_apart_by_the_geometric_mean_over_other_datasets():
    """By hand: full is 5, 6 and 7 above the probes; the other dataset of texts has 7 and 5, of pairs there is none."""
    one = answers.Record.__new__(answers.Record)
    one.kinds = {"a": ("texts", "x"), "b": ("pairs", "y"), "c": ("texts", "z")}
    arms = {**dict.fromkeys(answers.PROBES, 0), "lora": 6, "full": 6}
    one.thawed = {(task, arm): thawed for task in "abc" for arm, thawed in (arms | {"other": 6}).items()}
    scores = {task: {arm: [70.0] for arm in answers.PROBES} for task in "abc"}
    for gain, mine in zip((5.0, 6.0, 7.0), scores.values(), strict=True):
        mine |= {"lora": [72.0], "full": [70 + gain]}
    one.scores = {(task, "test"): pd.DataFrame(mine) for task, mine in scores.items()}
    assert one.gains["gain"].tolist() == [6.0, 2.0, 5.0, 2.0, 7.0, 2.0]
    assert (
        one.expected("a", "full") == 7 and one.expected("a", "other") == 4.5 and one.expected("a", "linear_probe") == 0
    )
    about = {"x": [0, 0, 0, -2], "y": [0, 0, 2, 6], "z": [0, 0, 0, 2]}
    everything = {name: pd.Series(away).var() for name, away in about.items()}
    assert one.apart["all"].to_dict() == pytest.approx(everything)
    assert one.apart["trained"].to_dict() == pytest.approx({"x": 2.0, "y": 8.0, "z": 2.0})
    assert one.spread("a") == pytest.approx((everything["y"] * everything["z"]) ** 0.25)


def test_advice_stops_where_a_run_may_gain_less_than_its_price_asks_for(record):
    task, draw = replay.SHOWN
    probes = (*answers.PROBES,)
    assert replay.advised(record, task, draw, 0.0)[1] == (*probes, answers.FULL, answers.LORA, answers.TOP_2)
    assert replay.advised(record, task, draw, 4.0)[1] == (*probes, answers.LORA), "the others may gain too little"
    assert replay.advised(record, task, draw, 1000.0)[1] == probes


def test_answers_are_written_from_runs_and_their_data(tmp_path):
    runs = runs_of(tmp_path, {("frozen", "base"): 0.6, ("full", "base"): 0.96}, seeds=(1, 2))
    runs[["train_rows", "missing"]], runs["n"] = (300, ""), 200
    runs["extraction_whole_seconds"] = 50.0
    lines = answers.answers(runs, tmp_path)
    assert len(lines) == 8 and set(lines["type"]) == {"classification"} and set(lines["corpus"]) == {"real"}
    assert [answers.score(line) for line in lines.itertuples()] == pytest.approx((100 * runs["value"]).tolist())
    assert lines["extraction"].tolist() == [50] * 8, "of the rows that train and validate"
    assert set(lines["train"]) == {1.0, 90.0} and len(lines["group"].iloc[0]) == 200


def test_losses_are_to_a_best_that_was_selected_elsewhere(record):
    """By hand: chosen in draw a, the best of b and d scores in c and e, that of c and e in b and d."""
    table = pd.DataFrame({"x": [0, 9, 1, 9, 1], "y": [0, 5, 6, 5, 6], "z": [0, 1, 2, 3, 4]}, index=list("abcde"))
    one = answers.Record.__new__(answers.Record)
    one.scores = {("task", "test"): table}
    assert one.lost("task", "test", ("a",)) == {"x": 3 - 5, "y": 3 - 5.5, "z": 3 - 2.5}
    assert one.lost("task", "test", ("a",), ("y", "z")) == {"y": 0, "z": 3}


def test_strategies_that_are_tried_together_extract_once(record):
    seconds = record.seconds.loc["trec6"]
    trained = seconds.loc[["linear_probe", "top_k k02"], "train"].sum()
    unit = seconds.loc["full", "train"] + seconds.loc["full", "extraction"]
    both = record.price("trec6", ("linear_probe", "top_k k02"))
    assert both == pytest.approx((trained + seconds.loc["top_k k02", "extraction"]) / unit)
    assert both < record.price("trec6", ("linear_probe",)) + record.price("trec6", ("top_k k02",))
    assert record.price("trec6", ("full",)) == 1
