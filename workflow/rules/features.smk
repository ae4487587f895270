"""
Features: the hidden states of the frozen encoder, computed once and read by every run.

INPUTS      results/data/<corpus>/card.json, results/encoders/<encoder>/card.json
OUTPUTS     results/features/<encoder>/<corpus>/<view>/tokens.json, and for each part that a run reads b<n>.json
            (boundary n), pooled.json (texts in all layers) or words.json (words in all layers);
            the payloads are next to their cards and may be deleted: a job that needs one makes it again. With store: free:
            they are when all readers are done, and the file `freed` says so
SPEC        view, dtype of the store, precision where it is not fp32, threads, digests of corpus and encoder; not which
            boundaries, nor which rows: those that some run of the plan reads are stored, and a later job that reads
            others adds them

One rule per store, since the number of its outputs follows from the plan.
"""

import re

from thaw.planning.core_shares import extraction_cores

# Here a pass takes the cores that other passes leave: processes with the threads of a job share its batches.
CORES_OF_A_PASS = extraction_cores(PLAN, CORES)

for store in PLAN.jobs["features"]:
    named = re.sub(r"\W", "_", f"features_{store}")

    rule:
        name:
            named
        input:
            reads("features", "data", "encoder", key=store),
        output:
            tokens=PLAN.cards(store)[0],
            boundaries=PLAN.cards(store)[1:],
            payloads=written_files.next_to(PLAN, PLAN.cards(store)),
        log:
            f"<logs>/features/{store}.log",
        priority: 10  # runs wait for it
        conda:
            "../envs/thaw.yaml"
        threads: CORES_OF_A_PASS
        resources:
            **requested("features", store, named=named),
        params:
            spec=PLAN.canonical_of("features", store),
            # derived from the output, so that Snakemake makes no store again where others read it
            rows=lambda wildcards, output: PLAN.rows_read(output.tokens),
        message:
            f"features: one pass of the encoder over {store}"
        shell:
            f"{OF_ONE_PROCESS}python -m thaw.steps features"
            " --spec {params.spec:q} --boundaries {output.boundaries:q}"
            " --rows {params.rows:q} --cores {threads}"
            f" --data {folder_of('data')} --encoder {folder_of('encoder')}"
            " --out $(dirname {output.tokens:q}) 2>&1 | tee {log:q}"


for folder, readers in PLAN.freed().items():

    rule:
        name:
            re.sub(r"\W", "_", f"free_{folder}")
        input:
            readers,
        output:
            touch(f"{folder}/freed"),
        log:
            f"<logs>/free/{folder}.log",
        localrule: True
        conda:
            "../envs/thaw.yaml"
        message:
            "free: all that read {output} are done"
        shell:
            "rm -f $(dirname {output:q})/b*.safetensors 2> {log:q}"
