"""Figure: what a probe reads off each layer, from the embeddings to the last.

A line for each encoder and probe, as it was pretrained and as runs left it.
"""

from thaw.core import plugins
from thaw.outputs.figures import panels
from thaw.outputs.frame.probe_frame import Names, ProbeRecord, layer_scores, run_names
from thaw.words import wording

LINE = ["encoder", "probe", "run"]
PANEL = ["task", "subset", "measure"]
MEASURES = {"logme": ("LogME, nats a vector", 1), "bound": ("Bits shared with the labels, at least", 1)}


def build(data, spec: dict) -> panels.Figure:
    """Return the scores by layer, a panel for each task, subset and measure, with a band over seeds.

    Scores of unlike kinds share no axis. A broken line is the score of the most frequent label.
    """
    frame, majority = points(data.probes, spec["split"])
    names = Names(spec, frame, run_names(data.probes, spec["labels"]))
    marks = panels.marks_of_lines(frame, LINE)

    def draw(axis, cell, rows) -> None:
        key = tuple(cell.values())
        for line, part in rows.groupby(LINE, sort=False):
            panels.curve(axis, part["layer"], part, marks[line])
        if majority.get(key) is not None:
            axis.axhline(majority[key], **panels.REFERENCE)
        axis.set_ylabel(axis_name(key[2], spec["labels"])[0])
        panels.layer_axis(axis, int(rows["layer"].max()))

    drawn = panels.grouped(frame, PANEL, lambda cell: "\n".join(names.title_words(cell, "subset")), draw)
    legend = [panels.entry(_line_name(dict(zip(LINE, line, strict=True)), names), mark) for line, mark in marks.items()]
    legend += [panels.entry(wording.BASELINE_LABELS["majority"], **panels.REFERENCE)] if majority else []
    return panels.compose(drawn, frame, legend + panels.band_entry(frame, deviation=True))


def points(records: list[ProbeRecord], split: str):
    """Return a row for each line and layer, see `layer_scores`, and {panel: majority}.

    Scores are x 100, but for those that are no share.
    """
    keys = [*PANEL, *LINE, "split", "layer"]
    frame = layer_scores(records, split, keys, lambda measure: axis_name(measure, {})[1])
    known = frame.dropna(subset="baseline").groupby(PANEL, sort=False)["baseline"].last()
    return frame.drop(columns="baseline"), known.to_dict()


def axis_name(measure: str, labels: dict) -> tuple[str, int]:
    """Return what the vertical axis shows of a measure, and its factor: 100 for metrics, 1 for one's own."""
    if measure in wording.METRIC_LABELS or plugins.is_plugin(measure):
        return f"{wording.metric_name(labels, measure)} × 100", 100
    return MEASURES.get(measure, (measure, 1))


def _line_name(line: dict, names: Names) -> str:
    """Return a line's name: of its probe, its encoder and the runs that adapted it what others have otherwise."""
    return "; ".join(names.several(line, "probe", "encoder", "run")) or names.of("probe", line["probe"])
