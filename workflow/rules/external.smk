"""
External: predictions that were made elsewhere, scored like a run's.

INPUTS      results/data/<corpus>/card.json; the users' file of predictions, as the experiment names it
OUTPUTS     results/external/<task>/<id>/metrics.json (with predictions.parquet)
SPEC        task, format and sha256 of the file, digest of the corpus
"""


rule external:
    """Match a file of predictions to a task's rows and score it."""
    input:
        reads("external", "data"),
        predictions=of_users("external", "predictions"),
    output:
        metrics="<results>/external/{task}/{external}/metrics.json",
        others=multiext("<results>/external/{task}/{external}/", *WRITTEN["external"]),
    log:
        "<logs>/external/{task}/{external}.log",
    localrule: True
    conda:
        "../envs/thaw.yaml"
    params:
        **spec_of("external"),
    message:
        "external: {wildcards.task}, {wildcards.external}"
    shell:
        "python -m thaw.steps external --spec {params.given:q} --predictions {input.predictions:q}"
        f" --catalogues {ASK.catalogues}"
        f" --data $(dirname {{input.data:q}}) --out $(dirname {{output.metrics:q}}) 2>&1 | tee {{log:q}}"
