"""Static word vectors, an encoder of no layers whose one boundary is 0 = L: how its texts become words.

The matrix is `thaw.encoders.builtin_models.Table`.
"""

PAD, UNKNOWN = "<pad>", "<unk>"


def tokenizer(words: list[str], cased: bool):
    """Return a tokenizer of whole words: text is split at whitespace and around punctuation.

    The ids of these words begin at 2, after padding and unknown.
    """
    from tokenizers import Tokenizer, models, normalizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: place for place, word in enumerate([PAD, UNKNOWN, *words])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    backend.pre_tokenizer = word_boundaries()
    if not cased:
        backend.normalizer = normalizers.Lowercase()
    names = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token=PAD, unk_token=UNKNOWN, model_input_names=names)


def word_boundaries():
    """Return the rule by which a text becomes words: at blanks and around each sign of punctuation."""
    from tokenizers.pre_tokenizers import Punctuation, Sequence, WhitespaceSplit

    return Sequence([WhitespaceSplit(), Punctuation()])


def load_tokenizer(folder, words: bool):
    """Return the tokenizer of a folder; `words`: it will be given lists of words, and takes each as it is."""
    from transformers import PreTrainedTokenizerFast

    loaded = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    if words:
        loaded.backend_tokenizer.pre_tokenizer = None
    return loaded
