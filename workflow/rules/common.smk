"""
What all rules share: how a job reads files that another job made, and what it asks of a cluster.

A result carries the digest of its spec. Where the planned digest is already there, what made its inputs is part of it
and their time stamps say nothing: they are ancient. Where it is not, they are plain inputs, because Snakemake looks at
no job's params once a job above it runs: an ancient chain would stop after its first link.

Memory and time follow from the encoder, the work and whether a GPU is asked for; on one machine they limit nothing.
Partitions, accounts and GPUs are a site's own and stand in no rule: workflow/profiles/slurm says how to ask for them.
"""

from thaw.planning.cost_estimate import request


def made(step, name, key=None):
    """Return an input function for the files that a step's job reads under a name."""

    def files(wildcards):
        wanted = key or PLAN.key(step, wildcards)
        found = PLAN.job(step, wanted).inputs.get(name, [])
        return [ancient(file) for file in found] if PLAN.is_current(step, wanted) else found

    return files


def asks_for_gpu(step):
    """Return whether the jobs of a step have a GPU: --set-resources for its rule, else --default-resources, say so."""
    settings = workflow.resource_settings
    asked = {**(settings.default_resources or {}), **settings.overwrite_resources.get(step, {})}
    return any(asked.get(name, 0) not in (0, None) for name in ("gpu", "gres"))


def needs(step, key=None):
    """Return the memory and time that a step's job asks of a cluster, as functions of its wildcards and attempt."""
    gpu = asks_for_gpu(step)

    def resource(name):
        return lambda wildcards, attempt: request(PLAN, step, key or PLAN.key(step, wildcards), attempt, gpu)[name]

    return {name: resource(name) for name in ("mem_mb", "runtime")}
