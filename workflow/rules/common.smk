"""
What all rules share: how a job reads files that another job made.

A result carries the digest of its spec. Where the planned digest is already there, what made its inputs is part of it
and their time stamps say nothing: they are ancient. Where it is not, they are plain inputs, because Snakemake looks at
no job's params once a job above it runs: an ancient chain would stop after its first link.
"""


def made(step, name, key=None):
    """Return an input function for the files that a step's job reads under a name."""

    def files(wildcards):
        wanted = key or PLAN.key(step, wildcards)
        found = PLAN.job(step, wanted).inputs.get(name, [])
        return [ancient(file) for file in found] if PLAN.is_current(step, wanted) else found

    return files
