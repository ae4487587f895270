"""The kinds of figures; see `output_kind.py`."""

from thaw.declarations import output_options as options
from thaw.declarations.output_kind import Addition, OutputKind, Requirement


def _layer_curve():
    from thaw.outputs.figures.layer_curve import build

    return build


def _cost_front():
    from thaw.outputs.figures.cost_front import build

    return build


def _learning_curve():
    from thaw.outputs.figures.learning_curve import build

    return build


def _search_curve():
    from thaw.outputs.figures.search_curve import build

    return build


def _speedup():
    from thaw.outputs.figures.speedup import build

    return build


def _gradient_norms():
    from thaw.outputs.figures.gradient_norms import build

    return build


def _probe_curves():
    from thaw.outputs.figures.probe_curves import build

    return build


def _normalised_curves():
    from thaw.outputs.figures.normalised_curves import build

    return build


def _representation_change():
    from thaw.outputs.figures.representation_change import build

    return build


def _attention_change():
    from thaw.outputs.figures.attention_change import build

    return build


def _probe_heatmap():
    from thaw.outputs.figures.probe_heatmap import build

    return build


def _layer_mix():
    from thaw.outputs.figures.layer_mix import build

    return build


def _information_curves():
    from thaw.outputs.figures.information_curves import build

    return build


def _domain_shift():
    from thaw.outputs.figures.domain_shift import build

    return build


def _head_pruning():
    from thaw.outputs.figures.head_pruning import build

    return build


def _pretraining_proximity():
    from thaw.outputs.figures.pretraining_proximity import build

    return build


PROBED = {"needs": (Requirement.PROBES,), "adds": (Addition.PROBES,)}

FIGURES = {
    "layer_figure": OutputKind(
        _layer_curve,
        "score against the number of thawed layers, a panel for each task, with the spread over seeds; full "
        "fine-tuning on the right, baselines as broken lines. Figures are written as PDF, SVG, PNG and the CSV behind "
        "them",
        options.SplitOptions,
    ),
    "cost_figure": OutputKind(
        _cost_front,
        "score against the cost of training, a panel for each task, with the Pareto front",
        options.CostOptions,
    ),
    "size_figure": OutputKind(
        _learning_curve,
        "score and seconds of training against the number of training examples, for an experiment with several "
        "subsets; draws of a size and seeds are put together",
        options.SplitOptions,
        (Requirement.SIZES,),
    ),
    "trial_figure": OutputKind(
        _search_curve,
        "the best validation score to expect of 1, 2, ... trials of each search",
        needs=(Requirement.SEARCH,),
    ),
    "saving_figure": OutputKind(
        _speedup,
        "how many times cheaper a head on the frozen encoder is than the full model, with a line at ten",
        options.WholeOptions,
        (Requirement.FULL_AND_FROZEN,),
    ),
    "gradient_figure": OutputKind(
        _gradient_norms,
        "norm of each layer's gradient by epoch, a panel for each task and strategy; needs `gradients: true` in the "
        "experiment",
        needs=(Requirement.GRADIENTS,),
    ),
    "probe_figure": OutputKind(
        _probe_curves,
        "score by layer of each probe that the experiment names, a panel for each task, a line for each encoder and "
        "probe, with the spread over seeds",
        options.SplitOptions,
        **PROBED,
    ),
    "normalised_figure": OutputKind(
        _normalised_curves,
        "scores of linear probes by layer, each task on a scale of its own, pretrained and adapted side by side",
        options.SplitOptions,
        **PROBED,
    ),
    "change_figure": OutputKind(
        _representation_change,
        "how far each layer of an adapted encoder is from the pretrained one, and two seeds from each other",
        **PROBED,
    ),
    "attention_figure": OutputKind(
        _attention_change,
        "how alike the attention of each head is before and after adaptation, a grid of layers and heads",
        **PROBED,
    ),
    "heat_figure": OutputKind(
        _probe_heatmap, "scores of probes as a map, tasks by layers", options.SplitOptions, **PROBED
    ),
    "mix_figure": OutputKind(
        _layer_mix,
        "edge probing: the weights of the mix of all layers with their centre of gravity, and what each layer adds, "
        "with the expected layer",
        options.MixOptions,
        (Requirement.PROBES, Requirement.ALL_LAYERS),
        (Addition.PROBES,),
    ),
    "information_figure": OutputKind(
        _information_curves,
        "mutual information by layer: EDGE and k-means in panels of their own, with what shuffled labels give and what "
        "a held-out probe proves",
        options.LastLayerOptions,
        **PROBED,
    ),
    "domain_figure": OutputKind(
        _domain_shift,
        "divergence of words against score, a panel for each task, a point for each domain that was trained on and "
        "scored",
        options.SplitOptions,
        **PROBED,
    ),
    "heads_figure": OutputKind(
        _head_pruning,
        "importance of attention heads, and the score without those that matter least",
        **PROBED,
    ),
    "gain_figure": OutputKind(
        _pretraining_proximity,
        "gain of full fine-tuning over training only the head, against how near each task is to what was pretrained "
        "(logme, masked_loss, next_sentence_loss)",
        options.WholeOptions,
        (Requirement.PROBES, Requirement.FULL_AND_FROZEN),
        (Addition.PROBES,),
    ),
}
