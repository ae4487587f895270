"""Searches of strategies that are compared: as many trainings each, and a warning of seeds that are reported too."""

import pytest

from thaw.planning.searches import reported_seeds
from thaw.schema.catalogue import Catalogue, shipped
from thaw.schema.experiment import ExperimentConfig

ALIKE = {"lee2019": ["lee_full", "lee_top_k_searched"], "wei2022": ["wei_full", "wei_top_k"]}
ALIKE |= {"peters2019": ["peters_features", "peters_tuned", "peters_tuned_slanted", "peters_tuned_gradual"]}
ALIKE |= {"houlsby2019": ["houlsby_full", "houlsby_top_n", "houlsby_layer_norm", "houlsby_adapters_64"]}
ALIKE |= {"ulmfit": ["ulmfit_last", "ulmfit_full", "ulmfit_chain_thaw", "ulmfit_freez", "ulmfit_freez_discr_stlr"]}
ALIKE |= {"wang2019": ["wang_finetune_only", "wang_stack_finetune", "wang_finetune_long"]}


@pytest.mark.parametrize("experiment", ALIKE)
def test_strategies_of_a_paper_have_the_same_search_budget_each_with_its_own_rates(experiment, catalogue):
    spent = {}
    for name in ALIKE[experiment]:
        search = catalogue.get("strategies", name, "test").search
        spent[name] = len(search.trials()) * len(search.seeds)
    assert len(set(spent.values())) == 1, spent


def warned(home, strategies, seeds=(1, 2)) -> list[str]:
    chosen = {"tasks": ["sst2"], "encoders": ["minilm"], "strategies": strategies, "seeds": list(seeds)}
    experiment = ExperimentConfig(experiment="e", title="t", outputs=["main_table"], **chosen)
    return reported_seeds(experiment, Catalogue(shipped(home)))


def test_a_search_on_a_reported_seed_is_warned_of_before_anything_runs(home):
    (warning,) = warned(home, ["stack_searched"])
    assert warning.startswith("Warning: Stack, then fine-tune, rates searched is searched with seed 1, which this")
    assert warned(home, ["stack_searched"], seeds=(2, 3)) == warned(home, ["lee_full", "lee_top_k"]) == []
