"""What a finished run, as a teacher, gives on training rows: logits, and hidden states where students ask for them.

A folder holds `logits.safetensors` (rows, logits, and of words where each row's begin), `card.json` under whose digest
students name it, and a store of the teacher's hidden states, by the rules of thaw.features.store: tokens.json, and for
each boundary that was asked for a card `b<n>.json` with its payload.

n rows, B rows of a batch, W words of the longest, C outputs, S sequences, T tokens, d width.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

from thaw.compute_cost.flops import encoder_flops
from thaw.core import layout
from thaw.core.boundaries import ATTENTION
from thaw.core.errors import UserError, wrap_corruption
from thaw.core.files import check_digest, read_json, save_tensors
from thaw.core.runtime import seeded
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch, pieces
from thaw.features.extract import Listener, StatesFormat, extract
from thaw.features.row_sets import batches
from thaw.features.store import FeatureStore
from thaw.schema.head import HeadConfig
from thaw.training.adapted import AdaptedEncoder
from thaw.training.context import TaskContext
from thaw.training.distillation_losses import yes_or_no
from thaw.training.run_inputs import Inputs
from thaw.training.task_model import BatchLoader, TaskModel

LOGITS = "logits.safetensors"


class Teacher:
    """A finished run that is to teach: its model, in eval mode, from text, in fp32."""

    def __init__(self, inputs: Inputs, metrics: Path, expected: str):
        """Load the run. Args: what it has read; its metrics.json; its digest.

        Raises UserError for another run, one that diverged, and one whose trained tensors were not kept.
        """
        check_digest(metrics, expected)
        record, folder = read_json(metrics), metrics.parent
        spec = record["spec"]
        if "diverged" in record["flags"]:
            raise UserError(f"{folder}: its training diverged; there is nothing to teach")
        self.context = TaskContext(spec, inputs)
        if (folder / layout.ENCODER).is_file():
            encoder = AdaptedEncoder.of(inputs.encoder, metrics, expected).encoder()
        elif all(set(phase["components"]) <= {"head"} for phase in spec["phases"]) and not spec["after"]:
            encoder = Encoder.load(inputs.encoder)
        else:
            raise UserError(f"{folder / layout.ENCODER} is missing; delete {metrics} and run the workflow again")
        head = self.context.build_head(HeadConfig.of_run(spec, record["chosen"]))
        with wrap_corruption(folder, str(metrics)):
            head.load_state_dict(load_file(folder / "head.safetensors"))
        self.encoder, self.model = encoder, TaskModel(encoder, head, "fp32").eval()

    def flops(self, rows: np.ndarray) -> float:
        """Return the operations of one pass over some rows of train, without the head's."""
        lengths = self.context.store.sequences("train", rows)
        return encoder_flops(self.context.shape_below(self.model.head), lengths)

    def write(
        self, store: FeatureStore, rows: np.ndarray, parts: list[int | str], form: StatesFormat, device: torch.device
    ) -> tuple[dict, dict[int | str, dict]]:
        """Write logits and hidden states of some rows of train, in one pass, into the folder of their excerpt.

        The caller holds the excerpt's lock until the cards are written. Args: the excerpt; the rows; boundaries and
        attention that students read, and their format; device. Returns what the card says of the logits, and of each
        part its bytes and sha256.
        """
        head = self.model.head.to(device)
        outputs = [torch.zeros(0, head.outputs)] * len(rows)  # those of a row without tokens
        place_of = {row: place for place, row in enumerate(rows.tolist())}

        def take(read: np.ndarray, batch: Batch, states: dict[int, torch.Tensor]) -> None:
            with torch.no_grad():
                logits = head(head.combination(states, batch.mask), batch).float().cpu()
            for index, row in enumerate(read.tolist()):
                outputs[place_of[row]] = logits[index]

        listener = Listener(head.combination.read, take)
        facts = extract(store, self.encoder, parts, form, device, listener=listener)
        return self._write_logits(store.folder, rows, outputs), facts

    def _write_logits(self, out: Path, rows: np.ndarray, outputs: list[torch.Tensor]) -> dict:
        """Write the logits of each row, on the CPU, and return what the card says of them."""
        counts = self.context.word_counts("train", rows)
        tensors = {"rows": torch.from_numpy(rows.astype(np.int64))}
        if counts is None:
            tensors["logits"] = torch.stack(outputs)
        else:
            tensors["logits"] = torch.cat([_cut(one, count) for one, count in zip(outputs, counts, strict=True)])
            tensors["words"] = torch.tensor(counts)
        if not tensors["logits"].isfinite().all():
            raise UserError(f"{out}: the teacher gives values that are not finite; there is nothing to teach")
        save_tensors(out / LOGITS, tensors)
        return {"rows": len(rows), "entropy": self._entropy(tensors["logits"])}

    def _entropy(self, logits: torch.Tensor) -> float | None:
        """Return the mean entropy in nats of the probabilities: near 0, soft targets say no more than labels."""
        if not self.context.labels:
            return None
        classes = yes_or_no(logits) if self.model.head.label_sets else logits
        return float(torch.special.entr(classes.double().softmax(-1)).sum(-1).mean())


class Taught:
    """What students ask of a teacher. By default it accepts all rows, and gives no more than its logits."""

    def check_rows(self, rows: np.ndarray, store: FeatureStore) -> None:
        """Raise UserError where the teacher has not read some rows of train, or reads them as other tokens.

        Args: the rows; the store that the student reads them from. Logits alone are compared whatever the tokens are.
        """

    def at_step(self, number: int, step: int) -> None:
        """Note which update comes next. Args: number of the phase; updates that were made in it."""

    def flops(self, lengths: Iterable[int]) -> float:
        """Return the operations of a pass over sequences of these lengths; 0 for what was computed once for all."""
        return 0.0

    def logits_of(self, rows: np.ndarray, batch: Batch) -> torch.Tensor:
        """Return the logits of some rows on the batch's device: [B, C], scores [B], or of words [B, W, C]."""
        raise NotImplementedError

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Return the teacher's scores [n] of some rows of a regression."""
        raise NotImplementedError

    def width(self, boundary: int) -> int:
        """Return the width of the teacher's hidden states at a boundary."""
        raise NotImplementedError

    def states(self, boundary: int, rows: np.ndarray, batch: Batch) -> torch.Tensor:
        """Return the hidden states [S, T, d] of some rows at a boundary, on the batch's device."""
        raise NotImplementedError

    def attention(self, layer: int, rows: np.ndarray, batch: Batch) -> tuple[torch.Tensor, ...]:
        """Return queries, keys and values [S, T, d] of some rows in a layer, on the batch's device."""
        raise NotImplementedError


class LiveTeacher(Taught):
    """A finished run in training mode: its logits are others in each update, so they are computed with the batch.

    Its random numbers are of streams of their own.
    """

    def __init__(self, inputs: Inputs, metrics: Path, expected: str, seed: int):
        """Load the run. Args: what the student reads; the run's metrics.json; its digest; the student's seed."""
        self.teacher, self.seed = Teacher(inputs, metrics, expected), seed
        self.teacher.model.requires_grad_(False)
        self.stream = ""

    def at_step(self, number: int, step: int) -> None:
        self.stream = f"teacher_dropout:{number}:{step}"

    def logits_of(self, rows: np.ndarray, batch: Batch) -> torch.Tensor:
        model = self.teacher.model.to(batch.mask.device).train()
        with torch.no_grad(), seeded(self.seed, self.stream):
            return model(batch, {}).float()

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Return the scores [n] of some rows of train without dropout."""
        store, scores = self.teacher.context.store, np.zeros(len(rows), dtype=np.float32)
        model, loader = self.teacher.model.eval(), BatchLoader(store, [], torch.device("cpu"))
        with torch.no_grad():
            for places in batches(store.sizes("train")[rows]):
                batch, stored = loader("train", rows[places])
                scores[places] = model(batch, stored).float().numpy()
        return scores

    def flops(self, lengths: Iterable[int]) -> float:
        return encoder_flops(self.teacher.context.shape_below(self.teacher.model.head), lengths)


class TeacherOutputs(Taught):
    """The outputs of a teacher, stored."""

    def __init__(self, card: Path, read: list[int | str]):
        """Open a folder by its card.json. Args: read, the boundaries that are compared, and attention.

        Payloads are checked against their cards.
        """
        folder = card.parent
        with wrap_corruption(folder, str(card)):
            tensors = load_file(folder / LOGITS)
        self.store, self.logits, self.read = FeatureStore(folder), tensors["logits"], read
        self.store.require(read)
        rows = tensors["rows"].numpy()
        self.place = np.full(int(rows.max(initial=-1)) + 1, -1)
        self.place[rows] = np.arange(len(rows))
        counts = tensors.get("words")
        self.ends = None if counts is None else torch.cumsum(counts, 0).numpy()
        self.folder = folder

    def check_rows(self, rows: np.ndarray, store: FeatureStore) -> None:
        if rows.max(initial=-1) >= len(self.place) or (self.place[rows] < 0).any():
            raise UserError(f"{self.folder}: the teacher has not read all rows that its student trains on; delete it")
        if self.read and self.store.card["tokenizer"] != store.card["tokenizer"]:
            for some in pieces(rows):
                ours, theirs = (one.batch("train", some).input_ids for one in (store, self.store))
                if ours.shape != theirs.shape or not ours.equal(theirs):
                    raise UserError(
                        f"{self.folder}: the teacher's tokens of some texts are not the student's; only distil: "
                        "logits: compares the two"
                    )

    def width(self, boundary: int) -> int:
        return self.store.part_card(boundary)["width"]

    def logits_of(self, rows: np.ndarray, batch: Batch) -> torch.Tensor:
        places = self.place[rows]
        if self.ends is None:
            return self.logits[places].to(batch.mask.device)
        padded = self.logits.new_zeros(*batch.host.first_pieces.shape, self.logits.shape[-1])
        for index, place in enumerate(places):
            begin = self.ends[place - 1] if place else 0
            words = self.logits[begin : self.ends[place]]
            padded[index, : len(words)] = words
        return padded.to(batch.mask.device)

    def scores(self, rows: np.ndarray) -> np.ndarray:
        return self.logits[self.place[rows]].numpy()

    def attention(self, layer: int, rows: np.ndarray, batch: Batch) -> tuple[torch.Tensor, ...]:
        inputs = self.store.states(f"{ATTENTION}{layer}", "train").gather(rows, batch.host)
        return inputs.to(batch.mask.device).chunk(3, -1)

    def states(self, boundary: int, rows: np.ndarray, batch: Batch) -> torch.Tensor:
        return self.store.states(boundary, "train").gather(rows, batch.host).to(batch.mask.device)


def _cut(logits: torch.Tensor, count: int) -> torch.Tensor:
    """Return the logits of a sentence's words [count, C]: words beyond the longest sequence have zeros."""
    return torch.cat([logits[:count], logits.new_zeros(max(0, count - len(logits)), logits.shape[-1])])
