"""The model of this folder, ready to label text. It needs torch, transformers and safetensors, and nothing else.

    from model import Model
    Model().predict(["a text", "another"])      # pairs as ("first", "second"), sentences to tag as ["their", "words"]

As a program it reads a JSON string or list a line and writes a prediction a line: echo '"a text"' | python model.py

B examples, S sequences (B; 2B where the texts of a pair are read separately), T tokens, W words, d width, C outputs.
"""

import importlib.util
import json
import sys
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.nn import functional
from transformers import AutoModel, AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer
from transformers.utils import logging

AT_ONCE = 512  # examples that are sorted by length together, and so most of what is held in memory
BATCH = 32
FORMS = {
    "encoder_and_head": AutoModel,
    "sequence_classification": AutoModelForSequenceClassification,
    "token_classification": AutoModelForTokenClassification,
}


class Model:
    """A trained encoder with its head, in fp32, on the GPU where there is one."""

    def __init__(self, folder=Path(__file__).parent):
        """Load the folder of this file, or another folder with the same files."""
        about = json.loads((Path(folder) / "thaw.json").read_text(encoding="utf-8"))
        self._describe(about)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.model = _quietly(FORMS[about["form"]], folder).to(self.device).eval()
        self.head = None
        if about["form"] == "encoder_and_head":
            self.kind, self.pooling = about["head"]["kind"], about["head"]["pooling"]
            self.layers = about["head"].get("layers")
            self._last = []  # what the last layer has just returned, where the model ends in a norm that nobody reads
            if self.layers and self.layers["last"]:
                layer = self.model.get_submodule(self.layers["last"])
                layer.register_forward_hook(lambda layer, inputs, output: self._last.append(output))
            self.head = load_file(Path(folder) / "head.safetensors", device=str(self.device))
            if self.layers and self.layers["combine"] == "ladder":
                made = _ladder(Path(folder) / "ladder.py", self.layers["network"], self.head)
                self.ladder = made.to(self.device).eval()
        self.exits = EarlyExits(self, about["exits"], folder) if "exits" in about else None

    def _describe(self, about: dict) -> None:
        """Take what is said of the texts and labels."""
        self.reads, self.labels, self.max_length = about["reads"], about["labels"], about["max_length"]
        self.separate_encoding = about["pairs"] == "separate"
        self.threshold = about.get("threshold")  # probability above which a text has a label; None: it has one label

    def predict(self, texts) -> list:
        """Return for each text its label, its score, its list of labels, or its list of tags.

        A word that was cut off is tagged O.
        """
        return [prediction["prediction"] for prediction in self.predict_with_probabilities(texts)]

    def predict_with_probabilities(self, texts):
        """Yield for each text, in order, {"prediction", "probabilities"}; memory does not grow with their number.

        Probabilities follow the order of `labels`; tags have a list for each word, None where a word was cut off; a
        score has none. A text of more tokens than the model reads has "cut" too: how many were read. A model with early
        exits says in "layers" how many layers a text ran.
        """
        texts = iter(texts)
        while some := list(islice(texts, AT_ONCE)):
            predictions = [None] * len(some)
            order = sorted(range(len(some)), key=lambda index: _length(some[index]))
            for start in range(0, len(order), BATCH):
                indices = order[start : start + BATCH]
                for index, prediction in zip(indices, self._batch([some[index] for index in indices]), strict=True):
                    predictions[index] = prediction
            yield from predictions

    @torch.inference_mode()
    def _batch(self, texts: list) -> list[dict]:
        inputs = self._inputs(texts)
        predictions = self._predictions(texts, inputs, self._logits(inputs))
        if self.exits:
            for prediction, layers in zip(predictions, self.exits.executed.tolist(), strict=True):
                prediction["layers"] = layers
        return predictions

    def _columns(self, texts: list) -> list[list]:
        """Return some texts as the tokenizer takes them: a list, or of pairs in one sequence one for each side."""
        if self.reads != "pair":
            return [texts]
        if self.separate_encoding:
            return [sum(map(list, texts), [])]
        return [list(side) for side in zip(*texts, strict=True)]

    def _inputs(self, texts: list):
        """Return some texts as the model reads them: ids and mask [S, T] on its device."""
        inputs = self.tokenizer(
            *self._columns(texts),
            is_split_into_words=self.reads == "words",
            truncation="longest_first",
            max_length=self.max_length,
            padding=True,
            padding_side="right",
            return_tensors="pt",
        )
        inputs["attention_mask"][:, 0] = 1  # a text without a token is one padding token
        return inputs.to(self.device)

    def _predictions(self, texts: list, inputs, logits: torch.Tensor) -> list[dict]:
        """Return the predictions of some texts, from outputs [B, C], or [B, T, C] for words."""
        predictions = self._decided(texts, inputs, logits.float().cpu())
        each = len(inputs.encodings) // len(texts)  # sequences of a text
        for row, prediction in enumerate(predictions):
            if any(sequence.overflowing for sequence in inputs.encodings[row * each : (row + 1) * each]):
                prediction["cut"] = self.max_length
        return predictions

    def _decided(self, texts: list, inputs, logits: torch.Tensor) -> list[dict]:
        """Return {"prediction", "probabilities"} for each text, from outputs [B, C], or [B, T, C] for words."""
        if not self.labels:
            return [{"prediction": score, "probabilities": None} for score in logits.squeeze(-1).tolist()]
        shares = logits.softmax(-1) if self.threshold is None else logits.sigmoid()
        if self.reads != "words":
            return [self._prediction(row) for row in shares]
        return [self._tags(shares[row], inputs.word_ids(row), len(words)) for row, words in enumerate(texts)]

    def _logits(self, inputs) -> torch.Tensor:
        """Return the outputs [B, C], or [B, T, C] for words."""
        if self.head is None:
            return self.model(**inputs).logits
        if self.exits:
            return self.exits.logits(inputs)
        return self.read(self._states(inputs), inputs["attention_mask"].bool(), self.head)

    def read(self, vectors: torch.Tensor, mask: torch.Tensor, head: dict) -> torch.Tensor:
        """Return the outputs of a head for states [S, T, d] with their mask [S, T]."""
        if self.reads != "words":
            vectors = self._pooled(vectors, mask)
        if self.separate_encoding:
            u, v = vectors.view(-1, 2, vectors.shape[-1]).unbind(1)
            cosine = functional.cosine_similarity(u, v, dim=-1).unsqueeze(-1)
            vectors = cosine if self.kind == "cosine" else torch.cat([u, v, (u - v).abs(), u * v], -1)
        return functional.linear(vectors, head["output.weight"], head["output.bias"])

    def _states(self, inputs) -> torch.Tensor:
        """Return the one state [S, T, d] that the head reads: the model's output, or several layers combined."""
        if self.layers is None:
            return self.model(**inputs)[0]
        outputs = self.model(**inputs, output_hidden_states=True)
        top = self._last.pop() if self.layers["last"] else outputs[0]
        top = top[0] if isinstance(top, tuple) else top
        read = [top if n == self.layers["of"] else outputs.hidden_states[n] for n in self.layers["read"]]
        combine = self.layers["combine"]
        if combine in ("one", "concat"):
            return torch.cat(read, -1)
        if combine == "ladder":
            return self.ladder(read, inputs["attention_mask"].bool())
        states = torch.stack(read)
        if combine in ("mix", "attention"):
            return self._mixed(states)
        return states.mean(0) if combine == "mean" else states.sum(0)

    def _mixed(self, states: torch.Tensor) -> torch.Tensor:
        """Return the learned mix [S, T, d] of layers [K, S, T, d], its weights those of each token with attention."""
        if self.layers["norm"]:
            states = functional.layer_norm(states, states.shape[-1:])
        scores = self.head["combination.weights"].view(-1, 1, 1)
        if self.layers["combine"] == "attention":
            scores = scores + states @ self.head["combination.query"] / states.shape[-1] ** 0.5
        return self.head["combination.gamma"] * torch.einsum("kst,kstd->std", scores.softmax(0), states)

    def _pooled(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return one vector a sequence [S, F] of states [S, T, d], without the padding."""
        several = self.pooling if isinstance(self.pooling, list) else [self.pooling]
        return torch.cat([self._pooled_by(pooling, states, mask) for pooling in several], -1)

    def _pooled_by(self, pooling: str, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the vectors [S, d] of one pooling."""
        if pooling == "first":
            return states[:, 0]
        if pooling == "last":
            return states.gather(1, (mask.sum(1) - 1).view(-1, 1, 1).expand(-1, 1, states.shape[-1])).squeeze(1)
        if pooling == "max":
            return states.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(1)
        if pooling in ("pooler", "frozen_pooler"):
            weight, bias = (self.head[f"pooling.dense.{name}"] for name in ("weight", "bias"))
            return torch.tanh(functional.linear(states[:, 0], weight, bias))
        weights = mask.to(states.dtype)
        if pooling == "attention":
            weights = (states @ self.head["pooling.query"]).masked_fill(~mask, -torch.inf).softmax(1)
        return (states * weights.unsqueeze(-1)).sum(1) / weights.sum(1, keepdim=True)

    def _prediction(self, shares: torch.Tensor) -> dict:
        """Return the label of probabilities [C], or the labels above the threshold, and the probabilities."""
        if self.threshold is not None:
            chosen = [
                label for label, share in zip(self.labels, shares.tolist(), strict=True) if share > self.threshold
            ]
            return {"prediction": chosen, "probabilities": shares.tolist()}
        return {"prediction": self.labels[int(shares.argmax())], "probabilities": shares.tolist()}

    def _tags(self, shares: torch.Tensor, word_ids: list, count: int) -> dict:
        """Return the tag of each word by its first piece, from probabilities [T, C]."""
        first: dict = {}
        for position, word in enumerate(word_ids):
            first.setdefault(word, position)
        cut_off = {"prediction": "O", "probabilities": None}
        words = [self._prediction(shares[first[word]]) if word in first else cut_off for word in range(count)]
        return {key: [word[key] for word in words] for key in ("prediction", "probabilities")}


class EarlyExits:
    """Heads on the layers below the last: a text leaves at the first that is sure enough, and runs no layer above."""

    def __init__(self, model: Model, said: dict, folder):
        """Read the heads, and watch the layers. Args: the model; `exits` of thaw.json; the folder."""
        self.model, self.threshold, self.last = model, said["threshold"], said["last"]
        tensors, layers = load_file(Path(folder) / "exits.safetensors"), model.model.get_submodule(said["modules"])
        for number in said["layers"]:
            head = {name: tensors[f"{number}.{name}"].to(model.device) for name in ("output.weight", "output.bias")}
            watch = partial(self._leave, number, head)
            layers[number].register_forward_pre_hook(watch, with_kwargs=True)

    def logits(self, inputs) -> torch.Tensor:
        """Return the outputs [B, C] of the heads at which texts leave; `executed` [B] then has their layers."""
        self.mask = inputs["attention_mask"].bool()
        texts = len(self.mask)
        self.staying = torch.arange(texts, device=self.mask.device)
        self.executed = torch.full_like(self.staying, self.last)
        self.outputs = self.mask.new_zeros(texts, len(self.model.labels), dtype=torch.float32)
        try:
            states = self.model._states(inputs)
            self.outputs[self.staying] = self.model.read(states, self.mask[self.staying], self.model.head)
        except AllHaveLeft:
            pass
        return self.outputs

    def _leave(self, number: int, head: dict, layer, arguments: tuple, named: dict):
        """Let texts leave below a layer, and give it the states and masks of those that stay."""
        states = arguments[0] if arguments else named["hidden_states"]
        outputs = self.model.read(
            states, self.mask[self.staying], {name: at.to(states.device) for name, at in head.items()}
        )
        leaving = outputs.softmax(-1).amax(-1) >= self.threshold
        left, self.staying = self.staying[leaving], self.staying[~leaving]
        self.outputs[left], self.executed[left] = outputs[leaving], number
        if not len(self.staying):
            raise AllHaveLeft
        fewer = partial(self._fewer, states, states[~leaving])
        return tuple(map(fewer, arguments)), {name: fewer(value) for name, value in named.items()}

    def _fewer(self, states: torch.Tensor, kept: torch.Tensor, value):
        """Return the rows of those that stay, of what a layer is given for the whole batch."""
        if value is states:
            return kept
        if isinstance(value, tuple):
            return tuple(self._fewer(states, kept, part) for part in value)
        if isinstance(value, torch.Tensor) and value.ndim > 2 and len(value) == len(self.mask):
            return value[self.staying]
        return value


class AllHaveLeft(Exception):
    """Ends a forward pass of which every text has left."""


def _length(text) -> int:
    """Return the characters of a text, of both texts of a pair, or of a list of words."""
    return len(text) if isinstance(text, str) else sum(map(len, text))


def _ladder(path: Path, said: dict, tensors: dict):
    """Return the side network of a file, as thaw.json says it, with its tensors."""
    spec = importlib.util.spec_from_file_location("ladder", path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    network, start = module.LadderNetwork(*said["sizes"], **said["settings"]), "combination.network."
    network.load_state_dict({name.removeprefix(start): tensors[name] for name in tensors if name.startswith(start)})
    return network


def _quietly(form, folder):
    """Load a model without a progress bar, and without the report that the pooler is missing, which nothing reads."""
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        model = form.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()
    return model


if __name__ == "__main__":
    for prediction in Model().predict_with_probabilities(json.loads(line) for line in sys.stdin):
        print(json.dumps(prediction), flush=True)
