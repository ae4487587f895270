"""How a paper's protocol and ours differ."""

from thaw.core.phrases import listing, plural
from thaw.outputs.render.typed_table import Group, Table, text_row
from thaw.words import wording

MARK = "ᵃ"
NOTES = [
    f"{MARK} Read from the catalogues, so it is what the runs have.",
    "As here without a mark: in words, which were written by hand and which nothing compares with the runs.",
    "Not stated: by no source that was available.",
]


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
