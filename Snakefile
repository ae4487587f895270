"""Thaw: how much of a pretrained encoder should one thaw, and what does each choice cost?

Paths of results (all below results/):
    data/<corpus>/                                       prepared texts, one Parquet file a split, card.json
    encoders/<encoder>/                                  weights and tokenizer as they were found, card.json
    encoders/<encoder>.<further pretraining>.<corpus>/   the same after further pretraining; so in features/ too
    features/<encoder>/<corpus>/<view>/                  frozen hidden states: tokens.json, b<n>.json and payloads
    runs/<task>/<subset>/<encoder>/<head>/<strategy>/<variant>/seed<n>/     one run: metrics.json, cost.json, ...
    adapted/<as of a run>/<task>/                        hidden states that the run's encoder gives, for probes
    probes/<task>/<subset>/<encoder>/<probe>/<of>/       what can be read off each layer: metrics.json, layers.csv
    baselines/<task>/<subset>/<baseline>/                what needs no encoder
    ensembles/<task>/<subset>/<id>/                      combined predictions of several runs
    merges/<subset>/<encoder>/<id>/                      several tasks on one trunk, as a folder that serves
    outputs/<experiment>/                                runs.csv, runs.json, tables/, figures/, report.html

Snakemake's DAG is computed by load_plan (scripts/thaw/planning/). It reads the configuration and says which jobs there are,
what each reads and under which spec it runs. Input functions and params of the rules only look that up. A finished result
carries the digest of its spec, and Snakemake's records of params are compared with the planned spec.

config/*.yaml (catalogues) define what exists, and what is wanted is in config/config.yaml or config/experiments/*.yaml,
how it is computed in scripts/thaw/steps/, one module per rule of the same name.
"""

import gc
import sys
from pathlib import Path

from snakemake.logging import logger
from snakemake.utils import min_version

min_version("9.27")

# A plan of many jobs makes millions of objects that stay. Looking for garbage among them after every 700 new ones took a
# tenth of the time of planning.
gc.set_threshold(50_000)


report: "workflow/report/workflow.rst"


# For --sdm apptainer: the image that docs/howto/snakemake.md builds from the Dockerfile.
container: str(Path(workflow.current_basedir.get_path_or_uri(secret_free=True), "thaw.sif"))


# The folder of this file, also where another workflow uses it as a module.
HOME = Path(workflow.current_basedir.get_path_or_uri(secret_free=True))
# Next to this file in a checkout; in a wheel this file is in thaw/home, below the folder that holds the package.
CODE = HOME / "scripts" if (HOME / "scripts").is_dir() else HOME.parents[1]
sys.path.insert(0, str(CODE))
# A prefix takes the place of Snakemake's own, which makes a failed step before `| tee` a failed job.
shell.prefix(f"set -euo pipefail; export PYTHONPATH={str(CODE)!r}; ")

from thaw.cli.workflow_events import WorkflowEvents, one_sentence
from thaw.planning.configuration import load_plan
from thaw.planning.questions import Questions

# A configfile: line leaks into every selection that leaves a key out, so it is read only when none was given.
if "experiment" not in config:

    configfile: HOME / "config/config.yaml"


with one_sentence():
    PLAN = load_plan(config, HOME, files=workflow.configfiles)
ASK = Questions(PLAN)  # what the rules look up


EVENTS = WorkflowEvents(PLAN, workflow, logger, CODE)


onstart:
    with one_sentence():
        EVENTS.start()


onerror:
    EVENTS.fail()


onsuccess:
    EVENTS.succeed()


wildcard_constraints:
    **{
        name: "[a-z0-9_]+"
        for name in (
            "corpus",
            "encoder",
            "further",
            "view",
            "task",
            "subset",
            "head",
            "strategy",
            "variant",
            "ensemble",
            "merge",
            "probe",
        )
    },


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/features.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/teach.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/probe.smk"
include: "workflow/rules/ensemble.smk"
include: "workflow/rules/merge.smk"
include: "workflow/rules/outputs.smk"


rule all:
    """Tables, figures and report of the chosen experiment."""
    default_target: True
    input:
        [f"{PLAN.results}/outputs/{PLAN.name}/{page}.html" for page in ("report", "runs")],
        # Named with the report, so that one which the experiment got since is made though Snakemake's own notes are gone.
        ASK.report_files(),
        PLAN.status.merged(),
        lambda _: PLAN.status.deleted,
        [f"{folder}/freed" for folder in ASK.freed()],
