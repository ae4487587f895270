"""Tokens that no vocabulary holds: numbered as a corpus brings them, each spelt in smaller pieces that a model reads.

ELMo's tokens are words, spelt in characters; those of a sentence encoder are whole texts, spelt in word pieces. The
numbers mean nothing beyond one store of features, which keeps the spellings with its token ids.

V distinct tokens, C pieces of the longest.
"""

from collections.abc import Callable

import numpy as np

PAD = "\0"  # occurs in no text


class SpellingTokenizer:
    """A tokenizer as features use one: ids, word ids, truncation, `pad_token_id`, `model_input_names`."""

    pad_token_id = 0

    def __init__(self, spell: Callable[[str], list[int]], boundaries, marks: tuple[str, ...] = ()):
        """Take the spelling of a token, the rule that parts a text (None: it is one token), and the marks around it.

        marks: none, or a sentence's begin and end, which surround each of two texts.
        """
        from tokenizers import Tokenizer, models
        from tokenizers.processors import TemplateProcessing
        from transformers import PreTrainedTokenizerFast

        self._spell, self._boundaries = spell, boundaries
        self._numbers = {token: number for number, token in enumerate([PAD, *marks])}
        self._spellings = [spell(token) for token in self._numbers]
        backend = Tokenizer(models.WordLevel(self._numbers, unk_token=PAD))
        if marks:
            framed = {text: f"{marks[0]} ${text} {marks[1]}" for text in "AB"}
            numbers = [(mark, self._numbers[mark]) for mark in marks]
            backend.post_processor = TemplateProcessing(
                single=framed["A"], pair=f"{framed['A']} {framed['B']}", special_tokens=numbers
            )
        names = ["input_ids", "attention_mask"]
        self._tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token=PAD, model_input_names=names)
        self.model_input_names, self.model_max_length = names, self._tokenizer.model_max_length

    def __call__(self, *texts: list, is_split_into_words: bool = False, **settings):
        """Return the encodings of some texts, pairs of texts or lists of words; what is new gets a number first."""
        from tokenizers.models import WordLevel

        known = len(self._numbers)
        for text in (text for column in texts for text in column):
            for token in text if is_split_into_words else self._parted(text):
                if token not in self._numbers:
                    self._numbers[token] = len(self._numbers)
                    self._spellings.append(self._spell(token))
        backend = self._tokenizer.backend_tokenizer
        if len(self._numbers) > known:
            backend.model = WordLevel(self._numbers, unk_token=PAD)
        if not is_split_into_words and self._boundaries:
            backend.pre_tokenizer = self._boundaries
        return self._tokenizer(*texts, is_split_into_words=is_split_into_words, **settings)

    def spellings(self) -> np.ndarray:
        """Return how each token met so far is spelt, int32 [V, C], short ones filled with 0."""
        table = np.zeros((len(self._spellings), max(map(len, self._spellings))), np.int32)
        for row, pieces in zip(table, self._spellings, strict=True):
            row[: len(pieces)] = pieces
        return table

    def _parted(self, text: str) -> list[str]:
        if self._boundaries is None:
            return [text]
        return [token for token, _ in self._boundaries.pre_tokenize_str(text)]
