"""
What all rules share: how a job reads files that another job made, and what it asks of a cluster.

A result carries the digest of its spec. Where the planned digest is already there, what made its inputs is part of it
and their time stamps say nothing: they are ancient. Where it is not, they are plain inputs, because Snakemake looks at
no job's params once a job above it runs: an ancient chain would stop after its first link.

Rules declare all files that they write. On a shared file system a job names one file of each result that it reads:
Snakemake looks for no other, so that a result without a file that an older version did not write, or whose payload was
deleted to free disk, is as finished as before. With storage, where a job sees what it names, it names all of them.

Memory and time follow from the encoder, the work and whether a GPU is asked for; on one machine they limit nothing.
Partitions, accounts and GPUs are site-specific and set in no rule: workflow/profiles/slurm says how to ask for them.
"""

from functools import cache

from snakemake.persistence import PersistenceBase
from thaw.core.fork_server import OF_CORES
from thaw.core.layout import ENCODER, WRITTEN
from thaw.declarations.needs import NEEDS
from thaw.planning import start_order, written_files
from thaw.planning.job_request import DAY, first_of_cells, request

ROLES = [name for name, role in NEEDS.items() if role.digest]  # in which a run needs other jobs

# Snakemake compares a job's params with the recorded ones only where it has a record of every declared file. A result
# that was made when fewer files were declared, as before its run was asked to keep its encoder, lacks some: one is
# enough, else an edited setting would go unnoticed.
PersistenceBase.has_metadata = lambda self, job: not job.output or any(map(self.metadata, job.output))

# Of a job that several processes share each has the threads of any job; by its `threads` each would have all its cores.
OF_ONE_PROCESS = "export " + " ".join(f"{name}={PLAN.threads}" for name in OF_CORES) + "; "
# The cores that they share, on one machine alone.
CORES = workflow.resource_settings.cores if workflow.local_exec and not workflow.remote_exec else None

# Whether jobs have no disk in common: results are in a storage, and a job sees what it names.
STORED = workflow.storage_settings.default_storage_provider is not None


def keys_of(step, wildcards, key=None, seeds=()):
    """Return the keys of a step's job: one that is given, that of its wildcards, or one for each of some seeds."""
    if seeds:
        return [PLAN.key(step, {**dict(wildcards.items()), "seed": seed}) for seed in seeds]
    return [key or PLAN.key(step, wildcards)]


def reads(step, *names, key=None, seeds=()):
    """Return the input function for what a step's job reads, by name, and as `others` what is next to it.

    Of several runs each file once. All names in one function, which Snakemake calls through unpack(): what it does
    around each call of an input function took a third of the time of planning 10,000 jobs.
    """

    def files(wildcards):
        found = {name: {} for name in names}
        for wanted in keys_of(step, wildcards, key, seeds):
            current, inputs = PLAN.is_current(step, wanted), PLAN.job(step, wanted).inputs
            for name, named in found.items():
                for file in inputs.get(name, []):
                    file = written_files.as_declared(PLAN, file) if STORED else file
                    named[file] = named.get(file, True) and current
        marked = lambda named: [ancient(file) if current else file for file, current in named.items()]
        return {name: marked(named) for name, named in found.items()} | {"others": next_to(step, wildcards, key, seeds)}

    return unpack(files)


def next_to(step, wildcards, key=None, seeds=()):
    """Return the files next to those that a step's job reads, where they have to be named."""
    keys = keys_of(step, wildcards, key, seeds) if STORED else []
    read = [file for wanted in keys for inputs in PLAN.job(step, wanted).inputs.values() for file in inputs]
    return written_files.next_to(PLAN, read)


def folder_of(name):
    """Return the folder of the card that a job reads under a name, for its shell line."""
    return f"{{input.{name}:q}}" if STORED else f"$(dirname {{input.{name}:q}})"


def cards_of(name):
    """Return the cards that a job reads under a name, for its shell line."""
    return f"$(for it in {{input.{name}:q}}; do echo $it/card.json; done)" if STORED else f"{{input.{name}:q}}"


# How a step is given stored states, on its shell line.
ARGUMENTS_OF_STATES = (
    f"--data {folder_of('data')} --encoder {folder_of('encoder')} --features $(dirname {{input.tokens:q}})"
)


def of_users(step, name):
    """Return an input function for files of the user that a step's job reads: they are here, in no storage."""
    return lambda wildcards: [ancient(local(file)) for file in PLAN.job(step, *keys_of(step, wildcards)).inputs[name]]


def shown():
    """Return the results that outputs read, where they have to be named."""
    return written_files.shown(PLAN) if STORED else []


def specs_of(step, seeds):
    """Return a params function for the specs of the runs of several seeds."""
    return lambda wildcards: PLAN.canonical_together(step, keys_of(step, wildcards, seeds=seeds))


def asks_for_gpu(name):
    """Return whether jobs have a GPU, by --set-resources for the rule of this name, else by --default-resources."""
    settings = workflow.resource_settings
    asked = {**(settings.default_resources or {}), **settings.overwrite_resources.get(name, {})}
    return any(asked.get(one, 0) not in (0, None) for one in ("gpu", "gres"))


@cache
def priorities():
    """Return the priority of each job by step and key."""
    return start_order.priorities(PLAN)


def longest_first(step, key=None, seeds=()):
    """Return the priority of a step's job as a function of its wildcards: that of the run after which most is left.

    A job of a cluster is alone in the Snakemake on its node.
    """
    if workflow.remote_exec:
        return 0
    return lambda wildcards: round(max(priorities()[step, job] for job in keys_of(step, wildcards, key, seeds)), 2)


# Both once for all rules of a step, of which training has many.
@cache
def first_runs():
    """Return by key of each run in training the one for which is estimated what all seeds of its cell ask for."""
    return first_of_cells(PLAN)


@cache
def asked(step, key, attempt, gpu):
    """Return what a step's job asks of a cluster."""
    return request(PLAN, step, key, attempt, gpu)


def requested(step, key=None, seeds=(), named=None):
    """Return the memory and time that a step's job asks of a cluster, as functions of its wildcards and attempt.

    Of several runs in one job: the most memory that one needs, and the time of all. Args: named, the name of the rule
    where it is not the step's.
    """
    gpu = asks_for_gpu(named or step)

    def resource(name, total):
        return lambda wildcards, attempt: total(
            asked(step, first_runs().get(wanted, wanted), attempt, gpu)[name]
            for wanted in keys_of(step, wildcards, key, seeds)
        )

    return {"mem_mb": resource("mem_mb", max), "runtime": resource("runtime", lambda minutes: min(DAY, sum(minutes)))}
