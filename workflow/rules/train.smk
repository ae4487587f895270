"""
Training: one run per task, subset, encoder, head, strategy, variant and seed.

INPUTS      cards of the corpus, the encoder and the tokens, in each view that it reads, which stand for the states; the same of the transfer sets of its task and of tasks that are trained with it;
            what it needs of other jobs (scripts/thaw/declarations/needs.py): for a strategy with `after:`, the
            metrics.json of the run that it starts from; with `multi_task:` but for the first task, that of
            the run that trained it; with `teacher:`, the card.json of what the
            teacher gave (teach.smk), or the teacher's metrics.json; with `search:` or `rates_from:`, the chosen.json
            of the search
OUTPUTS     results/runs/<task>/<subset>/<encoder>/<head>/<strategy>/<variant>/seed<n>/metrics.json (and cost.json,
            history.csv, predictions.parquet, head.safetensors with it, encoder.safetensors with keep: true)
            results/runs/<task>/<subset>/<encoder>/<head>/<strategy>/<variant>/chosen.json, of a search (from
            search_heads with trials.csv and cost.json in its folder)
            results/baselines/<task>/<subset>/<baseline>/metrics.json
SPEC        task, subset, head, phases with what they train and resume from, seed, threads, digests of all inputs

fit_heads executes strategies in which a head trains alone on vectors that stay the same, fitted to convergence or for
some epochs, all seeds in one job; search_heads all trials of a search over such runs; train everything else.
"""

from thaw.planning.job_request import head_cores

RUN = "<results>/runs/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}"
# What a run reads, and how its step is given it.
ALWAYS = ["data", "encoder", "tokens"]
# What only some runs read, where a run of the plan does: a name without a file costs as much time in planning as another.
READ = ASK.names_read("train", "fit_heads")
FURTHER = [name for name in [*ROLES, "also_data", "also_tokens"] if name in READ]
READ_BY_RUNS = [*ALWAYS, *FURTHER]
ARGUMENTS = {name: f"--need {name} {{input.{name}:q}}" for name in ROLES}
ARGUMENTS |= {name: f"--{name.replace('_', '-')} {{input.{name}:q}}" for name in ("also_data", "also_tokens")}
ARGUMENTS_OF_RUNS = " ".join([ARGUMENTS_OF_STATES, *(words for name, words in ARGUMENTS.items() if name in FURTHER)])
# On one machine processes with the threads of a job share heads that train, where these are worth it.
CORES_OF_HEADS = head_cores(PLAN, CORES)

# It declares the files of every seed, with each of which Snakemake compares every file of a plan that has this rule.
if PLAN.executed["fit_heads"]:

    ruleorder: fit_heads > train

    rule fit_heads:
        """Fit a head on the frozen features, for all seeds at once."""
        input:
            reads("fit_heads", *READ_BY_RUNS),
        output:
            metrics=expand(f"{RUN}/seed{{seed}}/metrics.json", seed=sorted(PLAN.seeds), allow_missing=True),
            others=expand(
                f"{RUN}/seed{{seed}}/{{name}}", seed=sorted(PLAN.seeds), name=WRITTEN["fit_heads"], allow_missing=True
            ),
        log:
            "<logs>/fit_heads/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}.log",
        wildcard_constraints:
            strategy=ASK.strategies("fit_heads"),
        priority: 9.5  # takes seconds and gives the first scores: before all that trains layers
        conda:
            "../envs/thaw.yaml"
        threads: lambda w: CORES_OF_HEADS("fit_heads", ASK.key("fit_heads", w))
        resources:
            **requested("fit_heads"),
        params:
            **spec_of("fit_heads"),
            cell=lambda w, output: str(Path(output.metrics[0]).parents[1]),
        message:
            "fit_heads: {wildcards.task}, {wildcards.strategy}, {wildcards.head}"
        shell:
            f"{OF_ONE_PROCESS}python -m thaw.steps fit_heads --seeds {' '.join(map(str, sorted(PLAN.seeds)))} --out {{params.cell:q}}"
            " --cores {threads}"
            f" --catalogues {ASK.catalogues} --spec {{params.given:q}}"
            f" {ARGUMENTS_OF_RUNS} 2>&1 | tee {{log:q}}"


rule search_heads:
    """Train a head with all settings of a grid and all its seeds side by side, and choose among them on validation."""
    input:
        reads("search_heads", "data", "encoder", "tokens"),
    output:
        chosen=f"{RUN}/chosen.json",
        others=multiext(f"{RUN}/", *WRITTEN["search_heads"]),
    log:
        "<logs>/search_heads/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}.log",
    wildcard_constraints:
        strategy=ASK.strategies("search_heads"),
    priority: longest_first("search_heads")
    conda:
        "../envs/thaw.yaml"
    threads: lambda w: CORES_OF_HEADS("search_heads", ASK.key("search_heads", w))
    resources:
        **requested("search_heads"),
    params:
        **spec_of("search_heads"),
    message:
        "search_heads: {wildcards.task}, {wildcards.strategy}, {wildcards.head}"
    shell:
        f"{OF_ONE_PROCESS}python -m thaw.steps search_heads --catalogues {ASK.catalogues}"
        " --spec {params.given:q} --out $(dirname {output.chosen:q}) --cores {threads}"
        f" {ARGUMENTS_OF_STATES} 2>&1 | tee {{log:q}}"


rule train:
    """Train one run: its phases in turn, each resumed from its boundary."""
    input:
        reads("train", *READ_BY_RUNS),
    output:
        metrics=f"{RUN}/seed{{seed}}/metrics.json",
        others=expand(f"{RUN}/seed{{seed}}/{{name}}", name=WRITTEN["train"], allow_missing=True),
    log:
        "<logs>/train/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}/seed{seed}.log",
    wildcard_constraints:
        strategy=ASK.strategies("train"),
        seed="[0-9]+",
    priority: longest_first("train")
    conda:
        "../envs/thaw.yaml"
    threads: PLAN.threads
    resources:
        **requested("train"),
    params:
        **spec_of("train"),
    message:
        "train: {wildcards.task}, {wildcards.strategy} {wildcards.variant}, seed {wildcards.seed}"
    shell:
        f"python -m thaw.steps train --catalogues {ASK.catalogues}"
        " --spec {params.given:q} --out $(dirname {output.metrics:q})"
        f" {ARGUMENTS_OF_RUNS} 2>&1 | tee {{log:q}}"


rule select:
    """Choose among the trials of a strategy's grid, on validation."""
    input:
        reads("select", "trials"),
    output:
        chosen=f"{RUN}/chosen.json",
    log:
        "<logs>/select/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}.log",
    wildcard_constraints:
        strategy=ASK.strategies("select"),
    priority: longest_first("select")
    conda:
        "../envs/thaw.yaml"
    threads: 1
    resources:
        **requested("select"),
        gpu=0,
    params:
        **spec_of("select"),
    message:
        "select: {wildcards.task}, {wildcards.strategy} {wildcards.variant}"
    shell:
        "python -m thaw.steps select --spec {params.given:q} --trials {input.trials:q}"
        " --out {output.chosen:q} 2>&1 | tee {log:q}"


rule baseline:
    """Score what needs no encoder: the majority class or mean, and a bag of words."""
    input:
        reads("baseline", "data"),
    output:
        metrics="<results>/baselines/{task}/{subset}/{baseline}/metrics.json",
        others=multiext("<results>/baselines/{task}/{subset}/{baseline}/", *WRITTEN["baseline"]),
    log:
        "<logs>/baseline/{task}/{subset}/{baseline}.log",
    priority: 9.5
    conda:
        "../envs/thaw.yaml"
    threads: 1
    resources:
        **requested("baseline"),
        gpu=0,
    params:
        **spec_of("baseline"),
    message:
        "baseline: {wildcards.task}, {wildcards.baseline}"
    shell:
        f"python -m thaw.steps baseline --spec {{params.given:q}} --data $(dirname {{input.data:q}})"
        f" --catalogues {ASK.catalogues}"
        " --out $(dirname {output.metrics:q}) 2>&1 | tee {log:q}"
