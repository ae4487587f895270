"""
Probes: what can be read off each layer of an encoder that is not changed, or that runs have changed.

INPUTS      cards of the corpus, the encoder and the tokens, whose states of all layers are read, in the task's own view;
            of an encoder that runs adapted: their metrics.json, with the tensors that they trained
OUTPUTS     results/adapted/<task>/<subset>/<encoder>/<head>/<strategy>/<variant>/seed<n>/<task that is probed>/card.json
            (with the states of all layers, on the rows that probes read)
            results/probes/<task>/<subset>/<encoder>/<probe>/<of>/metrics.json (with layers.csv, cost.json); <of> is
            pretrained, pretrained.outside (on rows that no run has trained on), or <task>.<head>.<strategy>.<variant>
SPEC        task, subset, rows, the probe's entry, the layers and where they are read, all seeds, threads, digests of
            inputs, the runs among them

One job does all layers and seeds of a probe; each adapted encoder is read once for all probes of a task.
"""


rule features_adapted:
    """Read what probes need with the encoder that a run left, in one pass for all layers."""
    input:
        reads("features_adapted", "data", "encoder", "tokens", "run"),
    output:
        card="<results>/adapted/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}/seed{seed}/{probed}/card.json",
        folder=directory("<results>/adapted/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}/seed{seed}/{probed}"),
    log:
        "<logs>/features_adapted/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}/seed{seed}/{probed}.log",
    wildcard_constraints:
        seed="[0-9]+",
        probed="[a-z0-9_]+",
    priority: longest_first("features_adapted")
    conda:
        "../envs/thaw.yaml"
    threads: PLAN.threads
    resources:
        **requested("features_adapted"),
    params:
        **spec_of("features_adapted"),
    message:
        "features_adapted: {wildcards.probed} by {wildcards.strategy} {wildcards.variant}, seed {wildcards.seed}"
    shell:
        f"python -m thaw.steps features_adapted --catalogues {ASK.catalogues}"
        " --spec {params.given:q} --out $(dirname {output.card:q})"
        f" {ARGUMENTS_OF_STATES} --run {{input.run:q}} 2>&1 | tee {{log:q}}"


rule probe:
    """Fit one probe to every layer of an encoder, for all seeds."""
    input:
        reads("probe", "data", "encoder", "tokens", "adapted", "runs"),
    output:
        metrics="<results>/probes/{task}/{subset}/{encoder}/{probe}/{of}/metrics.json",
        others=multiext("<results>/probes/{task}/{subset}/{encoder}/{probe}/{of}/", *WRITTEN["probe"]),
    log:
        "<logs>/probe/{task}/{subset}/{encoder}/{probe}/{of}.log",
    wildcard_constraints:
        of="[a-z0-9_.]+",
    priority: 5  # how long it takes is not estimated: neither first nor last
    conda:
        "../envs/thaw.yaml"
    threads: PLAN.threads
    resources:
        **requested("probe"),
    params:
        **spec_of("probe"),
    message:
        "probe: {wildcards.probe} on {wildcards.encoder}, {wildcards.task}, {wildcards.of}"
    shell:
        f"python -m thaw.steps probe --catalogues {ASK.catalogues}"
        " --spec {params.given:q} --out $(dirname {output.metrics:q})"
        f" {ARGUMENTS_OF_STATES} --adapted {{input.adapted:q}} --runs {{input.runs:q}} 2>&1 | tee {{log:q}}"
