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
    "size_figure": OutputKind(
        "thaw.outputs.figures.learning_curve:build",
        "score and price against the number of training examples, for an experiment with several subsets; draws of a "
        "size and seeds are put together",
        options.SizeOptions,
        needs=(Requirement.SIZES,),
    ),
    "probe_figure": OutputKind(
        "thaw.outputs.figures.probe_curves:build",
        "score by layer of each probe that the experiment names, with the spread over seeds; a panel for each task, a "
        "line for each encoder and probe",
        options.SplitOptions,
        **OF_PROBES,
    ),
}
FIGURES |= plugins.shipped("FIGURES")
