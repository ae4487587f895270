"""Settings: every mistake in a catalogue or experiment is one sentence with file, line and key."""

import pytest
import yaml

from conftest import MESSAGES
from plans import plan_of
from thaw.core.errors import UserError
from thaw.planning.compatibility import check_splits
from thaw.schema.catalogue import Catalogue, shipped
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.phases import PhaseConfig
from thaw.schema.yaml_files import read_yaml


def test_an_id_in_two_catalogues_is_refused_and_both_places_named(tmp_path):
    corpora = "corpora:\n  reviews: {texts: [text], targets: {label: label}, synthetic: acceptability}\n"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tasks.yaml").write_text(corpora)
    with pytest.raises(UserError, match=r"b/tasks.yaml:2: corpora.reviews exists already, in .*a/tasks.yaml:2; "):
        Catalogue([tmp_path / "a", tmp_path / "b"])


def test_an_id_that_exists_is_told_a_free_one_and_can_be_replaced_on_purpose(tmp_path, home):
    def own(more: str) -> Catalogue:
        keys = f"corpus: sst2, target: sentiment, type: classification, metrics: [accuracy]{more}"
        (tmp_path / "tasks.yaml").write_text(f"tasks:\n  rte: {{{keys}}}\n")
        return Catalogue([*shipped(home), tmp_path])

    with pytest.raises(UserError, match=r"tasks.yaml:2: tasks.rte exists .*; call yours my_rte, or say override: true"):
        own("")
    replaced = own(", override: true").get("tasks", "rte", "test")
    assert replaced.corpus == "sst2"


def test_an_alias_stands_for_its_entry_wherever_it_is_written(tmp_path, home):
    (tmp_path / "strategies.yaml").write_text(
        "strategies:\n"
        "  mine: {base: budget_full, after: frozen_sgd, aliases: [ours]}\n"
        "  taught: {base: hinton, teacher: {strategy: full_400_updates}}\n"
    )
    (tmp_path / "outputs.yaml").write_text("outputs:\n  way_2: {base: way, start: frozen, reference: ours}\n")
    catalogue = Catalogue([*shipped(home), tmp_path])
    assert catalogue.get("strategies", "ours", "test").phases == catalogue.get("strategies", "full", "test").phases
    assert catalogue.get("strategies", "taught", "test").teacher.strategy == "full"
    way = catalogue.get("outputs", "way_2", "test")
    assert (way.start, way.reference) == ("linear_probe", "mine")
    wish = {"catalogues": [str(tmp_path)], "strategies": ["frozen", {"top_k_400_updates": [2]}, "ours"]}
    wish |= {"only": {"frozen": ["acceptability"]}, "outputs": ["way_2"]}
    plan = plan_of(**wish)
    assert {run.strategy for run in plan.runs} == {
        "linear_probe",
        "top_k",
        "mine",
        "frozen_sgd",
        "frozen_separate",
    }
    assert {run.task for run in plan.runs if run.strategy == "linear_probe"} == {"acceptability"}


def test_a_rate_by_width_is_that_of_the_largest_width_not_above_the_encoders(catalogue):
    rates = {"rate": {384: "2e-4", 768: 3e-5}}
    phase = PhaseConfig.model_validate({"train": ["all"]} | rates)
    assert [phase.at_width(width).rate for width in (128, 384, 767, 768, 1024)] == [2e-4, 2e-4, 2e-4, 3e-5, 3e-5]
    assert phase.at_width(768).at_width(384).rate == 3e-5, "one number stays"


def test_an_empty_catalogue_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match="has none of"):
        Catalogue([tmp_path])
    with pytest.raises(UserError, match="folder '.*absent' does not exist"):
        Catalogue([tmp_path / "absent"])


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "tasks.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not UTF-8 text"):
        read_yaml(tmp_path / "tasks.yaml")


def test_what_is_said_of_a_strategy_is_not_taken_over_where_something_else_trains(tmp_path):
    text = """strategies:
  a: {about: All trains., phases: [{train: [all], epochs: 3}]}
  longer: {base: a, phases: [{train: [all], epochs: 9}]}
  other: {base: a, phases: [{train: [head], epochs: 3}]}
  plain: {base: a, phases: [{train: [all], epochs: 3, optimizer: bert_adam}]}
"""
    (tmp_path / "strategies.yaml").write_text(text)
    catalogue = Catalogue([tmp_path])
    told = {name: catalogue.get("strategies", name, "test").about for name in ("a", "longer", "other", "plain")}
    assert told == {"a": "All trains.", "longer": "All trains.", "other": None, "plain": None}


def test_base_takes_over_all_keys_but_the_label(tmp_path):
    text = "heads:\n  a: {label: A, kind: linear, pooling: max}\n  b: {base: a, dropout: 0.3}\n"
    (tmp_path / "heads.yaml").write_text(text)
    head = Catalogue([tmp_path]).get("heads", "b", "test")
    assert (head.pooling, head.dropout, head.label) == ("max", 0.3, None)


def test_the_words_of_the_settings_are_those_of_the_registries():
    from thaw.adaptation.schedules import SCHEDULES
    from thaw.declarations.task_types import METRICS
    from thaw.evaluation.metrics import METRICS as metric_functions

    assert set(metric_functions) == set(METRICS)
    assert set(SCHEDULES) == set(PhaseConfig.model_fields["schedule"].annotation.__args__)


def check(folder, corpus: str, subset: str = "all", **task) -> None:
    """Check a task on a corpus with these splits, as the plan of an experiment does."""
    keys = yaml.safe_load(corpus)
    files = {"texts": ["text"], "targets": {"label": "label"}, "files": {"format": "csv", "splits": keys.pop("splits")}}
    task |= {"corpus": "p", "target": "label", "type": "classification", "metrics": ["accuracy"]}
    subsets = {"all": {}, "few": {"rows": 100, "validation": 0.2}}
    content = {"corpora": {"p": files | keys}, "tasks": {"p": task}, "subsets": subsets}
    (folder / "tasks.yaml").write_text(yaml.safe_dump(content))
    chosen = {"experiment": "mine", "title": "mine", "tasks": ["p"], "encoders": ["e"], "strategies": ["full"]}
    chosen |= {"seeds": [1], "outputs": ["main_table"], "subsets": [subset]}
    check_splits(Catalogue([folder]), ExperimentConfig.model_validate(chosen), "p", "files")


@pytest.mark.parametrize("corpus", MESSAGES["splits of a corpus"])
def test_splits_that_a_task_lacks_are_told_before_anything_runs(tmp_path, recorded, corpus):
    with pytest.raises(UserError) as caught:
        check(tmp_path, corpus)
    recorded("splits of a corpus", corpus, str(caught.value).replace(f"{tmp_path}/", ""))


def test_splits_may_have_other_names_be_joined_or_be_held_out_of_train(tmp_path):
    check(tmp_path, "{splits: {train: a, dev: b, test: c}}", validation="dev")
    check(tmp_path, "{splits: {train: a, dev: b, test: c}}", validation="test", protocol="paper")
    check(tmp_path, "{splits: {train: a, dev: b, test: c, more: d}, join: {validation: [dev, more]}}")
    check(tmp_path, "{splits: {train: a, test: c}}", subset="few")
