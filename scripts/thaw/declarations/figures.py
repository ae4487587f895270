"""The kinds of figures; see `output_kind.py`."""

from thaw.core import plugins
from thaw.declarations import output_options as options
from thaw.declarations.output_kind import OF_PROBES, Addition, OutputKind, Requirement

FIGURES = {
    "layer_figure": OutputKind(
        "thaw.outputs.figures.layer_curve:build",
        "score against the number of thawed layers, a panel for each task, with the spread over seeds; full "
        "fine-tuning on the right, baselines as broken lines. Figures are written as PDF, SVG, PNG and the CSV behind "
        "them. With minus: the difference to a strategy",
        options.LayerOptions,
    ),
    "cost_figure": OutputKind(
        "thaw.outputs.figures.cost_front:build",
        "score with its interval against the price or another cost, a panel for each task, with the Pareto front",
        options.CostOptions,
        adds=(Addition.DRAWS,),
    ),
    "student_figure": OutputKind(
        "thaw.outputs.figures.student_curve:build",
        "score against the number of layers that a student keeps, a panel for each task, a line for each way of making "
        "one; the full model as a broken line",
        options.ReferenceSplitOptions,
        needs=(Requirement.FULL_AND_STUDENT,),
        adds=(Addition.STUDENTS,),
    ),
    "size_figure": OutputKind(
        "thaw.outputs.figures.learning_curve:build",
        "score and price against the number of training examples, for an experiment with several subsets; draws of a "
        "size and seeds are put together",
        options.SizeOptions,
        needs=(Requirement.SIZES,),
    ),
    "load_figure": OutputKind(
        "thaw.outputs.figures.merged_load:build",
        "against the number of tasks: executed layers, stored parameters by way to serve them, measured time of merges",
        needs=(Requirement.MERGES, Requirement.LATENCY),
        adds=(Addition.MERGES,),
    ),
    "storage_figure": OutputKind(
        "thaw.outputs.figures.merged_load:build_storage",
        "mean score against stored parameters: each merge, and each strategy, merged where its runs may be branches, "
        "else as the encoder once and what each task trains",
        needs=(Requirement.MERGES,),
        adds=(Addition.MERGES,),
    ),
    "trial_figure": OutputKind(
        "thaw.outputs.figures.search_curve:build",
        "the best validation score to expect of 1, 2, ... trials of each search",
        needs=(Requirement.SEARCH,),
    ),
    "saving_figure": OutputKind(
        "thaw.outputs.figures.speedup:build",
        "how many times cheaper a head on the frozen encoder is than the full model, with a line at ten",
        options.ReferenceOptions,
        needs=(Requirement.FULL_AND_FROZEN,),
    ),
    "probe_figure": OutputKind(
        "thaw.outputs.figures.probe_curves:build",
        "score by layer of each probe that the experiment names, a panel for each task, a line for each encoder and "
        "probe, with the spread over seeds",
        options.SplitOptions,
        **OF_PROBES,
    ),
    "normalised_figure": OutputKind(
        "thaw.outputs.figures.normalised_curves:build",
        "scores of linear probes by layer, each task on a scale of its own, pretrained and adapted side by side",
        options.SplitOptions,
        **OF_PROBES,
    ),
    "mix_figure": OutputKind(
        "thaw.outputs.figures.layer_mix:build",
        "edge probing: the weights of the mix of all layers with their centre of gravity, and what each layer adds, "
        "with the expected layer",
        options.MixOptions,
        needs=(Requirement.PROBES, Requirement.ALL_LAYERS),
        adds=(Addition.PROBES,),
    ),
    "information_figure": OutputKind(
        "thaw.outputs.figures.information_curves:build",
        "mutual information by layer: EDGE and k-means in panels of their own, with what shuffled labels give and what "
        "a held-out probe proves",
        options.LastLayerOptions,
        **OF_PROBES,
    ),
    "domain_figure": OutputKind(
        "thaw.outputs.figures.domain_shift:build",
        "divergence of words against score, a panel for each task, a point for each domain that was trained on and "
        "scored",
        options.SplitOptions,
        **OF_PROBES,
    ),
    "quantile_figure": OutputKind(
        "thaw.outputs.figures.task_quantiles:build",
        "difference to full fine-tuning by trained parameters: median, 20th and 80th percentile over tasks",
        options.ReferenceSplitOptions,
        needs=(Requirement.FULL,),
        adds=(Addition.DRAWS,),
    ),
    "gain_figure": OutputKind(
        "thaw.outputs.figures.pretraining_proximity:build",
        "gain of full fine-tuning over training only the head, against how near each task is to what was pretrained "
        "(logme, masked_loss, next_sentence_loss)",
        options.ReferenceOptions,
        needs=(Requirement.PROBES, Requirement.FULL_AND_FROZEN),
        adds=(Addition.PROBES,),
    ),
}
FIGURES |= plugins.shipped("FIGURES")
