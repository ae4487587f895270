"""A published ELMo, options.json and weights in HDF5, brought into a folder as Thaw reads it.

F filters, p width of one direction, c cells.
"""

from pathlib import Path

import numpy as np
import torch

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.encoders.builtin_models import builtin_config, write_builtin
from thaw.encoders.elmo import Direction, Elmo, load_tokenizer
from thaw.encoders.names import ELMO
from thaw.encoders.weight_sources import check_sum, published

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
    options, weights = (published(source, pattern, str(source)) for pattern in ELMO)
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
