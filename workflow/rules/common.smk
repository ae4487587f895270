"""
What all rules share: how a job reads files that another job made, and what it asks of a cluster.

A result carries the digest of its spec. Where the planned digest is already there, what made its inputs is part of it
and their time stamps say nothing: they are ancient. Where it is not, they are plain inputs, because Snakemake looks at
no job's params once a job above it runs: an ancient chain would stop after its first link.

Memory and time follow from the encoder, the work and whether a GPU is asked for; on one machine they limit nothing.
Partitions, accounts and GPUs are site-specific and set in no rule: workflow/profiles/slurm says how to ask for them.
"""

from thaw.declarations.needs import NEEDS
from thaw.planning.cost_estimate import DAY, request

# What a run needs of other jobs, by role; a step that trains reads it with these arguments.
ROLES = [name for name, role in NEEDS.items() if role.digest]
NEEDED = " ".join(f"--need {name} {{input.{name}:q}}" for name in ROLES)


def keys_of(step, wildcards, key=None, seeds=()):
    """Return the keys of a step's job: one that is given, that of its wildcards, or one for each of some seeds."""
    if seeds:
        return [PLAN.key(step, {**dict(wildcards.items()), "seed": seed}) for seed in seeds]
    return [key or PLAN.key(step, dict(wildcards.items()))]


def made(step, name, key=None, seeds=()):
    """Return an input function for the files that a step's job reads under a name, those of several runs each once."""

    def files(wildcards):
        found = {}
        for wanted in keys_of(step, wildcards, key, seeds):
            current = PLAN.is_current(step, wanted)
            for file in PLAN.job(step, wanted).inputs.get(name, []):
                found[file] = found.get(file, True) and current
        return [ancient(file) if current else file for file, current in found.items()]

    return files


def specs_of(step, seeds):
    """Return a params function for the specs of the runs of several seeds."""
    return lambda wildcards: PLAN.canonical_together(step, keys_of(step, wildcards, seeds=seeds))


def asks_for_gpu(step):
    """Return whether the jobs of a step have a GPU: --set-resources for its rule, else --default-resources, say so."""
    settings = workflow.resource_settings
    asked = {**(settings.default_resources or {}), **settings.overwrite_resources.get(step, {})}
    return any(asked.get(name, 0) not in (0, None) for name in ("gpu", "gres"))


def needed(step, seeds=()):
    """Return the input functions for what a step of runs needs of other jobs, by role."""
    return {name: made(step, name, seeds=seeds) for name in ROLES}


def requested(step, key=None, seeds=()):
    """Return the memory and time that a step's job asks of a cluster, as functions of its wildcards and attempt.

    Of several runs in one job: the most memory that one needs, and the time of all.
    """
    gpu = asks_for_gpu(step)

    def resource(name, total):
        return lambda wildcards, attempt: total(
            request(PLAN, step, wanted, attempt, gpu)[name] for wanted in keys_of(step, wildcards, key, seeds)
        )

    return {"mem_mb": resource("mem_mb", max), "runtime": resource("runtime", lambda asked: min(DAY, sum(asked)))}
