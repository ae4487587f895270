"""Reading a model and its tokenizer from a folder: safetensors only, no code from the folder, no network."""

import contextlib
import logging
from pathlib import Path
from typing import Any

import torch

from thaw.core.errors import UserError

# Safetensors alone, no code of the folder, no network; what is missing is reported.
SAFE: dict[str, Any] = {"trust_remote_code": False, "use_safetensors": True, "local_files_only": True}
SAFE |= {"dtype": torch.float32, "output_loading_info": True}


def load_model(folder) -> Any:
    """Return the pretrained model of a folder in fp32 and eval mode, without its pooler, which belongs to heads.

    A folder that can not be read, or whose weights do not fill the model, is a UserError.
    """
    from transformers import AutoModel

    with _explained(folder, "model"), quiet():
        model, info = AutoModel.from_pretrained(folder, **SAFE)
    missing = sorted(name for name in info["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise UserError(
            f"{folder}: the weights file lacks {len(missing)} of the tensors that its config.json asks for, "
            f"{missing[0]} among them: weights and config do not belong together"
        )
    if hasattr(model, "pooler"):
        model.pooler = None
    if getattr(model.config, "use_cache", False):  # a decoder's keys and values, which only writing on would need
        model.config.use_cache = False
    return model.eval()


def read_conversions() -> None:
    """Make transformers read how it renames tensors of old checkpoints, which it keeps: 0.07 s of the first loading."""
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    get_checkpoint_conversion_mapping("bert")


def load_masked(folder) -> tuple[Any, bool]:
    """Return the masked-language model of a folder in fp32, and whether what predicts tokens came with its weights.

    Where it did not, it is as its architecture begins, from torch's generator; a decoder that is tied to the embeddings
    shares them. An architecture without such a model is a UserError.
    """
    from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoConfig, AutoModelForMaskedLM

    with _explained(folder, "model"), quiet():
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if type(config) not in MODEL_FOR_MASKED_LM_MAPPING:
        raise UserError(f"{folder}: {config.model_type} is no masked-language model, as BERT is; leave it out of from:")
    with _explained(folder, "model"), quiet():
        model, info = AutoModelForMaskedLM.from_pretrained(folder, **SAFE)
    return model, not info["missing_keys"]


def load_pooler(folder) -> dict[str, torch.Tensor]:
    """Return weight [d, d] and bias [d] of the pooler that came with an encoder; where none did, a UserError."""
    weights = find_pooler(folder)
    if len(weights) < 2:
        raise UserError(f"{folder}: this encoder came without a pooler; choose pooling: first, mean, max or attention")
    return weights


def find_pooler(folder) -> dict[str, torch.Tensor]:
    """Return weight [d, d] and bias [d] of the pooler that came with an encoder, nothing where none did."""
    return _linear(folder, "pooler.dense")


def find_next_sentence(folder) -> dict[str, torch.Tensor]:
    """Return weight [2, d] and bias [2] of what tells whether a text is the next one, nothing where none came.

    It reads the pooler; output 0 is for texts that follow each other (Devlin et al. 2019, section 3.1).
    """
    return _linear(folder, "cls.seq_relationship")


def _linear(folder, path: str) -> dict[str, torch.Tensor]:
    """Return weight and bias of a linear layer in a file of weights; task models put their own name before its path."""
    from safetensors import safe_open

    with safe_open(Path(folder) / "model.safetensors", "pt") as file:
        named = [(tensor, name) for name in file.keys() for tensor in ("weight", "bias")]  # noqa: SIM118 - no mapping
        places = {tensor: name for tensor, name in named if f".{name}".endswith(f".{path}.{tensor}")}
        return {tensor: file.get_tensor(name).float() for tensor, name in places.items()}


def load_tokenizer(folder, words: bool = False, pairs: bool = False):
    """Return the fast tokenizer of a folder.

    Decoders often have no padding token: the mark at a text's end serves, since the mask says what is padding, or
    that of an unknown token where there is no mark at all (OpenAI GPT). A tokenizer that adds nothing to a text sets
    the same mark between the two texts of a pair (Radford et al. 2018, who train one for it).

    Args: words, whether it will be given lists of words, each as after a space; pairs, whether two texts as one
    sequence, for which a tokenizer that sets nothing between them is a UserError.
    """
    from transformers import AutoTokenizer

    with _explained(folder, "tokenizer"), quiet():
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if not tokenizer.is_fast:
        raise UserError(f"{folder}: no fast tokenizer (tokenizer.json); Thaw needs one to place words on their pieces")
    bare = not any(_added(tokenizer))
    mark = tokenizer.eos_token or ((tokenizer.sep_token or tokenizer.unk_token) if bare else None)
    if tokenizer.pad_token_id is None:
        if mark is None:
            raise UserError(f"{folder}: the tokenizer names no pad token; name one in its tokenizer_config.json")
        tokenizer.pad_token = mark
    if bare and mark is not None:
        _part_pairs(tokenizer, mark)
    alone, paired = _added(tokenizer)
    if pairs and paired <= alone:
        raise UserError(
            f"{folder}: the tokenizer sets no mark between the two texts of a pair; give its tokenizer.json a template "
            "for pairs, or let strategies read the texts one by one, as with pairs: separate"
        )
    tokenizer.padding_side = "right"
    if words:
        _space_before_words(tokenizer)
    return tokenizer


def longest(model, tokenizer) -> int:
    """Return the most tokens that a sequence may have: by the tokenizer and by the model's position embeddings.

    RoBERTa's kind count positions from padding_idx + 1, so that many rows of the table are never used.
    """
    limits = [tokenizer.model_max_length]
    if count := getattr(model.config, "max_position_embeddings", None):
        tables = (m for m in model.modules() if isinstance(m, torch.nn.Embedding) and m.num_embeddings == count)
        limits.append(count - max((m.padding_idx + 1 for m in tables if m.padding_idx is not None), default=0))
    return min(limits)


def _added(tokenizer) -> tuple[int, int]:
    """Return how many special tokens a tokenizer adds to a text and to a pair: to a pair more, where they part it."""
    return tokenizer.num_special_tokens_to_add(pair=False), tokenizer.num_special_tokens_to_add(pair=True)


def _part_pairs(tokenizer, mark: str) -> None:
    """Let a tokenizer that adds nothing set a mark between the two texts of a pair."""
    from tokenizers.processors import Sequence, TemplateProcessing

    number = tokenizer.convert_tokens_to_ids(mark)
    template = TemplateProcessing(single="$A", pair=f"$A {mark} $B", special_tokens=[(mark, number)])
    backend = tokenizer.backend_tokenizer
    backend.post_processor = Sequence([backend.post_processor, template]) if backend.post_processor else template


def _space_before_words(tokenizer) -> None:
    """Let a byte-level tokenizer see each given word as if it followed a space, as inside a sentence."""
    from tokenizers.pre_tokenizers import ByteLevel, Sequence

    pre_tokenizer = tokenizer.backend_tokenizer.pre_tokenizer
    steps: Any = pre_tokenizer if isinstance(pre_tokenizer, Sequence) else [pre_tokenizer]
    for step in steps:  # of a Sequence too, which is iterable, though it is not typed so
        if isinstance(step, ByteLevel):
            step.add_prefix_space = True


@contextlib.contextmanager
def _explained(folder, what: str):
    """Turn whatever transformers raises over a wrong folder into one sentence."""
    try:
        yield
    except Exception as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise UserError(f"{folder}: its {what} can not be read: {reason}") from error


@contextlib.contextmanager
def quiet():
    """Keep transformers' own report of unused keys and its progress bars out of the log."""
    from transformers.utils import logging as library

    level, bars = library.get_verbosity(), library.is_progress_bar_enabled()
    library.set_verbosity(logging.ERROR)
    library.disable_progress_bar()
    try:
        yield
    finally:
        library.set_verbosity(level)
        if bars:
            library.enable_progress_bar()
