"""The kinds of tables; see `output_kind.py`."""

from thaw.declarations import output_options as options
from thaw.declarations.decision import FEWEST_OF_INTERVAL, FEWEST_SEEDS
from thaw.declarations.output_kind import Addition, OutputKind, Requirement


def _scores():
    from thaw.outputs.tables.scores import build

    return build


def _transfer():
    from thaw.outputs.tables.scores import build_transfer

    return build_transfer


def _reproduction():
    from thaw.outputs.tables.reproduction import build

    return build


def _claims():
    from thaw.outputs.tables.claims import build

    return build


def _recommendation():
    from thaw.outputs.tables.recommendation import build

    return build


def _serving():
    from thaw.outputs.tables.serving import build

    return build


def _variance():
    from thaw.outputs.tables.variance import build

    return build


def _pairwise_tests():
    from thaw.outputs.tables.pairwise_tests import build

    return build


def _guidelines():
    from thaw.outputs.tables.guidelines import build

    return build


def _relative():
    from thaw.outputs.tables.relative import build

    return build


def _parameters():
    from thaw.outputs.tables.parameters import build

    return build


RUNS = (Addition.DIFFERENCES,)  # a table that compares runs says in what else they differ

TABLES = {
    "strategy_table": OutputKind(
        _scores,
        "strategies by tasks: mean ± standard deviation over seeds, × 100; the highest on validation in bold, "
        "baselines above the rule, predictions made elsewhere below. Written as CSV, LaTeX (booktabs), Markdown and "
        "HTML, as all tables",
        options.SplitOptions,
        adds=RUNS,
    ),
    "transfer_table": OutputKind(
        _transfer,
        "the same on the test splits of other tasks, for tasks that name some (`also:`)",
        needs=(Requirement.TRANSFER,),
        adds=RUNS,
    ),
    "paper_table": OutputKind(
        _reproduction,
        "a table of config/reference: each published number, ours with its interval, the difference, and what is not "
        "as in the paper",
        options.PrintedOptions,
        adds=(*RUNS, Addition.PRINTED),
    ),
    "finding_table": OutputKind(
        _claims,
        "the claims of config/findings.yaml that the experiment's runs can test, and the verdicts",
        needs=(Requirement.CLAIMS,),
        adds=(*RUNS, Addition.CLAIMS),
        seeds=FEWEST_SEEDS,
    ),
    "advice_table": OutputKind(
        _recommendation,
        "by task the cheapest strategy that validation shows to be within a margin of the best, its score on test, "
        "what is undecided, and what papers would advise (config/advice.yaml)",
        options.MarginOptions,
        adds=(*RUNS, Addition.ADVICE),
        seeds=FEWEST_OF_INTERVAL,
    ),
    "serving_table": OutputKind(
        _serving,
        "several tasks on one frozen trunk: what each number of thawed layers scores, and how many layers are executed "
        "for all tasks",
        options.ServingOptions,
        (Requirement.FULL_AND_SWEEP,),
        (*RUNS, Addition.LAYERS),
    ),
    "spread_table": OutputKind(
        _variance,
        "how much of the standard deviation of scores comes from initialisation, data order and the draw of "
        "the subset, for an experiment with several seeds, orders or draws",
        options.SplitOptions,
        (Requirement.LEVELS,),
        RUNS,
    ),
    "comparison_table": OutputKind(
        _pairwise_tests,
        "every strategy against one: difference with its interval, effect size, and p adjusted for the whole table",
        options.WholeSplitOptions,
        (Requirement.FULL,),
        RUNS,
        FEWEST_SEEDS,
    ),
    "guideline_table": OutputKind(
        _guidelines,
        "frozen or fine-tuned, large or small head, by type of task, as the runs say and as papers say "
        "(config/advice.yaml)",
        options.GuidelineOptions,
        (Requirement.SIDES,),
        (*RUNS, Addition.GUIDELINES),
        FEWEST_OF_INTERVAL,
    ),
    "relative_table": OutputKind(
        _relative,
        "every strategy compared with full fine-tuning: difference, share of its score, share of the way from chance; "
        "no shares where full fine-tuning is not clearly above chance",
        options.WholeSplitOptions,
        (Requirement.FULL,),
        RUNS,
    ),
    "parameter_table": OutputKind(
        _parameters, "how many parameters of each encoder are in its embeddings, a layer and its pooler"
    ),
}
