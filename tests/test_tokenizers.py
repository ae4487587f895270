"""Tokenizers that add no marks of their own: how the two texts of a pair are told apart, or that they are refused."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from thaw.core.errors import UserError
from thaw.encoders.loading import load_tokenizer

VOCABULARY = ["[PAD]", "[CLS]", "[SEP]", "</s>", "[UNK]", "the", "cat", "a", "dog"]
NUMBERS = {token: number for number, token in enumerate(VOCABULARY)}
PAD = {"pad_token": "[PAD]"}


def saved(folder, template: dict | None = None, **names: str):
    """Write a tokenizer of a few words. Args: what it adds to a text and a pair; the special tokens that it names."""
    backend = Tokenizer(models.WordLevel(NUMBERS, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    if template:
        marks = [(mark, NUMBERS[mark]) for mark in ("[CLS]", "[SEP]")]
        backend.post_processor = TemplateProcessing(**template, special_tokens=marks)
    PreTrainedTokenizerFast(tokenizer_object=backend, **names).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("names", "mark"),
    [
        ({"eos_token": "</s>"}, "</s>"),
        (PAD | {"eos_token": "</s>", "sep_token": "[SEP]"}, "</s>"),
        (PAD | {"sep_token": "[SEP]", "unk_token": "[UNK]"}, "[SEP]"),
        (PAD | {"unk_token": "[UNK]"}, "[UNK]"),
    ],
)
def test_a_mark_parts_a_pair_where_the_tokenizer_adds_nothing(tmp_path, names, mark):
    tokenizer = load_tokenizer(saved(tmp_path, **names), pairs=True)
    assert tokenizer("the cat", "a dog").tokens() == ["the", "cat", mark, "a", "dog"]
    assert tokenizer("the cat").tokens() == ["the", "cat"]
    assert tokenizer.pad_token == names.get("pad_token", mark)


@pytest.mark.parametrize(
    ("template", "names"),
    [
        (None, PAD),
        ({"single": "[CLS] $A [SEP]"}, PAD),  # the library's own template for pairs is the texts alone
        ({"single": "[CLS] $A [SEP]"}, PAD | {"eos_token": "</s>"}),
        ({"single": "[CLS] $A", "pair": "[CLS] $A $B"}, PAD | {"sep_token": "[SEP]"}),
    ],
)
def test_pairs_that_nothing_parts_are_refused_and_single_texts_are_read(tmp_path, template, names):
    folder = saved(tmp_path, template, **names)
    with pytest.raises(UserError, match="the tokenizer sets no mark between the two texts of a pair; give its"):
        load_tokenizer(folder, pairs=True)
    tokens = load_tokenizer(folder)("the cat").tokens()
    assert [token for token in tokens if token not in ("[CLS]", "[SEP]")] == ["the", "cat"]


def test_a_template_for_pairs_is_left_as_it_is(tmp_path):
    folder = saved(tmp_path, {"single": "[CLS] $A [SEP]", "pair": "[CLS] $A [SEP] $B [SEP]"}, eos_token="</s>")
    tokens = load_tokenizer(folder, pairs=True)("the cat", "a dog").tokens()
    assert tokens == ["[CLS]", "the", "cat", "[SEP]", "a", "dog", "[SEP]"]
