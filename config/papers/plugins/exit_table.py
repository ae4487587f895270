"""A table of early exits: score and executed layers by threshold, from the records of the probe `early_exit`."""

from thaw.declarations.output_kind import OF_PROBES, OutputKind

TABLES = {
    "exit_table": OutputKind(
        "thaw.papers.exit_table:build",
        "score and mean executed layers where texts leave early, by threshold; the threshold that loses little on "
        "validation, with the 95 % CI of its test score, and the one layer that does",
        **OF_PROBES,
    )
}


from thaw.outputs.frame.probe_frame import Names, run_names
from thaw.outputs.render.typed_table import Cell, Group, Row, Table
from thaw.words import wording


def build(data, spec: dict) -> Table:
    """Return by task, encoder and probe a row for each threshold, the chosen one, and one layer for all texts."""
    import pandas

    names = Names(spec, pandas.DataFrame([one.cell for one in data.probes]), run_names(data.probes, spec["labels"]))
    groups = []
    for record in data.probes:
        exits = pandas.DataFrame([row for end in record.value("layers") for row in end.get("exits", [])])
        means = exits.set_index(["split", "rule"]).astype(float).groupby(level=[0, 1], sort=False).mean()
        words = names.title_words(record.cell, "subset", "encoder", "run", "probe")
        rows = []
        for rule, test in means.loc[record.split("test")].iterrows():
            held = means.loc[record.split("validation"), rule]
            scores = [Cell(held["score"]), Cell(test["score"], low=test["low"], high=test["high"])]
            lost = None if rule == "never" else Cell(test["lost"], low=test["lost_low"], high=test["lost_high"])
            name = f"{rule}: {test['threshold']:.2f}" if rule == "chosen" else rule
            layers = [Cell(one["executed"], digits=2) for one in (held, test)]
            rows.append(Row(name, [*scores, lost, *layers], [record.cell | {"rule": rule, **test.to_dict()}]))
        groups.append(Group(f"{', '.join(words)}: {wording.metric_name(spec['labels'], record.value('main'))}", rows))
    notes = [
        "Scores × 100, means over seeds; in brackets 95 % CIs over examples. A text leaves at the first layer whose "
        "linear probe gives a label at least this probability. Layer 0, the embeddings, executes none.",
        "Never: all texts leave at the last exit, the layer that scores highest on validation. What is lost is lost to "
        "it. Chosen: the lowest threshold from which on none loses more there than the probe allows. One layer: the "
        "lowest that loses no more, for all texts.",
    ]
    titles = ["Validation", "Test", "Lost on test", "Layers executed, validation", "Layers executed, test"]
    return Table.of_spec(spec, titles, groups, notes, of="Threshold")
