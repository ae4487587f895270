"""
Ensembles: the combined predictions of several runs.

INPUTS      results/data/<corpus>/card.json; metrics.json and predictions.parquet of each member
OUTPUTS     results/ensembles/<task>/<subset>/<id>/metrics.json (with predictions.parquet)
SPEC        task, subset, how they are combined, digests of the members and of the corpus
"""


rule ensemble:
    """Combine the predictions of several runs and score them."""
    input:
        reads("ensemble", "data", "members"),
    output:
        metrics="<results>/ensembles/{task}/{subset}/{ensemble}/metrics.json",
        others=multiext("<results>/ensembles/{task}/{subset}/{ensemble}/", *WRITTEN["ensemble"]),
    log:
        "<logs>/ensemble/{task}/{subset}/{ensemble}.log",
    localrule: True
    conda:
        "../envs/thaw.yaml"
    params:
        **spec_of("ensemble"),
    message:
        "ensemble: {wildcards.task}, {wildcards.ensemble}"
    shell:
        "python -m thaw.steps ensemble --spec {params.given:q} --members {input.members:q}"
        f" --catalogues {ASK.catalogues}"
        f" --data $(dirname {{input.data:q}}) --out $(dirname {{output.metrics:q}}) 2>&1 | tee {{log:q}}"
