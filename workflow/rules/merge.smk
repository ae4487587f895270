"""
Merges: runs of several tasks on one frozen trunk, as one folder that serves.

INPUTS      metrics.json of all runs that may be a branch, with the tensors of those of the seed that is served
OUTPUTS     results/merges/<subset>/<encoder>/<id>/merge.json (with trunk, branches, model.py, check.json)
SPEC        how a branch is chosen, seeds, by task the candidates: what each shares, digests of its runs
"""


rule merge:
    """Choose a run for each task, merge them on one trunk, and verify the folder in a fresh process."""
    input:
        reads("merge", "runs"),
    output:
        record="<results>/merges/{subset}/{encoder}/{merge}/merge.json",
        folder=directory("<results>/merges/{subset}/{encoder}/{merge}"),
    log:
        "<logs>/merge/{subset}/{encoder}/{merge}.log",
    conda:
        "../envs/thaw.yaml"
    resources:
        **requested("merge"),
    params:
        **spec_of("merge"),
    message:
        "merge: {wildcards.merge}, {wildcards.encoder}"
    shell:
        "python -m thaw.steps merge --spec {params.given:q} --runs {input.runs:q}"
        " --out $(dirname {output.record:q}) 2>&1 | tee {log:q}"
