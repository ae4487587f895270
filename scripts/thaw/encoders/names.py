"""The names of an encoder's files."""

SETTINGS = ("config.json",)
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json")
SENTENCEPIECE = ("spm.model", "spiece.model", "sentencepiece.bpe.model")
TOKENIZER = (
    *VOCABULARIES,
    *SENTENCEPIECE,
    "merges.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
WEIGHTS = "model.safetensors"
SHARDS = "model.safetensors.index.json"
PICKLED = "pytorch_model.bin"
MODULES = ("modules.json", "sentence_bert_config.json", "*/config.json")  # of sentence-transformers
