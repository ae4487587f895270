"""The store of frozen features: token ids of a corpus and, per boundary, one flat file of hidden states.

A folder holds `tokens.parquet` and its card `tokens.json`, and per boundary n a payload `b<n>.safetensors` (one
tensor [tokens, d] per split, unpadded, rows in the order of the split's Parquet file) and its card `b<n>.json`. A
payload may be deleted to free disk, and whoever needs it makes it again, with its card where that is missing. In the
same way `pooled` and `words` hold vectors of all layers, see thaw.features.parts: all of these are parts of the store.

In a view that encodes the texts of pairs separately, a row's tokens are those of two sequences, one after the other; in
one with windows over contexts, those of all its windows.

B examples, S sequences (B, 2B, or all windows), T tokens of the longest, W words, N rows of a split, d width.
"""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from thaw.core import layout
from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.core.files import atomic_write, locked, read_json, write_json
from thaw.declarations.splits import stored_split
from thaw.features.batch import Batch
from thaw.features.node_copies import nearest
from thaw.features.parts import part_of
from thaw.features.payload import Payload, checksum, floats
from thaw.features.row_sets import RowMasks, masks_of, of_card, without
from thaw.features.sequences import Ragged, Sequences, read_spellings, read_tokens
from thaw.features.tokens import ROWS_AT_ONCE


class Boundary:
    """The hidden states of one boundary and split."""

    def __init__(self, payload: Payload, split: str, tokens: Sequences, check: Callable):
        self._payload, self._split = payload, split
        self._tokens, self._check = tokens, check

    @property
    def flat(self) -> np.ndarray:
        """Return all states [tokens, d], memory-mapped, zero in rows that are not held; bf16 as its 16 bits."""
        return self._payload.tensors[self._split]

    def at(self, places: np.ndarray) -> torch.Tensor:
        """Return the states at some places [n] of the payload, float32 [n, d]."""
        self._check(np.searchsorted(np.cumsum(self._tokens.rows), places, "right"))
        return floats(self._payload.take(self._split, places), self._payload.dtype)

    def gather(self, rows, batch: Batch) -> torch.Tensor:
        """Return the states of some rows, float32 [S, T, d], zero where the batch is padded."""
        self._check(rows)
        places, real = self._tokens.places(self._tokens.of(rows))
        if tuple(batch.mask.shape) != places.shape:
            raise ValueError(f"a batch of shape {tuple(batch.mask.shape)} for rows of shape {places.shape}")
        states = self._payload.take_again(self._split, places.ravel())
        if not real.all():
            states[~real.ravel()] = 0
        return floats(states, self._payload.dtype).view(*places.shape, -1)


AGAIN = "run the workflow again with -R features (of a teacher's states with -R teach)"


class FeatureStore:
    """The features of one encoder, corpus and view, as a folder of files that may be read by many at once."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.card = read_json(self.folder / "tokens.json")
        self._rows: dict[str, tuple[dict[str, Sequences], Ragged]] = {}  # by token, and each word's first piece
        self._payloads: dict[int | str, Payload] = {}
        self._copies: dict[str, Path] = {}  # of payloads on this node's disk, by their content
        self._held: dict[int | str, RowMasks] = {}
        self._spellings = read_spellings(self.folder) if self.card.get("spelt") else None  # [V, C]

    @property
    def splits(self) -> list[str]:
        return list(self.card["splits"])

    def lengths(self, split: str) -> np.ndarray:
        """Return the number of tokens of each row, int64 [N]."""
        return self._columns(split)["input_ids"].rows

    def sizes(self, split: str) -> np.ndarray:
        """Return what each row takes in a batch, padding between its own sequences included, int64 [N]."""
        return self._columns(split)["input_ids"].sizes

    def counts(self, split: str) -> np.ndarray:
        """Return the number of sequences of each row, int64 [N]."""
        return self._columns(split)["input_ids"].counts

    def longest(self, split: str) -> np.ndarray:
        """Return the number of tokens of each row's longest sequence, int64 [N]."""
        return self._columns(split)["input_ids"].longest

    def sequences(self, split: str, rows) -> np.ndarray:
        """Return the number of tokens of each sequence of some rows, int64 [S]."""
        ids = self._columns(split)["input_ids"]
        return ids.lengths[ids.of(rows)]

    @property
    def separate_encoding(self) -> bool:
        return self.card.get("apart", False)

    @property
    def windowed(self) -> bool:
        return self.card.get("windows", False)

    def tokens(self, split: str) -> int:
        return int(self.lengths(split).sum())

    def vocabulary(self) -> np.ndarray:
        """Return the ids of the tokens that any split has, the padding's among them, rising, int64 [U]."""
        ids = [self._columns(split)["input_ids"].flat for split in self.splits]
        return np.unique(np.concatenate([*ids, [self.card["pad"]]])).astype(np.int64)

    def batch(self, split: str, rows, length: int = 0) -> Batch:
        """Return some rows of a split as token ids, padded to the longest of them, or to a length above it."""
        rows, columns = np.asarray(rows), self._columns(split)
        chosen = columns["input_ids"].of(rows)
        if not columns["input_ids"].rows[rows].all():
            raise UserError(f"{self.folder} is an excerpt, and does not hold all rows of {split} that are asked for")
        ids = columns["input_ids"].padded(chosen, self.card["pad"], length)
        ids = ids if self._spellings is None else self._spellings[ids]
        mask = torch.from_numpy(columns["input_ids"].places(chosen, length)[1])
        types = columns["type_ids"].padded(chosen, 0, length) if self.card["types"] else None
        words = self.card["words"]
        pieces = self._first_pieces(split).padded(rows, -1) if words else torch.empty(len(rows), 0, dtype=torch.int64)
        texts = columns["texts"].padded(chosen, 0, length).to(torch.int8)
        numbers = torch.from_numpy(rows.astype(np.int64))
        if not self.windowed:
            return Batch(ids, mask, types, pieces, numbers, texts)
        windows = torch.from_numpy(columns["input_ids"].counts[rows])
        characters = torch.stack([columns[name].padded(chosen, -1, length) for name in ("starts", "ends")], -1)
        return Batch(ids, mask, types, pieces, numbers, texts, windows, characters)

    def places(self, split: str, rows) -> np.ndarray:
        """Return the positions of the tokens of some rows in a payload, row after row, int64 [tokens of the rows]."""
        ids = self._columns(split)["input_ids"]
        places, real = ids.places(ids.of(rows))
        return places[real]

    def in_texts(self, split: str, rows) -> np.ndarray:
        """Return the positions of the tokens of some rows in a payload, without special tokens, row after row."""
        places = self.places(split, rows)
        return places[self._columns(split)["texts"].flat[places] != 0]

    def has_word(self, split: str) -> tuple[np.ndarray, np.ndarray]:
        """Return for all words of a split, row after row, whether they have a token; and how many each row has [N]."""
        words = self._first_pieces(split)
        return words.flat >= 0, words.lengths

    def words_with_token(self, split: str, rows) -> list[np.ndarray]:
        """Return by row which of its words have a token, bool [words of the row]."""
        has, lengths = self.has_word(split)
        ends = np.cumsum(lengths)
        return [has[ends[row] - lengths[row] : ends[row]] for row in rows]

    def sequence_places(self, split: str, rows) -> np.ndarray:
        """Return the positions of the sequences of some rows among all of a split, int64 [S]."""
        return self._columns(split)["input_ids"].of(rows)

    def boundaries(self) -> list[int]:
        """Return the boundaries whose card and payload are both there."""
        numbers = sorted(int(card.stem[1:]) for card in self.folder.glob("b*.json"))
        return [number for number in numbers if self.payload_path(number).is_file()]

    def states(self, boundary: int | str, split: str) -> Boundary:
        """Return the states of a boundary; a payload that is missing, cut short or another's is a UserError."""
        stored, check = stored_split(split, self.splits), functools.partial(self._check_held, boundary, split)
        return Boundary(self.payload(boundary), stored, self._columns(split)["input_ids"], check)

    def vectors(self, part: str, split: str, rows, *inner: list[int]) -> tuple[np.ndarray, str]:
        """Return what `pooled` or `words` (thaw.features.parts) holds of some rows, as it is stored, and the dtype.

        Args: inner, the numbers of the boundaries and, of `pooled`, the positions of the poolings that are read;
        nothing else is.
        """
        payload = self.payload(part)
        self._check_held(part, split, rows)
        places = part_of(part, self.part_card(part).get("layers")).places(self, split, rows)
        return payload.take(stored_split(split, self.splits), places, *inner), payload.dtype

    def held(self, part: int | str) -> RowMasks:
        """Return by split which rows a part holds, bool [N]."""
        return of_card(self, self.part_card(part))

    def _check_held(self, part: int | str, split: str, rows) -> None:
        """Raise UserError where a part does not hold some rows."""
        if part not in self._held:
            self._held[part] = self.held(part)
        if not self._held[part][stored_split(split, self.splits)][rows].all():
            raise UserError(
                f"{self.card_path(part)}: some rows of {split} are not stored, since no run of the workflow has read "
                "them; a run on all rows of train has them stored"
            )

    def forget(self, parts: list[int | str]) -> None:
        for part in parts:
            self._payloads.pop(part, None)
            self._held.pop(part, None)

    def payload(self, part: int | str) -> Payload:
        if part not in self._payloads:
            card, path = self.part_card(part), self._existing_payload(part)
            path = self._copies.get(card["sha256"], path)
            kind = part_of(part, card.get("layers"))
            shapes = {name: kind.shape(self, name, card["width"]) for name in self.splits}
            self._payloads[part] = Payload.open(path, card["dtype"], shapes)
        return self._payloads[part]

    def require(self, parts: list[int | str], remake=None, rows: dict[str, np.ndarray] | None = None) -> None:
        """Make sure that payloads are there, are what their cards say and hold some rows, or raise a UserError.

        `remake(missing, masks)` is called for those that are not there or lack rows, under a lock, so that of several
        jobs one makes them and the others wait; what was freed must get the checksum on the card, which another device
        rewrites. Args: rows, by split; None for those that each part holds.
        """
        with locked(self.folder):
            wanted = None if rows is None else masks_of(self, rows)
            missing = [part for part in parts if self._lacks(part, wanted)]
            if missing and remake:
                remake(missing, wanted)
        for part in parts:
            path, same = self._existing_payload(part), True
            if checksum(path) != self.part_card(part)["sha256"]:
                with locked(self.folder):  # while it is held nobody adds rows, and the card is that of the payload
                    same = path.is_file() and checksum(path) == self.part_card(part)["sha256"]
                    if not same:
                        path.unlink(missing_ok=True)
            if not same:
                raise UserError(
                    f"{path} is not the file that its card describes (sha256 differs): a disk error, or somebody "
                    "wrote to it; it was deleted, and the next run of the workflow makes it again"
                )
            card = self.part_card(part)
            self._copies[card["sha256"]] = nearest(path, card)

    def _lacks(self, part: int | str, wanted: RowMasks | None) -> bool:
        """Return whether a part was never stored, was freed, or lacks wanted rows."""
        if not (self.card_path(part).is_file() and self.payload_path(part).is_file()):
            return True
        return wanted is not None and any(mask.any() for mask in without(wanted, self.held(part)).values())

    def _existing_payload(self, part: int | str) -> Path:
        path = self.payload_path(part)
        if not path.is_file():
            raise UserError(f"{path} is missing; {AGAIN}")
        return path

    def payload_path(self, part: int | str) -> Path:
        return self.card_path(part).with_suffix(".safetensors")

    def card_path(self, part: int | str) -> Path:
        return Path(layout.stored_part(str(self.folder), part))

    def part_card(self, part: int | str) -> dict:
        """Return a part's card; one made from another encoder, tokenizer, corpus or view is a UserError."""
        if not self.card_path(part).is_file():
            raise UserError(f"{self.card_path(part)} is missing; {AGAIN}")
        card = read_json(self.card_path(part))
        for key in ("digest", "weights", "tokenizer", "data"):
            if card[key] != self.card[key]:
                raise UserError(
                    f"{self.card_path(part)}: made for another {key} ({card[key]}) than tokens.json "
                    f"({self.card[key]}); delete {self.folder} and run the workflow again"
                )
        of = card.get("boundary", card.get("part"))
        if of != part:
            raise UserError(
                f"{self.card_path(part)} is the card of boundary {of}; delete {self.folder} and run the workflow again"
            )
        return card

    def _columns(self, split: str) -> dict[str, Sequences]:
        return self._tokens(split)[0]

    def _first_pieces(self, split: str) -> Ragged:
        return self._tokens(split)[1]

    def _tokens(self, split: str) -> tuple[dict[str, Sequences], Ragged]:
        """Read the token ids of a split, once."""
        if not self._rows:
            self._check_tokens()
        split = stored_split(split, self.splits)
        if split not in self._rows:
            if split not in self.card["splits"]:
                raise UserError(f"{self.folder} has no split {split}; it has {', '.join(self.splits)}")
            self._rows[split] = read_tokens(self.folder / "tokens.parquet", split)
            rows = self.card["splits"][split]["examples"]
            if len(self._rows[split][0]["input_ids"].rows) != rows:
                raise UserError(f"{self.folder}/tokens.parquet does not hold the {rows} rows of {split} on its card")
        return self._rows[split]

    def _check_tokens(self) -> None:
        """Raise UserError where the token ids are not those that the card describes; the card goes, so that a rerun
        makes both again.
        """
        path = self.folder / "tokens.parquet"
        if not path.is_file() or checksum(path) != self.card["sha256"]:
            (self.folder / "tokens.json").unlink(missing_ok=True)
            raise UserError(
                f"{path} is missing or not the file that its card describes (sha256 differs); the card was deleted, "
                "and run again the workflow makes both again"
            )


def write_excerpt(source: FeatureStore, out: Path, wanted: dict[str, np.ndarray], changes: dict) -> FeatureStore:
    """Write tokens.parquet and tokens.json of an excerpt and return it, as yet without states.

    Args: the store of all rows; folder; by split the rows that stay; what its card has in the place of the other's.
    """
    import pyarrow
    import pyarrow.parquet as parquet

    out.mkdir(parents=True, exist_ok=True)
    whole = parquet.ParquetFile(source.folder / "tokens.parquet")
    path, tokens = out / "tokens.parquet", dict.fromkeys(source.splits, 0)
    kept: dict[str, set[int]] = {split: set() for split in source.splits}
    for split, rows in wanted.items():
        kept[stored_split(split, source.splits)] |= set(rows.tolist())
    with atomic_write(path) as temporary, parquet.ParquetWriter(temporary, whole.schema_arrow) as writer:
        for piece in whole.iter_batches(ROWS_AT_ONCE):
            columns = piece.to_pydict()
            for place, (split, row) in enumerate(zip(columns["split"], columns["row"], strict=True)):
                if row not in kept[split]:
                    for name, values in columns.items():
                        empty = {"split": split, "row": row, "second": 0}
                        values[place] = empty.get(name, [])
                tokens[split] += len(columns["input_ids"][place])
            writer.write_table(pyarrow.table(columns, schema=whole.schema_arrow))
    if source.card.get("spelt"):
        with atomic_write(out / "spellings.safetensors") as temporary:
            Path(temporary).write_bytes((source.folder / "spellings.safetensors").read_bytes())
    splits = {
        split: {"examples": facts["examples"], "tokens": tokens[split], "kept": len(kept[split])}
        for split, facts in source.card["splits"].items()
    }
    write_json(out / "tokens.json", source.card | changes | {"splits": splits, "sha256": file_sha256(path)})
    return FeatureStore(out)
