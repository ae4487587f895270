"""
Teachers: what finished runs give on training rows, once for all students that are trained towards them.

INPUTS      cards of the corpus, the encoder and its tokens; the metrics.json of the run that teaches, with its tensors
OUTPUTS     results/taught/<task>/<subset>/<encoder>/<head>/<strategy>/<variant>/seed<n>/<rows>/card.json (with
            logits.safetensors, cost.json, and a card b<n>.json with its payload for each boundary whose states some
            student is matched to); <rows> is the subset whose training rows were read
SPEC        task, subset, dtype of the states, threads, digests of inputs, the run among them; not which boundaries

One rule per teacher, since the number of its outputs follows from the plan.
"""

import re

for taught in PLAN.jobs["teach"]:
    named = re.sub(r"\W", "_", f"teach_{taught}")

    rule:
        name:
            named
        input:
            reads("teach", "data", "encoder", "tokens", "run", key=taught),
        output:
            card=PLAN.files("teach", taught)[0],
            boundaries=PLAN.files("teach", taught)[1:],
            others=written_files.next_to(PLAN, PLAN.files("teach", taught)),
        log:
            f"<logs>/teach/{taught}.log",
        priority: longest_first("teach", taught)
        conda:
            "../envs/thaw.yaml"
        threads: PLAN.threads
        resources:
            **requested("teach", taught, named=named),
        params:
            spec=PLAN.canonical_of("teach", taught),
        message:
            f"teach: {taught}"
        shell:
            f"python -m thaw.steps teach --catalogues {PLAN.catalogues}"
            " --spec {params.spec:q} --boundaries {output.boundaries:q} --out $(dirname {output.card:q})"
            f" {ARGUMENTS_OF_STATES} --run {{input.run:q}} 2>&1 | tee {{log:q}}"
