"""
What all rules share: how a job reads files that another job made, and what it asks of a cluster.

A result carries the digest of its spec. Where the planned digest is already there, what made its inputs is part of it
and their time stamps say nothing: they are ancient. Where it is not, they are plain inputs, because Snakemake looks at
no job's params once a job above it runs: an ancient chain would stop after its first link.

Rules declare the files that they write, but for the tensors of a run that keeps its encoder. A job names one file of each result that it reads: Snakemake looks for no
other, so that a result without a file that an older version did not write, or whose payload was deleted to free disk,
is as finished as before. Jobs share a disk.

Memory and time follow from the encoder, the work and whether a GPU is asked for; on one machine gpu_mb alone limits.
Partitions, accounts and GPUs are site-specific and set in no rule: workflow/profiles/slurm says how to ask for them.
"""

import re
from functools import cache

from snakemake.persistence import PersistenceBase
from thaw.core.devices import memory_mb
from thaw.core.fork_server import OF_CORES
from thaw.core.layout import WRITTEN
from thaw.declarations.needs import NEEDS
from thaw.planning import run_progress
from thaw.planning.job_request import first_of_cells, request
from thaw.planning.questions import by_file

ROLES = [name for name, role in NEEDS.items() if role.digest]  # in which a run needs other jobs

# Snakemake compares a job's params with the recorded ones only where it has a record of every declared file. A result
# that was made when fewer files were declared lacks some: one is enough, else an edited setting would go unnoticed.
PersistenceBase.has_metadata = lambda self, job: not job.output or any(map(self.metadata, job.output))

# Of a job that several processes share each has the threads of any job; by its `threads` each would have all its cores.
OF_ONE_PROCESS = "export " + " ".join(f"{name}={PLAN.threads}" for name in OF_CORES) + "; "
# The cores that they share, on one machine alone.
ON_ONE_MACHINE = workflow.local_exec and not workflow.remote_exec
CORES = workflow.resource_settings.cores if ON_ONE_MACHINE else None
# There jobs share its GPUs by the memory that they ask for, so that of those that wait the longest starts first.
if ON_ONE_MACHINE and "gpu_mb" not in workflow.global_resources and (found := memory_mb()):
    workflow.register_resource("gpu_mb", found)


# Finished runs of an earlier version noted each boundary that they read as an input: `tokens` stands for them now.
IS_PART = re.compile(r"\b(features|taught)/.+/(b\d+|pooled|words|attention\d+)\.json$")
noted_input = PersistenceBase.input
PersistenceBase.input = lambda self, file: without_parts(noted_input(self, file))


def without_parts(files):
    """Return the inputs of a job on record without the cards of stored states."""
    return files and [file for file in files if not IS_PART.search(file)]


def spec_of(step):
    """Return the params of a step's job: its spec, by which Snakemake sees changes, and as the step is given it."""
    return {
        "spec": lambda wildcards: ASK.canonical(step, ASK.key(step, wildcards)),
        "given": lambda wildcards, output: by_file(ASK.given(step, ASK.key(step, wildcards))),
    }


def reads(step, *names):
    """Return the input function for what a step's job reads, by name.

    All names in one function, which Snakemake calls through unpack(): what it does around each call of an input
    function took a third of the time of planning 10,000 jobs.
    """

    def files(wildcards):
        wanted = ASK.key(step, wildcards)
        current, inputs = PLAN.status.is_current(step, wanted), PLAN.job(step, wanted).inputs
        found = {name: dict.fromkeys(inputs.get(name, [])) for name in names}
        return {name: [ancient(file) if current else file for file in named] for name, named in found.items()}

    return unpack(files)


# How a step is given stored states, on its shell line.
ARGUMENTS_OF_STATES = (
    "--data $(dirname {input.data:q}) --encoder $(dirname {input.encoder:q}) --features $(dirname {input.tokens:q})"
    " --gpu-mb {resources.gpu_mb}"
)


def of_users(step, name):
    """Return an input function for files of the user that a step's job reads."""
    return lambda wildcards: [ancient(file) for file in PLAN.job(step, ASK.key(step, wildcards)).inputs[name]]


def asks_for_gpu(step):
    """Return whether a step's jobs have a GPU, by --set-resources for its rule, else by --default-resources."""
    settings = workflow.resource_settings
    asked = {**(settings.default_resources or {}), **settings.overwrite_resources.get(step, {})}
    return any(asked.get(one, 0) not in (0, None) for one in ("gpu", "gres"))


@cache
def priorities():
    """Return the priority of each job by step and key."""
    return run_progress.priorities(PLAN)


def longest_first(step):
    """Return the priority of a step's job as a function of its wildcards: that of the run after which most is left.

    A job of a cluster is alone in the Snakemake on its node.
    """
    if workflow.remote_exec:
        return 0
    return lambda wildcards: round(priorities()[step, ASK.key(step, wildcards)], 2)


@cache
def first_runs():
    """Return by key of each run in training the one for which is estimated what all seeds of its cell ask for."""
    return first_of_cells(PLAN)


@cache
def asked(step, key, attempt, gpu):
    """Return what a step's job asks of a cluster."""
    return request(PLAN, step, key, attempt, gpu)


def requested(step):
    """Return the memory, of a GPU too, and the time that a step's job asks for, by its wildcards and attempt."""
    gpu = asks_for_gpu(step)

    def resource(name):
        def amount(wildcards, attempt):
            wanted = ASK.key(step, wildcards)
            return asked(step, first_runs().get(wanted, wanted), attempt, gpu)[name]

        return amount

    return {name: resource(name) for name in ("mem_mb", "gpu_mb", "runtime")}
