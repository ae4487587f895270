"""
Outputs: one tidy file of all runs, and from it the tables, the figures and the report.

INPUTS      metrics.json and cost.json of every run of the experiment, its baselines; with allow_missing those that are
            there; for figures of probes also the metrics.json of its probes
OUTPUTS     results/outputs/<experiment>/runs.csv, and runs.json, the list of the results that it was made from
            results/outputs/<experiment>/tables/<id>.{json,csv,tex,md,html}
            results/outputs/<experiment>/figures/<id>.{json,pdf,svg,png,csv}
            results/outputs/<experiment>/report.html, runs.html, paper.tex, references.bib
SPEC        the selection, labels and captions, and one digest over the specs of all runs
"""

from thaw.planning.questions import command, quoted

OUTPUTS = "<results>/outputs/{experiment}"
AGAIN = command(HOME, workflow.overwrite_configfiles, workflow.config_settings.config)


rule collect:
    """Gather scores and costs of all runs in one long table."""
    input:
        lambda w: PLAN.status.collected(),
    output:
        runs=f"{OUTPUTS}/runs.csv",
        listed=f"{OUTPUTS}/runs.json",
    log:
        "<logs>/collect/{experiment}.log",
    localrule: True
    conda:
        "../envs/thaw.yaml"
    params:
        **spec_of("collect"),
    message:
        "collect: the runs of {wildcards.experiment}"
    shell:
        "python -m thaw.steps collect --spec {params.given:q} --out {output.runs:q}"
        " --results $(dirname $(dirname $(dirname {output.runs:q}))) --logs $(dirname $(dirname {log:q}))"
        " 2>&1 | tee {log:q}"


rule table:
    """Draw one table as JSON, and from that in four formats."""
    input:
        runs=f"{OUTPUTS}/runs.csv",
        probes=lambda w: PLAN.status.probed("table", w.id),
        merges=lambda w: PLAN.status.drawn_merges("table", w.id),
    output:
        html=report(
            f"{OUTPUTS}/tables/{{id}}.html",
            caption="../report/table.rst",
            category="{experiment}",
            labels={"output": "{id}", "kind": "table"},
        ),
        others=multiext(f"{OUTPUTS}/tables/{{id}}", ".json", ".csv", ".tex", ".md"),
    log:
        "<logs>/table/{experiment}/{id}.log",
    localrule: True
    conda:
        "../envs/thaw.yaml"
    params:
        **spec_of("table"),
    message:
        "table: {wildcards.id}"
    shell:
        "python -m thaw.steps table --spec {params.given:q} --runs {input.runs:q} --probes {input.probes:q}"
        " --merges {input.merges:q}"
        " --results $(dirname $(dirname $(dirname {input.runs:q})))"
        " --out $(dirname {output.html:q})/{wildcards.id} 2>&1 | tee {log:q}"


rule figure:
    """Draw one figure in three formats, with the numbers behind it as JSON and CSV."""
    input:
        runs=f"{OUTPUTS}/runs.csv",
        probes=lambda w: PLAN.status.probed("figure", w.id),
        merges=lambda w: PLAN.status.drawn_merges("figure", w.id),
    output:
        svg=report(
            f"{OUTPUTS}/figures/{{id}}.svg",
            caption="../report/figure.rst",
            category="{experiment}",
            labels={"output": "{id}", "kind": "figure"},
        ),
        others=multiext(f"{OUTPUTS}/figures/{{id}}", ".json", ".pdf", ".png", ".csv"),
    log:
        "<logs>/figure/{experiment}/{id}.log",
    localrule: True
    conda:
        "../envs/thaw.yaml"
    params:
        **spec_of("figure"),
    message:
        "figure: {wildcards.id}"
    shell:
        "python -m thaw.steps figure --spec {params.given:q} --runs {input.runs:q} --probes {input.probes:q}"
        " --merges {input.merges:q}"
        " --results $(dirname $(dirname $(dirname {input.runs:q})))"
        " --out $(dirname {output.svg:q})/{wildcards.id} 2>&1 | tee {log:q}"


rule report:
    """Write the one self-contained page that reads like a paper's results section."""
    input:
        runs=f"{OUTPUTS}/runs.csv",
        outputs=lambda w: ASK.report_files(),
        records=lambda w: PLAN.status.recorded(),
    output:
        page=report(f"{OUTPUTS}/report.html", caption="../report/report.rst", category="{experiment}"),
        listed=f"{OUTPUTS}/runs.html",
        article=f"{OUTPUTS}/paper.tex",
        references=f"{OUTPUTS}/references.bib",
    log:
        "<logs>/report/{experiment}.log",
    localrule: True
    conda:
        "../envs/thaw.yaml"
    params:
        **spec_of("report"),
    message:
        "report: the page of {wildcards.experiment}"
    shell:
        "python -m thaw.steps report --spec {params.given:q} --runs {input.runs:q} --records {input.records:q}"
        " --results $(dirname $(dirname $(dirname {output.page:q})))"
        " --logs $(dirname $(dirname {log:q}))"
        f" --command {quoted(AGAIN)}"
        " --out {output.page:q} 2>&1 | tee {log:q}"
