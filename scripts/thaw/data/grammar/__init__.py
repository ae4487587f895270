"""The embedded corpora: sentences that Thaw writes itself from a seeded grammar, so that the demo needs no network.

One module per corpus; each is synthetic and has to be named so wherever it is shown.
"""

from thaw.core.errors import UserError
from thaw.data.grammar import acceptability, assemble_corpus, entities, paraphrase, similarity_pairs

CORPORA = {
    "acceptability": acceptability,
    "entities": entities,
    "paraphrase": paraphrase,
    "similarity": similarity_pairs,
}


def write(name: str) -> dict:
    """Write one corpus: split name -> pandas frame, the same bytes at each call; an unknown name is a UserError."""
    if name not in CORPORA:
        raise UserError(f"there is no embedded corpus {name!r}: choose one of {', '.join(sorted(CORPORA))}")
    return assemble_corpus.frames(CORPORA[name])
