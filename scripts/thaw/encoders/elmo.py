"""ELMo (Peters et al. 2018): a convolution over the characters of each word, and two bidirectional LSTMs above it.

Boundary 0 is the word's own vector, given to both directions; boundary n the output of LSTM n, forward half first.
The marks <S> and </S> around a sentence are tokens here as [CLS] and [SEP] are in BERT, since the LSTMs read them.

The published code carries the LSTMs' state on from batch to batch, so that a word's vector depends on what was read
before. Here every sentence starts from one and the same state, which `warm_up` computes once: each pass is equal.

B sentences, T tokens, C characters of a token, F filters, d = 2p width, p width of one direction, c cells.
"""

import torch
from torch import nn

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
        gates, outputs = self.inputs(states), [None] * states.shape[1]
        for step in reversed(range(len(outputs))) if self.backward else range(len(outputs)):
            enter, candidate, keep, leave = (gates[:, step] + self.states(hidden)).chunk(4, -1)
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
