"""
Probes: what can be read off each layer of an encoder that is not changed.

INPUTS      cards of the corpus, the encoder and the boundaries of all layers, in the task's own view
OUTPUTS     results/probes/<task>/<subset>/<encoder>/<probe>/pretrained/metrics.json (and layers.csv, cost.json beside)
SPEC        task, subset, the probe's entry, the layers and where they are read, all seeds, threads, digests of inputs

One job does all layers and seeds of a probe.
"""


rule probe:
    """Fit one probe to every layer of an encoder, for all seeds."""
    input:
        data=made("probe", "data"),
        encoder=made("probe", "encoder"),
        tokens=made("probe", "tokens"),
        boundaries=made("probe", "boundaries"),
    output:
        metrics="<results>/probes/{task}/{subset}/{encoder}/{probe}/pretrained/metrics.json",
        others=multiext(
            "<results>/probes/{task}/{subset}/{encoder}/{probe}/pretrained/",
            "layers.csv",
            "cost.json",
        ),
    log:
        "<logs>/probe/{task}/{subset}/{encoder}/{probe}.log",
    conda:
        "../../environment.yml"
    threads: PLAN.threads
    resources:
        **needs("probe"),
    params:
        spec=lambda w: PLAN.canonical("probe", w),
    message:
        "probe: {wildcards.probe} on {wildcards.encoder}, {wildcards.task}"
    shell:
        f"python -m thaw.steps.probe --catalogues {PLAN.catalogues}"
        " --spec {params.spec:q} --out $(dirname {output.metrics:q})"
        " --data $(dirname {input.data:q}) --encoder $(dirname {input.encoder:q})"
        " --features $(dirname {input.tokens:q}) 2>&1 | tee {log:q}"
