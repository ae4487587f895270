"""
Features: the hidden states of the frozen encoder, computed once and read by every run.

INPUTS      results/data/<corpus>/card.json, results/encoders/<encoder>/card.json
OUTPUTS     results/features/<encoder>/<corpus>/<view>/tokens.json, and for each part that a run reads b<n>.json
            (boundary n), pooled.json (texts in all layers) or words.json (words in all layers). Their payloads are next to
            them and may be deleted. With store: free: they are when all readers are done, and the file `freed` says so
SPEC        view, dtype of the store, precision where it is not fp32, threads, digests of corpus and encoder; not which
            parts, nor which rows: those that some run of the plan reads are stored

A rule declares as many files for each of its jobs, so that the cards of parts are declared by none, and readers name the
tokens. `parts` are those that the plan reads and those that are there: one more makes the job run again, fewer do not.
A job that reads a part, a payload or rows that are not there makes them.
"""

from thaw.planning.job_request import extraction_cores

# Here a pass takes the cores that other passes leave: processes with the threads of a job share its batches.
CORES_OF_A_PASS = extraction_cores(PLAN, CORES)
FREED = ASK.freed()


rule features:
    """Read a corpus once with the frozen encoder, and store the hidden states that some run of the plan reads."""
    input:
        reads("features", "data", "encoder"),
    output:
        tokens="<results>/features/{weights}/{corpus}/{view}/tokens.json",
        others="<results>/features/{weights}/{corpus}/{view}/tokens.parquet",
    log:
        "<logs>/features/{weights}/{corpus}/{view}.log",
    wildcard_constraints:
        weights="[a-z0-9_.]+",
    priority: 10  # runs wait for it
    conda:
        "../envs/thaw.yaml"
    threads: CORES_OF_A_PASS
    resources:
        **requested("features"),
    params:
        **spec_of("features"),
        parts=lambda w: PLAN.status.parts("features", ASK.key("features", w)),
        # derived from the output, so that Snakemake makes no store again where others read it
        rows=lambda w, output: by_file(ASK.rows_read(ASK.key("features", w))),
    message:
        "features: one pass of {wildcards.weights} over {wildcards.corpus}"
    shell:
        f"{OF_ONE_PROCESS}python -m thaw.steps features"
        " --spec {params.given:q} --boundaries {params.parts:q}"
        " --rows {params.rows:q} --cores {threads} --gpu-mb {resources.gpu_mb}"
        " --data $(dirname {input.data:q}) --encoder $(dirname {input.encoder:q})"
        " --out $(dirname {output.tokens:q}) 2>&1 | tee {log:q}"


rule free:
    """Delete the states of a store when all that read them are done."""
    input:
        lambda w: FREED[f"{PLAN.results}/features/{w.weights}/{w.corpus}/{w.view}"],
    output:
        touch("<results>/features/{weights}/{corpus}/{view}/freed"),
    log:
        "<logs>/free/{weights}/{corpus}/{view}.log",
    wildcard_constraints:
        weights="[a-z0-9_.]+",
    localrule: True
    conda:
        "../envs/thaw.yaml"
    message:
        "free: all that read {output} are done"
    shell:
        "rm -f $(dirname {output:q})/b*.safetensors 2> {log:q}"
