"""Small random encoders of every supported family, each with a real tokenizer trained on a few words of ours."""

from pathlib import Path

import torch

WORDS = (
    "the a one small old green cat dog bird river house teacher sings sleeps watches carries finds never often "
    "quietly under behind Anna Berlin Karl Oslo internationalisation unhappiness"
).split()
KNOWN = WORDS[:-2]  # the tokenizers are trained on these; the last two fall into pieces
SIZES = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 130,
    "initializer_range": 0.2,
}
DEBERTA = {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
    "position_buckets": 8,
    "share_att_key": True,
    "type_vocab_size": 0,
}
PATTERNS = {
    "local_attention": 8,
    "global_attn_every_n_layers": 2,
    "layer_types": ["full_attention", "sliding_attention", "full_attention", "sliding_attention"],
}
KEYS = {
    "bert": ("bert", {}),
    "roberta": ("roberta", {"type_vocab_size": 1}),
    "xlm_roberta": ("xlm-roberta", {"type_vocab_size": 1}),
    "electra": ("electra", {"embedding_size": 16}),
    "distilbert": ("distilbert", {"dim": 32, "n_heads": 4, "hidden_dim": 48}),
    "mpnet": ("mpnet", {}),
    "deberta_v2": ("deberta-v2", DEBERTA),
    "deberta_v2_conv": ("deberta-v2", DEBERTA | {"conv_kernel_size": 3, "conv_act": "gelu"}),
    "modernbert": ("modernbert", PATTERNS),
    "eurobert": ("eurobert", {"num_key_value_heads": 4}),
    "modernbert_decoder": ("modernbert-decoder", PATTERNS),
    "gpt2": ("gpt2", {"n_inner": 48, "bos_token_id": 0, "eos_token_id": 2}),
    "openai_gpt": ("openai-gpt", {}),
    "llama": ("llama", {"num_key_value_heads": 2, "bos_token_id": 0, "eos_token_id": 2}),
}
FAMILIES = list(KEYS)
DECODERS = ("gpt2", "openai_gpt", "llama")
CAUSAL = (*DECODERS, "modernbert_decoder")  # which has the tokenizer of ModernBERT
BYTE_LEVEL = ("roberta", "xlm_roberta", "mpnet", "modernbert", "eurobert", "modernbert_decoder")


def tiny_encoder(family: str, folder, layers: int = 3) -> Path:
    """Write a random model of a family (width 32) and its tokenizer into a folder, and return the folder."""
    from transformers import AutoConfig, AutoModel

    folder = Path(folder)
    tokenizer = _byte_level(family) if family in BYTE_LEVEL + DECODERS else _word_pieces(family)
    kind, keys = KEYS[family]
    keys = SIZES | {"num_hidden_layers": layers, "pad_token_id": tokenizer.pad_token_id} | keys
    if "layer_types" in keys:
        keys["layer_types"] = (keys["layer_types"] * layers)[:layers]
    config = AutoConfig.for_model(kind, vocab_size=len(tokenizer), **keys)
    with torch.random.fork_rng():
        torch.manual_seed(20)
        model = AutoModel.from_config(config)
        for parameter in model.parameters():  # norms and biases too, so that a part left out shows
            parameter.data.add_(torch.randn_like(parameter) * 0.02)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _word_pieces(family: str):
    """Return a WordPiece tokenizer, uncased, in the form of BERT's."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    # letters and all known words: a trained vocabulary would differ from process to process
    known = sorted({word.lower() for word in " ".join(KNOWN).split()})
    letters = sorted(set("".join(known)) | set("0123456789"))
    pieces = dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters), *known])
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True)),
        model_input_names=names if family == "distilbert" else [*names, "token_type_ids"],
        model_max_length=128,
    )


def _byte_level(family: str):
    """Return a byte-level BPE tokenizer, cased, in the form of RoBERTa's, or of the decoders', which has no padding.

    GPT-2's adds nothing to a text, Llama's a mark before it; OpenAI GPT's has a mark for unknown tokens alone.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([" ".join(KNOWN)], trainer)
    if family in DECODERS:
        mark = "<s> " if family == "llama" else ""
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{mark}$A", pair=f"{mark}$A {mark}$B", special_tokens=[("<s>", 0)]
        )
        names = ["input_ids", "attention_mask"]
        marks = {"unk_token": "<unk>"} if family == "openai_gpt" else {"bos_token": "<s>", "eos_token": "</s>"}
        return PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, **marks, model_input_names=names, model_max_length=128
        )
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token")
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **dict(zip(names, special, strict=True)),
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=128,
    )
