"""
Ensembles: several runs combined, their predictions or their weights.

INPUTS      results/data/<corpus>/card.json; metrics.json and predictions.parquet of each member; of weights the tensors
            that it kept, and cards of the encoder, the tokens and the transfer sets
OUTPUTS     results/ensembles/<task>/<subset>/<id>/metrics.json (with predictions.parquet)
SPEC        task, subset, how they are combined, digests of the members and of the corpus
"""


rule ensemble:
    """Combine several runs and score them."""
    input:
        reads("ensemble", "data", "members", "encoder", "tokens", "also_data", "also_tokens"),
    output:
        metrics="<results>/ensembles/{task}/{subset}/{ensemble}/metrics.json",
        others=multiext("<results>/ensembles/{task}/{subset}/{ensemble}/", *WRITTEN["ensemble"]),
    log:
        "<logs>/ensemble/{task}/{subset}/{ensemble}.log",
    localrule: "encoder" not in ASK.names_read("ensemble")
    conda:
        "../envs/thaw.yaml"
    threads: PLAN.threads
    resources:
        **requested("ensemble"),
    params:
        **spec_of("ensemble"),
    message:
        "ensemble: {wildcards.task}, {wildcards.ensemble}"
    shell:
        "python -m thaw.steps ensemble --spec {params.given:q} --members {input.members:q}"
        f" --catalogues {ASK.catalogues} --encoder {{input.encoder:q}} --features {{input.tokens:q}}"
        " --also-data {input.also_data:q} --also-tokens {input.also_tokens:q}"
        f" --data $(dirname {{input.data:q}}) --out $(dirname {{output.metrics:q}}) 2>&1 | tee {{log:q}}"
