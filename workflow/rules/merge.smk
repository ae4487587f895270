"""
Merges: runs of several tasks on one frozen trunk, as one folder that serves, and how fast it does.

INPUTS      metrics.json of all runs that may be a branch, with the tensors of those of the seed that is served
OUTPUTS     results/merges/<subset>/<encoder>/<id>/merge.json (with trunk, branches, model.py, check.json)
            results/latency/<subset>/<encoder>/<id>/latency.json (with latency.csv)
SPEC        how a branch is chosen, seeds, by task the candidates: what each shares, digests of its runs

Times are of the machine on which latency runs. With --cores it takes all of them, so that no other job runs meanwhile;
on a cluster without --cores it has the threads of any job, and whatever else runs on its node slows it down.
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


rule latency:
    """Measure a merged folder against one model for each task."""
    input:
        reads("latency", "merge"),
    output:
        record="<results>/latency/{subset}/{encoder}/{merge}/latency.json",
        rows="<results>/latency/{subset}/{encoder}/{merge}/latency.csv",
    log:
        "<logs>/latency/{subset}/{encoder}/{merge}.log",
    conda:
        "../envs/thaw.yaml"
    threads: workflow.cores or PLAN.threads
    resources:
        **requested("latency"),
    params:
        **spec_of("latency"),
    message:
        "latency: {wildcards.merge}, {wildcards.encoder}"
    shell:
        "python -m thaw.steps latency --spec {params.given:q} --merge $(dirname {input.merge:q}) --cores {threads}"
        " --out $(dirname {output.record:q}) 2>&1 | tee {log:q}"
