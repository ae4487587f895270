"""What happens when the workflow starts, fails and succeeds: what onstart, onerror and onsuccess do.

Prepared corpora that are about to be prepared again are kept until that went well. Snakemake deletes what a job has
made before it runs, and a file that became wrong would else leave finished runs without their texts.
"""

import contextlib
import os
import shutil
import sys
from pathlib import Path

from thaw.cli.show_command import summary
from thaw.core import fork_server, layout
from thaw.core.errors import UserError
from thaw.core.phrases import plural
from thaw.planning import run_progress
from thaw.planning.plan import Plan
from thaw.planning.prepared_checks import refuse_shortfalls


@contextlib.contextmanager
def one_sentence():
    """Print a mistake of the user's as one sentence: `thaw run` alone, Snakemake with the place in the Snakefile."""
    from snakemake.exceptions import WorkflowError

    try:
        yield
    except UserError as mistake:
        if os.environ.get("THAW_RUN"):
            sys.exit(f"error: {mistake}")
        raise WorkflowError(str(mistake)) from None


class WorkflowEvents:
    """The events of one call of Snakemake. Args: its plan, its workflow, its logger, the folder of the package."""

    def __init__(self, plan: Plan, workflow, logger, code: Path):
        """Do nothing yet: Snakemake reads the Snakefile for dry runs too."""
        self.plan, self.workflow, self.logger, self.code = plan, workflow, logger, code
        self.progress: run_progress.RunProgress | None = None

    def start(self) -> None:
        """Say what the plan has to say, keep what `prepare` replaces, and count jobs from now on.

        Raises UserError where an experiment is asked for that cannot be finished; --keep-going runs what can be.
        """
        if self._is_whole() and not self.workflow.execution_settings.keep_going:
            refuse_shortfalls(self.plan)
        dag = self.workflow.dag
        put_back(self.plan.results)  # after a run that was killed
        set_aside([Path(job.output.card).parent for job in dag.needrun_jobs() if job.rule.name == "prepare"])
        for sentence in self.plan.left_out:
            self.logger.info(sentence)
        if self._is_whole() and self.plan.status.deleted:
            files = plural(len(self.plan.status.deleted), "file is", "files are")
            self.logger.info(f"Of the results that a report shows {files} gone and made again.")
        threads = min(self.plan.threads, self.workflow.cores or self.plan.threads)
        if self.workflow.local_exec:  # on a cluster the login node shows nothing else of a job
            self._run_here(threads)
        outputs = {job.jobid: list(map(str, job.output)) for job in dag.needrun_jobs()}
        self.progress = run_progress.RunProgress(run_progress.estimated(self.plan, outputs, threads), self._write_line)
        self.logger.addHandler(self.progress)

    def fail(self) -> None:
        """Put back what `prepare` did not replace, and say which jobs failed."""
        put_back(self.plan.results)
        for sentence in self.progress.mistakes() if self.progress else ():
            self.logger.error(sentence)

    def succeed(self) -> None:
        """Put back what `prepare` did not replace, and print the results of a whole experiment."""
        put_back(self.plan.results)
        if self._is_whole():
            page = Path(self.plan.results, layout.file("report", {"experiment": self.plan.name}))
            self.logger.info(f"\n{summary(page.parent)}")

    def _is_whole(self) -> bool:
        """Return whether the whole experiment was asked for, and not some of its files."""
        return any(job.rule.name == "all" for job in self.workflow.dag.jobs)

    def _run_here(self, threads: int) -> None:
        """Start the process that jobs are forked from, and say one line on all jobs instead of Snakemake's on each."""
        for handler in self.logger.handlers:
            if handler.name == "DefaultStreamHandler":
                handler.addFilter(run_progress.is_shown)
        fork_server.start(self.code, threads)
        # How many jobs may start in a second is for clusters. At every job that starts or ends it sets a timer that has
        # all open jobs looked through once a second from then on, and for the last of which Snakemake waits at its end.
        if run_progress.is_default_limit(self.workflow.scheduling_settings.max_jobs_per_timespan):
            self.workflow.scheduler.job_rate_limiter = None

    def _write_line(self, line: str) -> None:
        from snakemake.settings.enums import Quietness

        self.logger.info(line, extra={"quietness": Quietness.PROGRESS})


ENDING = ".aside"  # no id of a corpus has a dot


def set_aside(folders: list[Path]) -> None:
    """Keep prepared corpora next to their folders, as links to the same files where the disk has them."""
    for folder in folders:
        if (folder / "card.json").exists():
            shutil.copytree(folder, folder.with_name(folder.name + ENDING), copy_function=_link)


def put_back(results) -> None:
    """End what `set_aside` began: where a corpus was not prepared, what was kept of it takes its place."""
    for aside in Path(results, layout.top_folders(("prepare",))[0]).glob(f"*{ENDING}"):
        folder = aside.with_name(aside.name.removesuffix(ENDING))
        if (folder / "card.json").exists():
            shutil.rmtree(aside)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            aside.rename(folder)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)
