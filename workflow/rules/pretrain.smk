"""
Further pretraining: an encoder trained once more by its own objective on the training text of a corpus.

INPUTS      results/encoders/<encoder>/card.json, and the tokens of its store of the corpus
OUTPUTS     results/encoders/<encoder>.<further pretraining>.<corpus>/card.json and cost.json (and config, tokenizer,
            model.safetensors), from which features are extracted and runs start as from a fetched encoder
SPEC        the entry of further_pretraining, threads, digests of encoder and tokens; one for all strategies and seeds
"""


rule pretrain:
    """Train an encoder further on unlabelled training text, check that it resumes exactly, write a card."""
    input:
        reads("pretrain", "encoder", "tokens"),
    output:
        card="<results>/encoders/{encoder}.{further}.{corpus}/card.json",
        cost="<results>/encoders/{encoder}.{further}.{corpus}/cost.json",
        folder=directory("<results>/encoders/{encoder}.{further}.{corpus}"),
    log:
        "<logs>/pretrain/{encoder}.{further}.{corpus}.log",
    priority: longest_first("pretrain")
    conda:
        "../envs/thaw.yaml"
    threads: PLAN.threads
    resources:
        **requested("pretrain"),
    params:
        **spec_of("pretrain"),
    message:
        "pretrain: {wildcards.encoder} on the training text of {wildcards.corpus}, as {wildcards.further} says"
    shell:
        f"python -m thaw.steps pretrain --spec {{params.given:q}} --encoder $(dirname {{input.encoder:q}})"
        " --gpu-mb {resources.gpu_mb} --features $(dirname {input.tokens:q}) --out $(dirname {output.card:q}) 2>&1 | tee {log:q}"
