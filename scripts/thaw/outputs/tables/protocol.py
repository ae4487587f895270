"""How a paper's protocol and ours differ, and which of a paper's printed numbers are computed."""

from thaw.outputs import wording
from thaw.outputs.tables.reproduction import ADDRESS
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_row, text_table

COUNTS = ["Printed", "With an address", "Planned here", "Computed here", "With the paper's encoder"]
NOTE = "As here: read from the catalogues, so it is what the runs have. Not stated: by no source that was available."
UNVERIFIED = (
    "Unverified: no printed number has been computed here with the paper's own encoder; what is computed shows the "
    "protocol on another encoder."
)


def build(data, spec: dict) -> TextTable:
    """Return what the paper did, what is done here, and why they differ, a line for each setting."""
    lines = spec["protocol"]
    rows = [text_row(what, [cell or wording.DASH for cell in cells]) for what, *cells in lines]
    look = {"of": "Setting", "sentences": True}
    titles = ["As the paper", "As here", "Why"]
    return text_table(spec, titles, [Group("", [], rows)], [NOTE], "what paper here why", lines, **look)


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
