"""ELMo (Peters et al. 2018): a convolution over the characters of each word, and two bidirectional LSTMs above it.

Boundary 0 is the word's own vector, given to both directions; boundary n the output of LSTM n, forward half first.
The marks <S> and </S> around a sentence are tokens here as [CLS] and [SEP] are in BERT, since the LSTMs read them.

The published code carries the LSTMs' state on from batch to batch, so that a word's vector depends on what was read
before. Here every sentence starts from one and the same state, which `warm_up` computes once: each pass is equal.

B sentences, T tokens, C characters of a token, F filters, d = 2p width, p width of one direction, c cells.
"""

from thaw.declarations.encoders import EncoderKind

FILES = ("*options.json", "*weights.hdf5")  # as published, of any size
ENCODERS = {
    "elmo": EncoderKind(
        "thaw.papers.elmo:CODE",
        ("folder",),
        "the published files *options.json and *weights.hdf5",
        model_types=("elmo",),
        files=FILES,
        spelt=True,
    )
}

from pathlib import Path

import numpy as np
import torch
from torch import nn

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.encoders.builtin_models import BuiltinCode, BuiltinModel, builtin_config, write_builtin
from thaw.encoders.names import check_sum, published
from thaw.encoders.spelling import PAD, SpellingTokenizer
from thaw.encoders.word_vectors import word_boundaries

BEGIN, END = "<S>", "</S>"
# Characters are bytes 0 to 255 and these; one is added to each, for 0 is padding (Peters et al., bilm-tf, data.py).
MARKS = {BEGIN: [256], END: [257]}
WORD_BEGINS, WORD_ENDS, FILL = 258, 259, 260

State = tuple[torch.Tensor, torch.Tensor]


class CharacterCnn(nn.Module):
    """Characters to a word's vector: convolutions, the largest value of each, highway layers, a projection."""

    def __init__(self, options: dict, width: int):
        """Make it from char_cnn of options.json; width p."""
        super().__init__()
        filters, size = options["filters"], options["embedding"]["dim"]
        count = sum(number for _, number in filters)
        self.characters = nn.Embedding(options["n_characters"], size, padding_idx=0)
        self.convolutions = nn.ModuleList(nn.Conv1d(size, number, reach) for reach, number in filters)
        self.transforms = nn.ModuleList(nn.Linear(count, count) for _ in range(options["n_highway"]))
        self.carries = nn.ModuleList(nn.Linear(count, count) for _ in range(options["n_highway"]))
        self.projection = nn.Linear(count, width)
        self.activation = {"relu": torch.relu, "tanh": torch.tanh}[options["activation"]]

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        """Return boundary 0, [B, T, 2p], of characters [B, T, C]."""
        embedded = self.characters(characters.flatten(0, 1)).transpose(1, 2)
        hidden = torch.cat([self.activation(conv(embedded).amax(-1)) for conv in self.convolutions], -1)
        for transform, carry in zip(self.transforms, self.carries, strict=True):
            gate = carry(hidden).sigmoid()
            hidden = gate * torch.relu(transform(hidden)) + (1 - gate) * hidden
        vectors = self.projection(hidden).view(*characters.shape[:2], -1)
        return torch.cat([vectors, vectors], -1)


class Direction(nn.Module):
    """An LSTM that reads one way, its output projected, cells and output clipped (Sak et al. 2014)."""

    def __init__(self, options: dict, backward: bool):
        """Args: lstm of options.json. The gates are in TensorFlow's order: input, candidate, forget, output."""
        super().__init__()
        width, cells, self.backward = options["projection_dim"], options["dim"], backward
        self.cell_clip, self.clip = (options[name] or float("inf") for name in ("cell_clip", "proj_clip"))
        self.inputs = nn.Linear(width, 4 * cells)
        self.states = nn.Linear(width, 4 * cells, bias=False)
        self.projection = nn.Linear(cells, width, bias=False)
        self.register_buffer("start_state", torch.zeros(width))
        self.register_buffer("start_cell", torch.zeros(cells))

    def forward(self, states: torch.Tensor, mask: torch.Tensor, start: State | None = None):
        """Return the outputs [B, T, p] and the state at the end of each sentence, of states [B, T, p], mask [B, T]."""
        hidden, cell = start or (value.expand(len(states), -1) for value in (self.start_state, self.start_cell))
        gates, outputs = self.inputs(states).unbind(1), [None] * states.shape[1]
        for step in reversed(range(len(outputs))) if self.backward else range(len(outputs)):
            enter, candidate, keep, leave = (gates[step] + self.states(hidden)).chunk(4, -1)
            new_cell = keep.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
            new_cell = new_cell.clamp(-self.cell_clip, self.cell_clip)
            new = self.projection(leave.sigmoid() * new_cell.tanh()).clamp(-self.clip, self.clip)
            real = mask[:, step, None]
            hidden, cell = torch.where(real, new, hidden), torch.where(real, new_cell, cell)
            outputs[step] = hidden
        return torch.stack(outputs, 1), (hidden, cell)


class ElmoLstm(nn.Module):
    """One layer: both directions side by side, each on its own half; above the first the input is added."""

    def __init__(self, options: dict, number: int):
        """Make layer `number`, from 1."""
        super().__init__()
        self.directions = nn.ModuleList([Direction(options, False), Direction(options, True)])
        self.skips = number > 1 and options["use_skip_connections"]

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the layer's output [B, T, d]; sentences begin at the start state."""
        return self.read(states, mask, [None, None])[0]

    def read(self, states: torch.Tensor, mask: torch.Tensor, starts: list) -> tuple[torch.Tensor, list[State]]:
        """Return output [B, T, d] and the directions' last states, begun at some states (None: the start state)."""
        halves = states.chunk(2, -1)
        read = zip(self.directions, halves, starts, strict=True)
        results = [direction(half, mask, start) for direction, half, start in read]
        outputs = torch.cat([output for output, _ in results], -1)
        return outputs + states if self.skips else outputs, [end for _, end in results]


class Elmo(nn.Module):
    """The bidirectional language model without its softmax."""

    def __init__(self, config):
        """Make it from a config with `char_cnn` and `lstm` as in options.json."""
        super().__init__()
        self.config = config
        self.embeddings = CharacterCnn(config.char_cnn, config.lstm["projection_dim"])
        self.layers = nn.ModuleList(ElmoLstm(config.lstm, n + 1) for n in range(config.num_hidden_layers))

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor]:
        """Return the last boundary [B, T, d] of characters [B, T, C]."""
        states, mask = self.embeddings(input_ids), attention_mask.bool()
        for layer in self.layers:
            states = layer(states, mask)
        return (states,)

    def read(self, characters: torch.Tensor, mask: torch.Tensor, carried: list | None = None):
        """Return all boundaries and each layer's last states, begun at the states that an earlier call left.

        None begins at 0, as the published code does with its first batch.
        """
        boundaries, ends = [self.embeddings(characters)], []
        for number, layer in enumerate(self.layers):
            starts = carried[number] if carried else [self._zeros(way, len(mask)) for way in layer.directions]
            states, end = layer.read(boundaries[-1], mask, starts)
            boundaries.append(states)
            ends.append(end)
        return boundaries, ends

    def _zeros(self, way: Direction, count: int) -> State:
        return tuple(value.new_zeros(count, len(value)) for value in (way.start_state, way.start_cell))

    @torch.no_grad()
    def warm_up(self, sentences: list[torch.Tensor]) -> None:
        """Let every pass from now on begin at the state in which some sentences, [T, C] each, leave the LSTMs."""
        ends = None
        for characters in sentences:
            _, ends = self.read(characters[None], torch.ones(1, len(characters), dtype=torch.bool), ends)
        for layer, states in zip(self.layers, ends, strict=True):
            for way, (state, cell) in zip(layer.directions, states, strict=True):
                way.start_state.copy_(state[0])
                way.start_cell.copy_(cell[0])


def spelling(word: str, longest: int = 50) -> list[int]:
    """Return the characters of a token: a begin, its UTF-8 bytes, an end, filled up; longer words are cut."""
    if word == PAD:
        return [0] * longest
    characters = MARKS.get(word) or list(word.encode("utf-8")[: longest - 2])
    characters = [WORD_BEGINS, *characters, WORD_ENDS]
    return [character + 1 for character in characters + [FILL] * (longest - len(characters))]


def load_tokenizer(folder, words: bool = False) -> SpellingTokenizer:
    """Return the tokenizer of any ELMo: words, each spelt in characters, between <S> and </S>."""
    return SpellingTokenizer(spelling, word_boundaries(), (BEGIN, END))


# Read before the first sentence, so that the LSTMs are in the middle of a text and not at zero.
WARM_UP = (
    "The house stood at the end of a narrow road , and nobody had lived there for many years .",
    "In the spring of that year the river rose so high that the bridge was closed to all traffic .",
    "She said that the report would be ready on Monday , but few people believed her .",
    "Prices fell by two per cent in March , while exports to other countries went up .",
    "Why did the children laugh when the old teacher dropped his hat ?",
    "Both teams played well , and the match ended without a winner .",
    "It was cold outside .",
    "He opened the letter , read it twice , and put it back on the table .",
)


def assemble(source: Path, target: Path, entry) -> None:
    """Read the published files of a folder into one model, its start state warmed up on a few sentences of ours.

    Files are those of Peters et al. 2018: https://github.com/allenai/bilm-tf.
    """
    options, weights = (published(source, pattern, str(source)) for pattern in FILES)
    check_sum(weights, entry.sha256)
    model = Elmo(_config(read_json(options), options)).eval()
    _fill(model, weights)
    tokenizer = load_tokenizer(target)
    ids = [torch.tensor(sentence) for sentence in tokenizer(list(WARM_UP))["input_ids"]]
    spellings = torch.from_numpy(tokenizer.spellings()).long()
    model.warm_up([spellings[sentence] for sentence in ids])
    write_builtin(model, target)


def _config(options: dict, path: Path):
    try:
        lstm = {name: options["lstm"][name] for name in ("projection_dim", "dim", "cell_clip", "proj_clip")}
        lstm["use_skip_connections"] = options["lstm"]["use_skip_connections"]
        cnn, layers = options["char_cnn"], options["lstm"]["n_layers"]
        longest = cnn["max_characters_per_token"]
    except (KeyError, TypeError) as error:
        raise UserError(f"{path} is no options.json of ELMo: it lacks {error}") from error
    if cnn["n_characters"] != 262 or longest != 50:
        raise UserError(f"{path}: char_cnn.n_characters must be 262 and max_characters_per_token 50, as published")
    sizes = {"num_hidden_layers": layers, "hidden_size": 2 * lstm["projection_dim"], "vocab_size": cnn["n_characters"]}
    return builtin_config(model_type="elmo", pad_token_id=0, spelling=longest, char_cnn=cnn, lstm=lstm, **sizes)


def _fill(model: Elmo, path: Path) -> None:
    """Copy the tensors of an HDF5 file into a model; one that is missing or of another shape is a UserError."""
    import h5py

    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise UserError(f"{path} is no HDF5 file: {error}") from error

    def read(name: str) -> np.ndarray:
        if name not in file:
            raise UserError(f"{path} has no tensor {name}, which options.json asks for")
        return file[name][...]

    def put(parameter: torch.Tensor, name: str, value: np.ndarray) -> None:
        if tuple(parameter.shape) != value.shape:
            expected = list(parameter.shape)
            raise UserError(f"{path}: {name} has the shape {list(value.shape)} where options.json asks for {expected}")
        parameter.data.copy_(torch.from_numpy(np.ascontiguousarray(value)))

    with file:
        _fill_characters(model.embeddings, read, put)
        for number, layer in enumerate(model.layers):
            for way, direction in enumerate(layer.directions):
                _fill_direction(direction, f"RNN_{way}/RNN/MultiRNNCell/Cell{number}/LSTMCell", read, put)


def _fill_characters(cnn, read, put) -> None:
    """Fill the character convolution. TensorFlow's matrices are transposed; the file lacks character 0."""
    embedded = read("char_embed")
    put(cnn.characters.weight, "char_embed", np.concatenate([np.zeros_like(embedded[:1]), embedded]))
    for number, convolution in enumerate(cnn.convolutions):
        name = f"CNN/W_cnn_{number}"
        put(convolution.weight, name, read(name)[0].transpose(2, 1, 0))
        put(convolution.bias, f"CNN/b_cnn_{number}", read(f"CNN/b_cnn_{number}"))
    for number, (transform, carry) in enumerate(zip(cnn.transforms, cnn.carries, strict=True)):
        for part, module in (("transform", transform), ("carry", carry)):
            put(module.weight, f"W_{part}", read(f"CNN_high_{number}/W_{part}").T)
            put(module.bias, f"b_{part}", read(f"CNN_high_{number}/b_{part}"))
    put(cnn.projection.weight, "CNN_proj/W_proj", read("CNN_proj/W_proj").T)
    put(cnn.projection.bias, "CNN_proj/b_proj", read("CNN_proj/b_proj"))


def _fill_direction(direction: Direction, name: str, read, put) -> None:
    """Fill an LSTM. Its matrix reads input and state in one; TensorFlow adds 1 to the forget gate when it computes."""
    weight, bias = read(f"{name}/W_0"), read(f"{name}/B")
    width, cells = direction.inputs.in_features, len(bias) // 4
    bias[2 * cells : 3 * cells] += 1
    put(direction.inputs.weight, f"{name}/W_0", weight[:width].T)
    put(direction.states.weight, f"{name}/W_0", weight[width:].T)
    put(direction.inputs.bias, f"{name}/B", bias)
    put(direction.projection.weight, f"{name}/W_P_0", read(f"{name}/W_P_0").T)


CODE = BuiltinCode(assemble, {"elmo": BuiltinModel(Elmo, load_tokenizer)})
