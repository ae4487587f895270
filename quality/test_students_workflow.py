"""Students and merges in Snakemake: teacher, student, and merge are made, and made again after a change."""

import pytest

from thaw.core.files import read_json
from tiny import tiny_encoder
from workflow import Workplace

SHOWN = {"collect": 1, "table": 1, "report": 1}
MERGED = {"merge": 1}
TAUGHT = {
    "teacher": {"strategy": "short_top", "variant": "k02"},
    "after": {"strategy": "short_top", "variant": "k02"},
    "student": {"layers": 1, "top": 2},
    "phases": [
        {
            "train": ["head", {"top": 2}],
            "rate": "1e-3",
            "epochs": 1,
            "distil": {"logits": {"temperature": 2}, "hidden": {"map": "top"}},
        }
    ],
}
CANDIDATES = [{"short_top": [2]}, "taught"]


def experiment(**changes) -> dict:
    selection = {
        "tasks": ["colour"],
        "strategies": CANDIDATES,
        "seeds": [1, 2],
        "merges": {"one": {"strategies": CANDIDATES}},
        "outputs": ["merges"],
        "compute": {"threads": 1},
    }
    return Workplace.experiment("mine", **selection | changes)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    """A workplace in which a teacher, its student, and a merge of both were made."""
    folder = tmp_path_factory.mktemp("students")
    place = Workplace(folder, tiny_encoder("bert", folder / "tiny"))
    place.files["my/strategies.yaml"]["strategies"]["taught"] = TAUGHT
    place.files["mine.yaml"] = experiment()
    for name, content in place.files.items():
        place.write(name, content)
    place.printed = place.snakemake()
    return place


def changed(place: Workplace, strategy: str, **phase) -> dict[str, int]:
    """Return what is planned when a phase of a strategy is another."""
    strategies = place.files["my/strategies.yaml"]["strategies"]
    (own,) = strategies[strategy]["phases"]
    entry = strategies[strategy] | {"phases": [own | phase]}
    place.write("my/strategies.yaml", {"strategies": strategies | {strategy: entry}})
    planned = place.planned()
    place.write("my/strategies.yaml", place.files["my/strategies.yaml"])
    train = sum(count for rule, count in planned.items() if rule.startswith("train"))
    return {rule: count for rule, count in planned.items() if not rule.startswith("train")} | {"train": train}


@pytest.mark.slow
def test_a_change_makes_again_what_depends_on_it_and_nothing_else(place):
    assert place.planned() == {}
    students = {"train": 2, **MERGED, **SHOWN}
    assert changed(place, "short_top", rate="2e-3") == students | {"train": 4, "teach": 2}
    warmer = {"logits": {"temperature": 4}, "hidden": {"map": "top"}}
    assert changed(place, "taught", distil=warmer) == students
    # inner states are made with the others of their teacher, whose logits come out the same: nothing else is taught
    inner = {"logits": {"temperature": 2}, "hidden": {"map": {2: 2}}}
    assert changed(place, "taught", distil=inner) == students | {"teach": 2}


@pytest.mark.slow
def test_a_choice_merges_again(place):
    drawn = {"table": 1, "report": 1}
    for more, planned in (
        ({"merges": {"one": {"strategies": CANDIDATES, "margin": 3}}}, MERGED | drawn),
        ({"merges": {"one": {"strategies": CANDIDATES, "label": "Another"}}}, drawn),
    ):
        place.write("mine.yaml", experiment(**more))
        assert place.planned() == planned, more
    place.write("mine.yaml", place.files["mine.yaml"])
    assert place.planned() == {}


@pytest.mark.slow
def test_each_seed_of_a_job_has_its_own_teacher(place):
    results = place.folder / "results"
    for seed in ("seed1", "seed2"):
        record = read_json(results / f"runs/colour/all/tiny/linear/taught/base/{seed}/metrics.json")
        card = results / f"taught/colour/all/tiny/linear/short_top/k02/{seed}/all/card.json"
        teacher = results / f"runs/colour/all/tiny/linear/short_top/k02/{seed}/metrics.json"
        assert record["spec"]["teacher"] == {"taught": read_json(card)["digest"]}
        assert read_json(card)["spec"]["run"] == read_json(teacher)["digest"] == record["spec"]["after"]["run"]
    check = read_json(results / "merges/all/tiny/one/check.json")
    assert check["passed"] and all(part["same_bits"]["equal"] for part in check["tasks"].values())
