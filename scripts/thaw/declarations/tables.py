"""The kinds of tables; see `output_kind.py`."""

from thaw.core import plugins
from thaw.declarations import output_options as options
from thaw.declarations.output_kind import OF_PROBES, Addition, OutputKind, Requirement

TABLES = {
    "strategy_table": OutputKind(
        "thaw.outputs.tables.scores:build",
        "strategies by tasks: mean ± standard deviation over seeds, × 100; the highest on validation in bold, "
        "baselines above the rule, ensembles below. Written as CSV, LaTeX (booktabs), Markdown and "
        "HTML, as all tables",
        options.ScoresOptions,
        adds=(Addition.DRAWS,),
    ),
    "transfer_table": OutputKind(
        "thaw.outputs.tables.scores:build_transfer",
        "the same on the test splits of other tasks, for tasks that name some (`transfer_sets:`)",
        needs=(Requirement.TRANSFER,),
    ),
    "paper_table": OutputKind(
        "thaw.outputs.tables.reproduction:build",
        "a table of config/reference: each published number, ours with its interval, the difference, and what is not "
        "as in the paper",
        options.PrintedOptions,
        adds=(Addition.PRINTED,),
    ),
    "protocol_table": OutputKind(
        "thaw.outputs.tables.protocol_notes:build",
        "settings of a paper or of its code, ours as the catalogues have them or in words, and why they differ",
        options.PaperOptions,
        adds=(Addition.PROTOCOL,),
    ),
    "finding_table": OutputKind(
        "thaw.outputs.tables.claims:build",
        "the claims of config/findings.yaml that the experiment's runs can test: on how many tasks the difference is "
        "higher, lower or open",
        options.FindingOptions,
        needs=(Requirement.CLAIMS,),
        adds=(Addition.CLAIMS, Addition.DRAWS),
    ),
    "advice_table": OutputKind(
        "thaw.outputs.tables.recommendation:build",
        "by task the strategy to take, and of each one its expected loss and its price",
        options.AdviceOptions,
        needs=(Requirement.ONE_ANSWER,),
        adds=(Addition.DRAWS,),
        advises=True,
    ),
    "comparison_table": OutputKind(
        "thaw.outputs.tables.relative:build",
        "every strategy less one: differences with one 95 % interval for the whole table, and their price",
        options.ReferenceSplitOptions,
        needs=(Requirement.FULL,),
        adds=(Addition.DRAWS,),
    ),
    "relative_table": OutputKind(
        "thaw.outputs.tables.relative:build",
        "the same as comparison_table, and the share of the way from a strategy that thaws nothing to full fine-tuning",
        options.RelativeOptions,
        needs=(Requirement.FULL,),
        adds=(Addition.DRAWS,),
    ),
    "merge_table": OutputKind(
        "thaw.outputs.tables.merged:build",
        "runs of several tasks merged on one trunk (`merges:`); layers and score of each branch, stored parameters; "
        "executed layers for one text of each input and for one text of all tasks",
        needs=(Requirement.MERGES,),
        adds=(Addition.MERGES,),
    ),
    "layer_table": OutputKind(
        "thaw.outputs.tables.by_layer:build",
        "scores of probes by layer, a row for each task and score, a group for each encoder, pretrained or adapted; "
        "mean ± standard deviation over seeds, the best layer in bold; the baseline in the last column",
        options.SplitOptions,
        **OF_PROBES,
    ),
    "information_table": OutputKind(
        "thaw.outputs.tables.by_layer:build_information",
        "mutual information by layer: the lower bound of a held-out probe, EDGE and k-means, and what shuffled labels "
        "give",
        options.SplitOptions,
        **OF_PROBES,
    ),
}
TABLES |= plugins.shipped("TABLES")
