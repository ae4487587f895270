"""
What all rules share: how a job reads files that another job made, and what it asks of a cluster.

A result carries the digest of its spec. Where the planned digest is already there, what made its inputs is part of it
and their time stamps say nothing: they are ancient. Where it is not, they are plain inputs, because Snakemake looks at
no job's params once a job above it runs: an ancient chain would stop after its first link.

Each rule declares all files that it writes. On a shared file system a job names one file of each result that it reads:
Snakemake looks for no other, so that a result without a file that an older version did not write, or whose payload was
deleted to free disk, is as finished as before. With storage, where a job sees what it names, it names all of them.

Memory and time follow from the encoder, the work and whether a GPU is asked for; on one machine they limit nothing.
Partitions, accounts and GPUs are site-specific and set in no rule: workflow/profiles/slurm says how to ask for them.
"""

from thaw.core.layout import ENCODER, WHOLE, WRITTEN
from thaw.declarations.needs import NEEDS
from thaw.planning import written_files
from thaw.planning.cost_estimate import request

# What a run needs of other jobs, by role; a step that trains reads it with these arguments.
ROLES = [name for name, role in NEEDS.items() if role.digest]
NEEDED = " ".join(f"--need {name} {{input.{name}:q}}" for name in ROLES)


STORED = workflow.storage_settings.default_storage_provider is not None


def made(step, name, key=None):
    """Return an input function for the files that a step's job reads under a name."""

    def files(wildcards):
        wanted = key or PLAN.key(step, wildcards)
        inputs = PLAN.job(step, wanted).inputs.get(name, [])
        return [ancient(file) for file in inputs] if PLAN.is_current(step, wanted) else inputs

    return files


def next_to(step, key=None):
    """Return an input function for the files next to those that a step's job reads, where they have to be named."""

    def files(wildcards):
        named = PLAN.job(step, key or PLAN.key(step, wildcards)).inputs.values() if STORED else []
        return [file for inputs in named for file in written_files.next_to(PLAN, inputs)]

    return files


def of_users(step, name):
    """Return an input function for files of the user that a step's job reads: they are here, in no storage."""
    return lambda wildcards: [ancient(local(file)) for file in PLAN.job(step, PLAN.key(step, wildcards)).inputs[name]]


def shown():
    """Return the results that outputs read, where they have to be named."""
    return written_files.shown(PLAN) if STORED else []


def asks_for_gpu(step):
    """Return whether the jobs of a step have a GPU: --set-resources for its rule, else --default-resources, say so."""
    settings = workflow.resource_settings
    asked = {**(settings.default_resources or {}), **settings.overwrite_resources.get(step, {})}
    return any(asked.get(name, 0) not in (0, None) for name in ("gpu", "gres"))


def needed(step):
    """Return the input functions for what a step of runs needs of other jobs, by role."""
    return {name: made(step, name) for name in ROLES}


def requested(step, key=None):
    """Return the memory and time that a step's job asks of a cluster, as functions of its wildcards and attempt."""
    gpu = asks_for_gpu(step)

    def resource(name):
        return lambda wildcards, attempt: request(PLAN, step, key or PLAN.key(step, wildcards), attempt, gpu)[name]

    return {name: resource(name) for name in ("mem_mb", "runtime")}
