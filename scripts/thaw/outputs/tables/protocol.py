"""How a paper's protocol and ours differ, and which of a paper's printed numbers are computed."""

from thaw.core.phrases import listing, plural
from thaw.outputs.render.typed_table import Cell, Group, Row, Table, text_row
from thaw.outputs.tables.reproduction import ADDRESS
from thaw.words import wording

COUNTS = {
    "printed": "Printed",
    "addressed": "With an address",
    "planned": "Planned here",
    "computed": "Computed here",
    "own_encoder": "With the paper's encoder",
}
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


def build(data, spec: dict) -> Table:
    """Return what the paper did, what is done here, and why they differ, a line for each setting."""
    rows = []
    for what, paper, here, why, read in spec["protocol"]:
        record = {"what": what, "paper": paper, "here": here, "why": why}
        record["here_from"] = "catalogues" if read else "words"
        rows.append(text_row(what, [cell or wording.DASH for cell in (paper, here + MARK * read, why)], record))
    titles, look = ["As the paper", "As here", "Why"], {"of": "Setting", "sentences": True}
    return Table.of_spec(spec, titles, [Group("", rows)], [*NOTES, *_scaled(spec)], **look)


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


def build_coverage(data, spec: dict) -> Table:
    """Return by table how many numbers the paper prints, and how many of them are computed."""
    coverage, runs = spec["coverage"], data.runs
    shown = runs[(runs["missing"] == "") & runs["value"].notna() & (runs["subset"] == coverage["subset"])]
    done = set(map(tuple, shown[ADDRESS].astype(str).to_numpy().tolist()))
    records = []
    for table in coverage["tables"]:
        computed = [cell for cell in table["cells"] if all(tuple(at) in done for at in cell["at"])]
        own = [cell for cell in computed if cell["own"]]
        counts = [table["printed"], table["addressed"], len(table["cells"]), len(computed), len(own)]
        records.append({"source": table["source"], **dict(zip(COUNTS, counts, strict=True))})
    records.append({"source": "All", **{name: sum(record[name] for record in records) for name in COUNTS}})
    rows = [Row(record["source"], [Cell(record[name], digits=0) for name in COUNTS], [record]) for record in records]
    notes = [f"{coverage['cite']}, arXiv:{coverage['arxiv']}."] + [UNVERIFIED] * (not records[-1]["own_encoder"])
    for table in coverage["tables"]:
        notes += [f"{table['source']}, without an address: {reason}." for reason in table["reasons"]]
    return Table.of_spec(spec, COUNTS.values(), [Group("", rows)], notes, of="Table")
