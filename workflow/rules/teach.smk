"""
Teachers: what finished runs give on training rows, once for all students that are trained towards them.

INPUTS      cards of the corpus, the encoder and its tokens; the metrics.json of the run that teaches, with its tensors
OUTPUTS     results/taught/<task>/<subset>/<encoder>/<head>/<strategy>/<variant>/seed<n>/<rows>/card.json (with
            logits.safetensors, cost.json, and a card b<n>.json with its payload for each boundary whose states some
            student is matched to); <rows> is the subset whose training rows were read
SPEC        task, subset, dtype of the states, threads, digests of inputs, the run among them; not which boundaries

Cards of boundaries are declared by no rule, as those of stores (features.smk).
"""

TAUGHT = "<results>/taught/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}/seed{seed}/{rows}"


rule teach:
    """Read training rows with a finished run, once for all its students."""
    input:
        reads("teach", "data", "encoder", "tokens", "run"),
    output:
        card=f"{TAUGHT}/card.json",
        others=multiext(f"{TAUGHT}/", *WRITTEN["teach"]),
    log:
        "<logs>/teach/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}/seed{seed}/{rows}.log",
    wildcard_constraints:
        seed="[0-9]+",
        rows="[a-z0-9_]+",
    priority: longest_first("teach")
    conda:
        "../envs/thaw.yaml"
    threads: PLAN.threads
    resources:
        **requested("teach"),
    params:
        **spec_of("teach"),
        parts=lambda w: PLAN.status.parts("teach", ASK.key("teach", w)),
    message:
        "teach: {wildcards.task}, {wildcards.strategy} {wildcards.variant}, seed {wildcards.seed}"
    shell:
        f"python -m thaw.steps teach --catalogues {ASK.catalogues}"
        " --spec {params.given:q} --boundaries {params.parts:q} --out $(dirname {output.card:q})"
        f" {ARGUMENTS_OF_STATES} --run {{input.run:q}} 2>&1 | tee {{log:q}}"
