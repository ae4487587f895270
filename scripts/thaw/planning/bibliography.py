"""The bibliography of an experiment: BibTeX entries of all that it uses, from references.bib of the catalogues."""

import re
from collections.abc import Iterable
from pathlib import Path

from thaw.declarations import citations
from thaw.schema.catalogue import Catalogue

FILE = "references.bib"
ENTRY = re.compile(r"^@\w+\{([^,\s]+),.*?(?=^@|\Z)", re.MULTILINE | re.DOTALL)


def entries_of(catalogue: Catalogue, metrics: Iterable[str], cited: Iterable[list[str]]) -> dict[str, str]:
    """Return {key: BibTeX entry} of what is cited and has an entry, in order; a key without one is left out.

    Args: metrics of the tasks; the keys of each catalogue entry that the experiment uses.
    """
    keys = [key for some in cited for key in some]
    keys += [citations.METRICS[metric] for metric in metrics if metric in citations.METRICS]
    keys += [*citations.OPTIMIZERS.values(), citations.TESTS, *citations.SOFTWARE]
    known: dict = {}
    for folder in catalogue.folders:
        path = Path(folder, FILE)
        known |= entries(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {key: known[key] for key in dict.fromkeys(keys) if key in known}


def entries(text: str) -> dict[str, str]:
    """Return {key: entry} of a BibTeX file whose entries begin at the start of a line."""
    return {match[1]: match[0].strip() for match in ENTRY.finditer(text)}
