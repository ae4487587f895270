"""What a comparison must name: pooling, view, frozen dropout and the budget of searches, where not all are alike."""

import pytest

from thaw.planning.config_files import read_config
from thaw.planning.configuration import load_plan
from thaw.planning.confounders import of_selection, sentences
from thaw.planning.run_grid import RunPlanner
from thaw.schema.catalogue import Catalogue, shipped
from thaw.schema.experiment import ExperimentConfig

ALIKE = {"lee2019": ["lee_full", "lee_top_k_searched"], "wei2022": ["wei_full", "wei_top_k"]}
ALIKE |= {"peters2019": ["peters_features", "peters_tuned", "peters_tuned_slanted", "peters_tuned_gradual"]}
ALIKE |= {"houlsby2019": ["houlsby_full", "houlsby_top_n", "houlsby_layer_norm", "houlsby_adapters_64"]}
ALIKE |= {"ulmfit": ["ulmfit_last", "ulmfit_full", "ulmfit_chain_thaw", "ulmfit_freez", "ulmfit_freez_discr_stlr"]}
ALIKE |= {"wang2019": ["wang_finetune_only", "wang_stack_finetune", "wang_finetune_long"]}


def said(home, strategies, heads=("linear",), tasks=("sst2",)) -> list[str]:
    catalogue = Catalogue(shipped(home))
    chosen = {"tasks": list(tasks), "encoders": ["minilm"], "strategies": strategies, "heads": list(heads)}
    experiment = ExperimentConfig(experiment="e", title="t", seeds=[1], outputs=["main_table"], **chosen)
    return sentences(experiment, catalogue, RunPlanner(experiment, catalogue))


def test_nothing_is_said_where_all_are_alike(home):
    assert said(home, ["full", "stack_then_finetune"]) == []


def test_each_thing_that_differs_is_named(home):
    found = said(home, ["lee_full", "lee_top_k", "lee_top_k_dropout"])
    assert found == [
        "Dropout in the frozen layers is off (Top-k fine-tuning (Lee et al.)); on (Top-k fine-tuning, dropout in "
        "frozen layers (Lee et al.)).",
        "Settings were searched with 25 trainings (Full fine-tuning (Lee et al.)); those of Full fine-tuning "
        "(Lee et al.) (Top-k fine-tuning (Lee et al.); Top-k fine-tuning, dropout in frozen layers (Lee et al.)).",
    ]
    (pairs,) = said(home, ["full", "full_separate"], tasks=["mrpc"])
    assert pairs.startswith("Pairs are read in one sequence (Full fine-tuning); each text separately (")
    (pooled,) = said(home, ["full"], heads=["linear", "linear_pooler"])
    assert pooled.startswith("Pooled by first (") and "; pooler (" in pooled


@pytest.mark.parametrize("experiment", ALIKE)
def test_strategies_of_a_paper_have_the_same_search_budget_each_with_its_own_rates(experiment, catalogue):
    spent = {}
    for name in ALIKE[experiment]:
        search = catalogue.get("strategies", name, "test").search
        spent[name] = len(search.trials()) * len(search.seeds)
    assert len(set(spent.values())) == 1, spent


def test_every_table_is_told_and_no_figure(home, tmp_path):
    more = {"data_dir": str(tmp_path), "tasks": ["mrpc"]}
    plan = load_plan(read_config([str(home / "config/experiments/wei2022.yaml")], more), home)
    assert "differs" not in plan.job("figure", "wei2022/layers").spec
    differs = plan.job("table", "wei2022/main_table").spec["differs"]
    assert len(differs) == 1 and "dropout" in differs[0], "all were searched alike"
    plan = load_plan(read_config([str(home / "config/experiments/lee2019.yaml")], more), home)
    told = plan.job("table", "lee2019/lee2019_comparisons").spec["differs"]
    assert told[-1].startswith(
        "Settings were searched with 25 trainings (Full fine-tuning (Lee et al.); Top-k fine-tuning, own learning "
        "rates)"
    )


def favoured(home, strategies, tasks=("sst2",), seeds=(1, 2)) -> list[str]:
    chosen = {"tasks": list(tasks), "encoders": ["minilm"], "strategies": strategies, "seeds": list(seeds)}
    experiment = ExperimentConfig(experiment="e", title="t", outputs=["main_table"], **chosen)
    return of_selection(experiment, Catalogue(shipped(home)))


def test_what_validation_favours_is_said_before_anything_runs(home):
    """Seven penalties, on pairs with two ways to read them, against one setting; and a search on a reported seed."""
    assert favoured(home, ["full", "stack_then_finetune"]) == []
    (single,), (pair,) = favoured(home, ["frozen", "full"]), favoured(home, ["frozen", "full"], ["mrpc"])
    assert single.endswith("favour a strategy): 7 (Linear probe); 1 (Full fine-tuning).")
    assert pair.endswith("strategy): 14 (Linear probe); 1 (Full fine-tuning).")
    (commas,) = favoured(home, ["frozen", "linear_probe_all_layers", "full"])
    assert commas.endswith("7 (Linear probe; Linear probe, all layers); 1 (Full fine-tuning).")
    (lowest,) = favoured(home, ["frozen_lowest_layer", "full"], ["mrpc"])
    assert "strategy): 98 (Linear probe, lowest" in lowest, "seven penalties for two readings of seven layers"
    (parts,) = favoured(home, ["head2toe", "full"])
    assert "strategy): 42 (" in parts, "seven penalties for six fractions"
    (warned,) = favoured(home, ["stack_searched"])
    assert warned.startswith("Warning: Stack, then fine-tune, rates searched is searched with seed 1, which this")
    assert favoured(home, ["stack_searched"], seeds=(2, 3)) == favoured(home, ["lee_full", "lee_top_k"]) == []
