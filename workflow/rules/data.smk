"""
Data and encoders: the only rules that may use the network.

INPUTS      the files of a corpus below data_dir; or the Hugging Face Hub; or Thaw's own grammar
            an encoder's folder, Python package or Hub id
OUTPUTS     results/data/<corpus>/card.json (with one Parquet file a split)
            results/encoders/<encoder>/card.json (and config, tokenizer, model.safetensors)
SPEC        prepare: the corpus' catalogue entry, which source, sha256 of its files
            fetch: the encoder's catalogue entry
"""


rule prepare:
    """Read a corpus from its source, check it, carve validation, write Parquet and a card."""
    input:
        files=of_users("prepare", "files"),
    output:
        card="<results>/data/{corpus}/card.json",
        folder=directory("<results>/data/{corpus}"),
    log:
        "<logs>/prepare/{corpus}.log",
    priority: 20  # what everything waits for comes first
    # the network may answer at the second time; a mistake in a file is there at the second time too
    retries: int("prepare" in PLAN.downloads)
    localrule: True
    conda:
        "../envs/thaw.yaml"
    params:
        **spec_of("prepare"),
    message:
        "prepare: reading corpus {wildcards.corpus}"
    shell:
        "python -m thaw.steps prepare --spec {params.given:q}"
        f" --data-dir {ASK.data_dir} --copies {ASK.copies} --out $(dirname {{output.card:q}}) 2>&1 | tee {{log:q}}"


rule fetch:
    """Bring an encoder here, check its hash and shape, write a card."""
    output:
        card="<results>/encoders/{encoder}/card.json",
        folder=directory("<results>/encoders/{encoder}"),
    log:
        "<logs>/fetch/{encoder}.log",
    priority: 20  # what everything waits for comes first
    retries: int("fetch" in PLAN.downloads)
    localrule: True
    conda:
        "../envs/thaw.yaml"
    params:
        **spec_of("fetch"),
    message:
        "fetch: encoder {wildcards.encoder}"
    shell:
        "python -m thaw.steps fetch --spec {params.given:q} --out $(dirname {output.card:q}) 2>&1 | tee {log:q}"
