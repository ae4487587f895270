"""
Training: one run per task, subset, encoder, head, strategy, variant and seed.

INPUTS      cards of the corpus, the encoder and the boundaries that the run's phases resume from, in each view that it
            reads; the same of the transfer sets of its task and of auxiliary tasks;
            what it needs of other jobs (scripts/thaw/declarations/needs.py): for a strategy with `after:`, the
            metrics.json of the run that it starts from; with `teacher:`, the card.json and the states of what the
            teacher gave (teach.smk), or the teacher's metrics.json; with `search:` or `rates_from:`, the chosen.json
            of the search
OUTPUTS     results/runs/<task>/<subset>/<encoder>/<head>/<strategy>/<variant>/seed<n>/metrics.json (and cost.json,
            history.csv, predictions.parquet, head.safetensors with it)
            results/runs/<task>/<subset>/<encoder>/<head>/<strategy>/<variant>/chosen.json, of a search (from
            search_heads with trials.csv and cost.json in its folder)
            results/baselines/<task>/<subset>/<baseline>/metrics.json
            With compute: {together: 5} one job trains up to five seeds of a cell, of which those that are done stay.
SPEC        task, subset, head, phases with what they train and resume from, seed, threads, digests of all inputs

fit_heads executes strategies in which a head trains alone on vectors that stay the same, fitted to convergence or for
some epochs, all seeds in one job; search_heads all trials of a search over such runs; train everything else.
"""

from itertools import product

from thaw.planning.core_shares import head_cores

RUN = "<results>/runs/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}"
# What a run reads, and how its step is given it.
ALWAYS = ["data", "encoder", "tokens", "boundaries"]
# What only some runs read, where a run of the plan does: a name without a file costs as much time in planning as another.
READ = PLAN.names_read("train", "fit_heads")
FURTHER = [name for name in [*ROLES, "teacher_states", "also_data", "also_tokens", "also_boundaries"] if name in READ]
READ_BY_RUNS = [*ALWAYS, *FURTHER]
ARGUMENTS = {name: f"--need {name} {{input.{name}:q}}" for name in ROLES}
ARGUMENTS |= {"also_data": f"--also-data {cards_of('also_data')}", "also_tokens": "--also-tokens {input.also_tokens:q}"}
ARGUMENTS_OF_RUNS = " ".join([ARGUMENTS_OF_STATES, *(words for name, words in ARGUMENTS.items() if name in FURTHER)])
SEED_GROUPS, SINGLE_SEEDS = PLAN.trained_together()
# On one machine processes with the threads of a job share heads that train, where these are worth it.
CORES_OF_HEADS = head_cores(PLAN, CORES)
# Runs that keep their encoder have rules of their own, which write one file more. No wildcard says which runs these are,
# so the constraint of `task` looks at the path that follows it.
WITHOUT_ENCODER, WITH_ENCODER = written_files.runs_by_keeping(PLAN)
# By that constraint what a run writes next to metrics.json.
FILES = {WITHOUT_ENCODER: WRITTEN["train"]} | ({WITH_ENCODER: (*WRITTEN["train"], ENCODER)} if WITH_ENCODER else {})


# It declares the files of every seed, with each of which Snakemake compares every file of a plan that has this rule.
if PLAN.executed["fit_heads"]:

    ruleorder: fit_heads > train

    rule fit_heads:
        """Fit a head on the frozen features, for all seeds at once."""
        input:
            reads("fit_heads", *READ_BY_RUNS),
        output:
            metrics=expand(f"{RUN}/seed{{seed}}/metrics.json", seed=PLAN.seeds(), allow_missing=True),
            others=expand(
                f"{RUN}/seed{{seed}}/{{name}}", seed=PLAN.seeds(), name=WRITTEN["fit_heads"], allow_missing=True
            ),
        log:
            "<logs>/fit_heads/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}.log",
        wildcard_constraints:
            strategy=PLAN.strategies("fit_heads"),
        priority: longest_first("fit_heads")
        conda:
            "../envs/thaw.yaml"
        threads: lambda w: CORES_OF_HEADS("fit_heads", PLAN.key("fit_heads", w))
        resources:
            **requested("fit_heads"),
        params:
            spec=lambda w: PLAN.canonical("fit_heads", w),
            cell=lambda w, output: str(Path(output.metrics[0]).parents[1]),
        message:
            "fit_heads: {wildcards.task}, {wildcards.strategy}, {wildcards.head}"
        shell:
            f"{OF_ONE_PROCESS}python -m thaw.steps fit_heads --seeds {' '.join(map(str, PLAN.seeds()))} --out {{params.cell:q}}"
            " --cores {threads}"
            f" --catalogues {PLAN.catalogues} --spec {{params.spec:q}}"
            f" {ARGUMENTS_OF_RUNS} 2>&1 | tee {{log:q}}"


rule search_heads:
    """Train a head with all settings of a grid and all its seeds side by side, and choose among them on validation."""
    input:
        reads("search_heads", "data", "encoder", "tokens", "boundaries"),
    output:
        chosen=f"{RUN}/chosen.json",
        others=multiext(f"{RUN}/", *WRITTEN["search_heads"]),
    log:
        "<logs>/search_heads/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}.log",
    wildcard_constraints:
        strategy=PLAN.strategies("search_heads"),
    priority: longest_first("search_heads")
    conda:
        "../envs/thaw.yaml"
    threads: lambda w: CORES_OF_HEADS("search_heads", PLAN.key("search_heads", w))
    resources:
        **requested("search_heads"),
    params:
        spec=lambda w: PLAN.canonical("search_heads", w),
    message:
        "search_heads: {wildcards.task}, {wildcards.strategy}, {wildcards.head}"
    shell:
        f"{OF_ONE_PROCESS}python -m thaw.steps search_heads --catalogues {PLAN.catalogues}"
        " --spec {params.spec:q} --out $(dirname {output.chosen:q}) --cores {threads}"
        f" {ARGUMENTS_OF_STATES} 2>&1 | tee {{log:q}}"


rule train:
    """Train one run: its phases in turn, each resumed from its boundary."""
    input:
        reads("train", *READ_BY_RUNS),
    output:
        # update: the step looks whether they are there already, as when the number of seeds a job has changed
        metrics=update(f"{RUN}/seed{{seed}}/metrics.json"),
        others=update(expand(f"{RUN}/seed{{seed}}/{{name}}", name=FILES[WITHOUT_ENCODER], allow_missing=True)),
    log:
        "<logs>/train/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}/seed{seed}.log",
    wildcard_constraints:
        task=WITHOUT_ENCODER,
        strategy=PLAN.strategies("train"),
        seed=SINGLE_SEEDS if SEED_GROUPS else "[0-9]+",
    priority: longest_first("train")
    conda:
        "../envs/thaw.yaml"
    threads: PLAN.threads
    resources:
        **requested("train"),
    params:
        spec=lambda w: PLAN.canonical("train", w),
    message:
        "train: {wildcards.task}, {wildcards.strategy} {wildcards.variant}, seed {wildcards.seed}"
    shell:
        f"python -m thaw.steps train --if-missing --catalogues {PLAN.catalogues}"
        " --spec {params.spec:q} --out $(dirname {output.metrics:q})"
        f" {ARGUMENTS_OF_RUNS} 2>&1 | tee {{log:q}}"


if WITH_ENCODER:

    use rule train as train_kept with:
        output:
            metrics=update(f"{RUN}/seed{{seed}}/metrics.json"),
            others=update(expand(f"{RUN}/seed{{seed}}/{{name}}", name=FILES[WITH_ENCODER], allow_missing=True)),
        wildcard_constraints:
            task=WITH_ENCODER,
            strategy=PLAN.strategies("train"),
            seed=SINGLE_SEEDS if SEED_GROUPS else "[0-9]+",
        resources:
            **requested("train", named="train_kept"),


for (part, variants), (tasks, names) in product(SEED_GROUPS.items(), FILES.items()):
    named = f"train_{'_'.join(map(str, part))}{'_kept' if tasks == WITH_ENCODER else ''}"

    rule:
        # Train several seeds of a cell in one job, of which those are left that are not done: `update` keeps the others.
        name:
            named
        input:
            reads("train", *READ_BY_RUNS, seeds=part),
        output:
            metrics=update(expand(f"{RUN}/seed{{seed}}/metrics.json", seed=part, allow_missing=True)),
            others=update(expand(f"{RUN}/seed{{seed}}/{{name}}", seed=part, name=names, allow_missing=True)),
        log:
            f"<logs>/train/{{task}}/{{subset}}/{{encoder}}/{{head}}/{{strategy}}/{{variant}}/seeds{'_'.join(map(str, part))}.log",
        wildcard_constraints:
            task=tasks,
            variant=variants,
        priority: longest_first("train", seeds=part)
        conda:
            "../envs/thaw.yaml"
        threads: PLAN.threads
        resources:
            **requested("train", seeds=part, named=named),
        params:
            spec=specs_of("train", part),
            cell=lambda w, output: str(Path(output.metrics[0]).parents[1]),
        message:
            "train: {wildcards.task}, {wildcards.strategy} {wildcards.variant}, several seeds"
        shell:
            f"python -m thaw.steps train --catalogues {PLAN.catalogues}"
            " --spec {params.spec:q} --out {params.cell:q}"
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
        strategy=PLAN.strategies("select"),
    priority: longest_first("select")
    conda:
        "../envs/thaw.yaml"
    threads: 1
    resources:
        **requested("select"),
        gpu=0,
    params:
        spec=lambda w: PLAN.canonical("select", w),
    message:
        "select: {wildcards.task}, {wildcards.strategy} {wildcards.variant}"
    shell:
        "python -m thaw.steps select --spec {params.spec:q} --trials {input.trials:q}"
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
    conda:
        "../envs/thaw.yaml"
    threads: 1
    resources:
        **requested("baseline"),
        gpu=0,
    params:
        spec=lambda w: PLAN.canonical("baseline", w),
    message:
        "baseline: {wildcards.task}, {wildcards.baseline}"
    shell:
        f"python -m thaw.steps baseline --spec {{params.spec:q}} --data {folder_of('data')}"
        f" --catalogues {PLAN.catalogues}"
        " --out $(dirname {output.metrics:q}) 2>&1 | tee {log:q}"
