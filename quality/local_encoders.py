#!/usr/bin/env python3
"""Make small encoders from the training texts that lie in results/data, where no published ones can be had.

    PYTHONPATH=scripts:tests python quality/local_encoders.py results/local trec sst2_sentences stsb

writes, in minutes on one core and from texts of train alone, without a label:

    vectors.txt     100 numbers for each word that is there three times or more: positive pointwise mutual information
                    of words at most five apart, its contexts smoothed by 0.75, and a truncated SVD with the roots of
                    the singular values (Levy, Goldberg and Dagan 2015)
    decoder/        GPT-2's architecture, 4 layers of width 128, trained as a language model from random weights
    recurrent/      ELMo's architecture in its published files, two bidirectional LSTMs of width 128, trained likewise
                    in both directions: the same texts, passes and tokens an update, and about as many parameters
    bert/, bert_cased/, bert_wide/   BERT's architecture, 4 layers of width 128 or 256, random weights, with the heads
                    for masked tokens and next sentences. They are pretrained by Thaw, in strategies that start
                    `from: local_text` or `local_pairs`, on the text of the strategy's task
    encoders.yaml, strategies.yaml, outputs.yaml   a catalogue of them: local_vectors, local_decoder and the decoder
                    before training, local_recurrent, local_bert, local_bert_cased, local_bert_wide, local_bert_trec,
                    local_bert_sick; strategies that pretrain BERT first
    made.json       how many words, and the losses of both language models on a twentieth of the texts, before and after

All are far from what is published under these names; tables call them local.
"""

import argparse
import collections
import math
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn
from transformers import BertConfig, BertForPreTraining, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from thaw.core.files import write_json, write_text
from thaw.data.corpus import Corpus
from thaw.encoders.word_vectors import word_boundaries
from thaw.papers.elmo import Elmo, load_tokenizer

WIDTH, WINDOW, LEAST, SMOOTHED = 100, 5, 3, 0.75
END, VOCABULARY, BLOCK, BATCH, RATE = "<|endoftext|>", 4000, 64, 32, 1e-3
SIZES = {"n_layer": 4, "n_embd": 128, "n_head": 4, "n_positions": 512}
ELMO = {  # options.json
    "lstm": {
        **{"n_layers": 2, "projection_dim": 64, "dim": 512},  # in their published ratio
        **{"use_skip_connections": True, "cell_clip": 3, "proj_clip": 3},
    },
    "char_cnn": {
        **{"n_characters": 262, "max_characters_per_token": 50, "embedding": {"dim": 16}, "activation": "relu"},
        **{"filters": [[1, 16], [2, 16], [3, 32], [4, 32], [5, 64]], "n_highway": 2},
    },
}
ENTRIES = """encoders:
  local_vectors:
    label: Local word vectors (100d)
    kind: word_vectors
    file: {folder}/vectors.txt
    layers: 0
    width: 100
    cased: false
    objective: word co-occurrence
    pretraining: [training texts of {corpora}]

  local_decoder:
    label: Local decoder (GPT-2's architecture, 4 layers)
    folder: {folder}/decoder
    layers: 4
    width: 128
    cased: true
    objective: language model, left to right
    pretraining: [training texts of {corpora}]

  local_decoder_random:
    base: local_decoder
    label: Local decoder, random weights
    weights: random

  local_recurrent:
    label: Local recurrent encoder (ELMo's architecture, 2 layers)
    kind: elmo
    folder: {folder}/recurrent
    layers: 2
    width: 128
    cased: true
    objective: language model in both directions
    pretraining: [training texts of {corpora}]

  local_bert:
    label: Local BERT (4 layers, 128d)
    folder: {folder}/bert
    layers: 4
    width: 128
    cased: false
    objective: masked language model
    pretraining: [training text of the task, in strategies that say so]

  local_bert_cased:
    base: local_bert
    label: Local BERT, cased
    folder: {folder}/bert_cased
    cased: true

  local_bert_wide:
    base: local_bert
    label: Local BERT, 256d
    folder: {folder}/bert_wide
    width: 256

  local_bert_trec:     # what a strategy with `from: local_text` leaves on TREC's text
    base: local_bert
    label: Local BERT of TREC's questions
    folder: {folder}/../encoders/local_bert.local_text.trec
    pretraining: [training text of TREC]

  local_bert_sick:     # what one with `from: local_pairs_short` leaves on SICK's pairs
    base: local_bert
    label: Local BERT of SICK's pairs
    folder: {folder}/../encoders/local_bert.local_pairs_short.sick
    objective: masked language model, next sentences
    pretraining: [training text of SICK]

further_pretraining:
  local_text:
    label: Local pretraining
    phase: {{learning_rate: 1e-3, epochs: 30, batch_size: 32}}

  local_text_short:
    base: local_text
    label: Local pretraining, ten epochs
    phase: {{learning_rate: 1e-3, epochs: 10, batch_size: 32}}

  local_text_slow:     # a rate with which 256 dimensions learn too
    base: local_text_short
    phase: {{learning_rate: 3e-4, epochs: 10, batch_size: 32}}

  local_pairs:
    label: Local pretraining, with next sentences
    phase: {{learning_rate: 1e-3, epochs: 30, batch_size: 32}}
    next_sentence: true

  local_pairs_short:
    base: local_pairs
    label: Local pretraining, with next sentences, ten epochs
    phase: {{learning_rate: 1e-3, epochs: 10, batch_size: 32}}
"""
# What is compared after pretraining has 200 updates of 16 rows.
UPDATES = "updates: 200, batch_size: 16, head_learning_rate: 5e-3"
STRATEGIES = f"""strategies:
  local_frozen: {{base: frozen, label: "Linear probe", from: local_text}}

  local_frozen_short: {{base: frozen, label: "Linear probe", from: local_text_short}}

  local_top:
    label: Top-k fine-tuning
    from: local_text
    sweep: {{k: [1, 2]}}
    phases: [{{train: [head, {{top: k}}], learning_rate: 5e-4, {UPDATES}}}]

  local_full:
    label: Full fine-tuning
    from: local_text
    phases: [{{train: [all], learning_rate: 5e-4, {UPDATES}}}]

  local_full_short:
    label: Full fine-tuning
    from: local_text_short
    phases: [{{train: [all], learning_rate: 5e-4, {UPDATES}}}]

  local_frozen_slow: {{base: frozen, label: "Linear probe", from: local_text_slow}}

  local_full_slow:
    base: local_full_short
    label: Full fine-tuning
    from: local_text_slow

  local_full_fast:
    label: Full fine-tuning, four times the rate
    from: local_text
    phases: [{{train: [all], learning_rate: 2e-3, {UPDATES}}}]

  local_adapters:
    label: Adapters
    from: local_text
    phases: [{{train: [head], insert: {{kind: adapters, size: 16}}, learning_rate: 2e-3, {UPDATES}}}]

  local_tuned:
    label: Full fine-tuning
    phases: [{{train: [all], learning_rate: 5e-4, {UPDATES}}}]

  local_full_pairs:
    label: Full fine-tuning, after next sentences too
    from: local_pairs
    phases: [{{train: [all], learning_rate: 5e-4, {UPDATES}}}]

  local_frozen_pairs: {{base: linear_probe_joint, label: "Linear probe, cross-encoder", from: local_pairs_short}}

  untrained_full:
    label: Full fine-tuning of random weights
    phases: [{{train: [all], learning_rate: 5e-4, {UPDATES}}}]
"""
OUTPUTS = """outputs:
  local_gains: {base: gains, label: Similarity to pretraining, reference: local_tuned}
"""
BERTS = {"bert": (128, True), "bert_cased": (128, False), "bert_wide": (256, True)}  # width, lower case


def texts_of(folder: Path) -> list[str]:
    """Return the different training texts of a prepared dataset, in order."""
    corpus = Corpus(folder)
    frame = corpus.frame("train")
    columns = [frame[name] for name in corpus.texts] or [frame[corpus.words].map(" ".join)]
    return list(dict.fromkeys(text for column in columns for text in column))


def vectors(texts: list[str]) -> tuple[list[str], np.ndarray]:
    """Return words, the most frequent first, and their vectors [V, d]."""
    vocabulary, positive = information(texts)
    left, sizes, _ = svds(positive, WIDTH, random_state=0)
    return vocabulary, left * np.sqrt(sizes)


def information(texts: list[str]) -> tuple[list[str], csr_matrix]:
    """Return words, the most frequent first, and the positive pointwise mutual information [V, V], nats, of two words.

    Of a word and a context it is log(p(word, context) / (p(word) q(context))), with q the smoothed shares of contexts.
    """
    cut = word_boundaries()
    split = [[word for word, _ in cut.pre_tokenize_str(text.lower())] for text in texts]
    counts = collections.Counter(word for words in split for word in words)
    vocabulary = [word for word, count in counts.most_common() if count >= LEAST]
    places = {word: place for place, word in enumerate(vocabulary)}
    pairs = collections.Counter()
    for words in split:
        known = [places[word] for word in words if word in places]
        for place, word in enumerate(known):
            pairs.update((word, other) for other in known[max(0, place - WINDOW) : place])
    rows, columns = np.array(list(pairs)).T
    together = csr_matrix((list(pairs.values()), (rows, columns)), (len(vocabulary), len(vocabulary)), dtype=float)
    together = (together + together.T).tocoo()
    of_word, of_context = np.asarray(together.sum(1)).ravel(), np.asarray(together.sum(0)).ravel() ** SMOOTHED
    shared = np.log(together.data * of_context.sum() / (of_word[together.row] * of_context[together.col]))
    return vocabulary, csr_matrix((shared.clip(min=0), (together.row, together.col)), together.shape)


def decoder(texts: list[str], folder: Path, epochs: int) -> dict:
    """Train a decoder, write it, and return its loss on texts that it has not seen, in nats per token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=[END], initial_alphabet=alphabet)
    )
    ids = [np.array([*tokenizer.encode(text).ids, 0]) for text in texts]
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=tokenizer.get_vocab_size(), bos_token_id=0, eos_token_id=0, **SIZES))
    said = fit(model, ids, epochs)
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=END, eos_token=END).save_pretrained(folder)
    return said


def fit(model: nn.Module, texts: list[np.ndarray], epochs: int) -> dict:
    """Train a language model on texts in tokens, one after the other in blocks, and return what `decoder` returns."""
    ids = [texts[place] for place in np.random.default_rng(0).permutation(len(texts))]
    stream, rest = (
        torch.from_numpy(np.concatenate(part)) for part in (ids[len(ids) // 20 :], ids[: max(1, len(ids) // 20)])
    )
    blocks, unseen = (part[: len(part) // BLOCK * BLOCK].view(-1, BLOCK) for part in (stream, rest))
    before = _loss(model, unseen)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    steps = epochs * math.ceil(len(blocks) / BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    for _ in range(epochs):
        for batch in blocks[torch.randperm(len(blocks))].split(BATCH):
            optimizer.zero_grad()
            model(input_ids=batch, labels=batch).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return {"tokens": stream.numel(), "epochs": epochs, "before": before, "after": _loss(model, unseen)}


@torch.no_grad()
def _loss(model: nn.Module, blocks: torch.Tensor) -> float:
    model.eval()
    losses = [model(input_ids=batch, labels=batch).loss.item() * len(batch) for batch in blocks.split(BATCH)]
    model.train()
    return sum(losses) / len(blocks)


class Recurrent(nn.Module):
    """ELMo below the softmax that trains it: either direction says the next word that it will read.

    The most frequent words are a class each, all others are one together. B blocks, T words of a block.
    """

    def __init__(self, spellings: torch.Tensor, counts: np.ndarray):
        """Args: by word its characters [V, 50], and how often it is there [V]."""
        super().__init__()
        layers = ELMO["lstm"]["n_layers"]
        self.elmo = Elmo(SimpleNamespace(char_cnn=ELMO["char_cnn"], lstm=ELMO["lstm"], num_hidden_layers=layers))
        ranks = torch.from_numpy((-counts).argsort(kind="stable").argsort())
        self.spellings, self.classes = spellings, ranks.clamp(max=VOCABULARY - 1)
        self.words = nn.Linear(ELMO["lstm"]["projection_dim"], int(self.classes.max()) + 1)

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> SimpleNamespace:
        """Return the loss of words [B, T], as the decoder does."""
        words, places = input_ids.unique(return_inverse=True)  # the characters of a word are read once
        states, mask = self.elmo.embeddings(self.spellings[words][None])[0][places], torch.ones_like(input_ids).bool()
        for layer in self.elmo.layers:
            states = layer(nn.functional.dropout(states, 0.1, self.training), mask)
        ahead, back = states.chunk(2, -1)
        said, due = torch.cat([ahead[:, :-1], back[:, 1:]]), torch.cat([labels[:, 1:], labels[:, :-1]])
        loss = nn.functional.cross_entropy(self.words(said).flatten(0, 1), self.classes[due].flatten())
        return SimpleNamespace(loss=loss)


def recurrent(texts: list[str]) -> tuple[Recurrent, list[np.ndarray]]:
    """Return a recurrent language model with random weights, and the texts in its words."""
    tokenizer = load_tokenizer(None)
    ids = [np.array(one) for one in tokenizer(texts)["input_ids"]]
    spellings = torch.from_numpy(tokenizer.spellings()).long()
    torch.manual_seed(0)
    return Recurrent(spellings, np.bincount(np.concatenate(ids), minlength=len(spellings))), ids


def publish(model: Elmo, folder: Path) -> None:
    """Write an ELMo as TensorFlow has it: matrices transposed, without character 0, the forget gate's bias less 1."""
    cnn = model.embeddings
    tensors = {"char_embed": cnn.characters.weight[1:]}
    tensors |= {"CNN_proj/W_proj": cnn.projection.weight.T, "CNN_proj/b_proj": cnn.projection.bias}
    for number, one in enumerate(cnn.convolutions):
        tensors[f"CNN/W_cnn_{number}"] = one.weight.permute(2, 1, 0)[None]
        tensors[f"CNN/b_cnn_{number}"] = one.bias
    for part, modules in (("transform", cnn.transforms), ("carry", cnn.carries)):
        for number, one in enumerate(modules):
            tensors[f"CNN_high_{number}/W_{part}"] = one.weight.T
            tensors[f"CNN_high_{number}/b_{part}"] = one.bias
    for number, layer in enumerate(model.layers):
        for way, one in enumerate(layer.directions):
            cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
            enter, candidate, keep, leave = one.inputs.bias.chunk(4)
            tensors[f"{cell}/W_0"] = torch.cat([one.inputs.weight, one.states.weight], 1).T
            tensors[f"{cell}/B"] = torch.cat([enter, candidate, keep - 1, leave])
            tensors[f"{cell}/W_P_0"] = one.projection.weight.T
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "options.json", ELMO)
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, value in tensors.items():
            file[name] = value.detach().numpy()


def bert(texts: list[str], folder: Path, width: int, lowercase: bool) -> int:
    """Write BERT's architecture with random weights and word pieces of the texts; return how many pieces."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=special))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    torch.manual_seed(0)
    sizes = {"hidden_size": width, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 4 * width}
    pieces = tokenizer.get_vocab_size()
    BertForPreTraining(BertConfig(vocab_size=pieces, **sizes)).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **names).save_pretrained(folder)
    return pieces


def main() -> None:
    """Make them from the named datasets, and the catalogue."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("corpora", nargs="+", help="ids of datasets that were prepared")
    parser.add_argument("--data", type=Path, default=Path("results/data"))
    parser.add_argument("--epochs", type=int, default=5)
    given = parser.parse_args()
    texts = [text for corpus in given.corpora for text in texts_of(given.data / corpus)]
    given.out.mkdir(parents=True, exist_ok=True)
    words, matrix = vectors(texts)
    lines = (f"{word} {' '.join(f'{value:.5f}' for value in row)}\n" for word, row in zip(words, matrix, strict=True))
    write_text(given.out / "vectors.txt", f"{len(words)} {WIDTH}\n" + "".join(lines))
    made = {"corpora": given.corpora, "texts": len(texts), "words": len(words)}
    made["decoder"] = decoder(texts, given.out / "decoder", given.epochs)
    model, ids = recurrent(texts)
    made["recurrent"] = fit(model, ids, given.epochs)
    publish(model.elmo, given.out / "recurrent")
    made["pieces"] = {name: bert(texts, given.out / name, *form) for name, form in BERTS.items()}
    write_text(given.out / "strategies.yaml", STRATEGIES)
    write_text(given.out / "outputs.yaml", OUTPUTS)
    write_text(given.out / "encoders.yaml", ENTRIES.format(folder=given.out, corpora=", ".join(given.corpora)))
    write_json(given.out / "made.json", made)
    print(made)


if __name__ == "__main__":
    main()
