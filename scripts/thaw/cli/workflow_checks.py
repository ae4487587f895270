"""What the Snakefile checks before jobs start, and how it stops with one sentence."""

import os
import sys
from pathlib import Path
from typing import NoReturn

from thaw.core.errors import UserError
from thaw.planning.plan import Plan


def stop(mistake: UserError) -> NoReturn:
    """Stop the workflow with the sentence of a UserError; under `thaw run` alone, without a place in the Snakefile."""
    if os.environ.get("THAW_RUN"):
        sys.exit(f"error: {mistake}")
    from snakemake.exceptions import WorkflowError

    raise WorkflowError(str(mistake)) from None


def check_replaced_corpora(plan: Plan, jobs) -> None:
    """Stop where a corpus that is there can not be prepared again from its files as they are now.

    Snakemake deletes its folder before the job that prepares it runs, and finished runs need what is in there to be
    exported or scored. Args: jobs of Snakemake that will run.
    """
    for job in jobs:
        if job.rule.name == "prepare" and Path(job.output.card).exists():
            from thaw.data.preparation import check

            try:
                check(plan.job("prepare", plan.key("prepare", job.wildcards)).spec, Path(plan.experiments[0].data_dir))
            except UserError as mistake:
                stop(mistake)
