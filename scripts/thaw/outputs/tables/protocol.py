"""How a paper's protocol and ours differ, and which of a paper's printed numbers are computed."""

from thaw.core.phrases import listing, plural
from thaw.outputs import wording
from thaw.outputs.tables.reproduction import ADDRESS
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_row, text_table

COUNTS = ["Printed", "With an address", "Planned here", "Computed here", "With the paper's encoder"]
MARK = "ᵃ"
NOTES = [
    f"{MARK} Read from the catalogues, so it is what the runs have.",
    "As here without a mark: in words, which were written by hand and which nothing compares with the runs.",
    "Not stated: by no source that was available.",
]
UNVERIFIED = (
    "Unverified: no printed number has been computed here with the paper's own encoder; what is computed shows the "
    "protocol on another encoder."
)


def build(data, spec: dict) -> TextTable:
    """Return what the paper did, what is done here, and why they differ, a line for each setting."""
    rows, lines = [], []
    for what, paper, here, why, read in spec["protocol"]:
        rows.append(text_row(what, [cell or wording.DASH for cell in (paper, here + MARK * read, why)]))
        lines.append([what, paper, here, why, "catalogues" if read else "words"])
    look = {"of": "Setting", "sentences": True}
    titles = ["As the paper", "As here", "Why"]
    notes = [*NOTES, *_scaled(spec)]
    return text_table(spec, titles, [Group("", [], rows)], notes, "what paper here why here_from", lines, **look)


def _scaled(spec: dict) -> list[str]:
    """Return a sentence on what the runs of a scaled-down experiment have, whatever the lines say; else none."""
    scaled = spec.get("scaled")
    if not scaled:
        return []
    named = [("encoders", "encoder"), ("subsets", "rows")]
    has = [
        f"{word} {listing(wording.label(spec['labels'], key, id) for id in scaled[key])}"
        for key, word in named
        if key in scaled
    ]
    if seeds := scaled.get("seeds"):
        has.append(f"{'seeds' if len(seeds) > 1 else 'seed'} {listing(map(str, seeds))}")
    if most := scaled.get("search_seeds"):
        has.append(f"{plural(most, 'seed')} for each setting of a search")
    layers = " Points of sweeps over layers were moved to the encoder's." if "encoders" in scaled else ""
    return [f"Scaled down: whatever the lines above say, the runs here have {listing(has)}.{layers}"]


def build_coverage(data, spec: dict) -> TextTable:
    """Return by table how many numbers the paper prints, and how many of them are computed."""
    coverage, runs = spec["coverage"], data.runs
    shown = runs[(runs["missing"] == "") & runs["value"].notna() & (runs["subset"] == coverage["subset"])]
    done = set(map(tuple, shown[ADDRESS].astype(str).to_numpy().tolist()))
    lines = []
    for table in coverage["tables"]:
        computed = [cell for cell in table["cells"] if all(tuple(at) in done for at in cell["at"])]
        own = [cell for cell in computed if cell["own"]]
        counts = [table["printed"], table["addressed"], len(table["cells"]), len(computed), len(own)]
        lines.append([table["source"], *counts])
    sums = [sum(line[place] for line in lines) for place in range(1, len(COUNTS) + 1)]
    rows = [Row({}, line[0], [TextCell(str(count), count) for count in line[1:]]) for line in [*lines, ["All", *sums]]]
    notes = [f"{coverage['cite']}, arXiv:{coverage['arxiv']}."] + [UNVERIFIED] * (not sums[-1])
    for table in coverage["tables"]:
        notes += [f"{table['source']}, without an address: {reason}." for reason in table["reasons"]]
    header = "source printed addressed planned computed own_encoder"
    return text_table(spec, COUNTS, [Group("", [], rows)], notes, header, [*lines, ["All", *sums]], of="Table")
