"""Domains: does a probe score the less, the more unlike the words of its test are to those that it was fitted to?

Peters et al. 2019, table 6, put the divergence between the text of pretraining and each domain of MNLI beside the score
on that domain. Here probes are fitted to the training rows of each domain, and of all, and scored on each domain's
rows, so that a domain is compared with itself under unlike training texts. Every fit has as many rows, and every
divergence as many terms, as the smallest domain allows.
"""

from itertools import product

import numpy as np

from thaw.core.errors import UserError
from thaw.core.runtime import derive_seed
from thaw.probes.measures.term_divergence import jensen_shannon, terms
from thaw.probes.reading import Reading, Split
from thaw.training.head_fitting import best_strength

ALL = "all"  # training rows of all domains together


def domain_divergence(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each layer, split and pair of domains, and for each layer how divergence and score go together.

    Raises UserError where a domain has too few rows.
    """
    domains = Domains(reading, seed)
    rows = []
    for trained, part in domains.fitted.items():
        fitted, held = reading.divided(seed, part)
        for layer, solutions in enumerate(reading.fit(fitted)):
            found = [reading.main(held, layer, solution) for solution in solutions]
            best = solutions[best_strength(found, reading.entry.l2)]
            for (split, tested), told in domains.scored.items():
                row = {"layer": reading.numbers[layer], "seed": seed, "split": split, "trained": trained}
                row |= {"tested": tested, "divergence": domains.divergences[trained, split, tested]}
                row |= {"rows": len(fitted.rows), "tested_rows": len(told.rows), "l2": best.l2}
                rows.append(row | {"score": reading.main(told, layer, best)})
    layer_scores = []
    for number in reading.numbers:
        own = [row for row in rows if row["layer"] == number]
        scores = {split: _together([row for row in own if row["split"] == split]) for split in reading.scored}
        cells = [{key: row[key] for key in ("split", "trained", "tested", "divergence", "score")} for row in own]
        layer_scores.append({"layer": number, "seed": seed, "scores": scores, "cells": cells})
    return rows, layer_scores


class Domains:
    """Rows by domain, and how far apart their terms are.

    Attributes: fitted, training rows by domain and of all; scored, rows by scored split and domain; divergences in bits
    by domain that was trained on, split and domain that is scored.
    """

    def __init__(self, reading: Reading, seed: int):
        """Draw as many training rows, and as many terms, of each domain as the smallest one has."""
        self.reading, generator = reading, np.random.default_rng(derive_seed(seed, "domains"))
        named = reading.corpus.labels(reading.entry.domain)
        places = {name: self._places(name, named) for name in reading.splits}
        train, least = reading.splits["train"], min(len(found) for found in places["train"].values())
        if least < 20:
            smallest = min(places["train"], key=lambda domain: len(places["train"][domain]))
            raise UserError(
                f"task {reading.task['id']}: domain {smallest!r} has {least} training rows in the subset, and 20 are "
                "due: take a larger subset"
            )
        places["train"] = {ALL: np.arange(len(train.rows)), **places["train"]}
        drawn = {domain: np.sort(generator.permutation(found)[:least]) for domain, found in places["train"].items()}
        self.fitted = {domain: train.part(found) for domain, found in drawn.items()}
        told = [(split, domain) for split in reading.scored for domain in named if len(places[split][domain])]
        self.scored = {key: reading.splits[key[0]].part(places[key[0]][key[1]]) for key in told}
        words = {("train", domain): self._terms("train", part) for domain, part in self.fitted.items()}
        words |= {key: self._terms(key[0], part) for key, part in self.scored.items()}
        count = min(len(found) for found in words.values())
        sample = {key: generator.permutation(found)[:count].tolist() for key, found in words.items()}
        self.divergences = {
            (trained, split, tested): jensen_shannon(sample["train", trained], sample[split, tested])
            for trained, (split, tested) in product(self.fitted, self.scored)
        }

    def _places(self, name: str, named: list[str]) -> dict[str, np.ndarray]:
        """Return by domain the positions of its rows among those that are read of a split."""
        task = {**self.reading.task, "target": self.reading.entry.domain}
        found = self.reading.corpus.targets(task, name)[self.reading.splits[name].rows]
        return {domain: np.flatnonzero(found == place) for place, domain in enumerate(named)}

    def _terms(self, name: str, split: Split) -> list[str]:
        """Return the terms of some rows of a split."""
        corpus = self.reading.corpus
        frame = corpus.frame(name).iloc[split.rows]
        if corpus.words:
            return terms(" ".join(words) for words in frame[corpus.words])
        return terms(text for column in corpus.texts for text in frame[column])


def _together(rows: list[dict]) -> dict[str, float | None]:
    """Return the rank correlation (Spearman) of divergence and score over pairs of domains, and its p-value.

    Only probes of one domain count. `lost` is the same for what is lost against a probe of the tested domain itself,
    over pairs of two domains: unlike the score it does not say which domain is hard.
    """
    from scipy.stats import spearmanr

    pairs = [row for row in rows if row["trained"] != ALL and row["score"] is not None]
    own = {row["tested"]: row["score"] for row in pairs if row["trained"] == row["tested"]}
    others = [row for row in pairs if row["trained"] != row["tested"] in own]
    lost = [(row["divergence"], own[row["tested"]] - row["score"]) for row in others]
    measured = {"correlation": [(row["divergence"], row["score"]) for row in pairs], "lost": lost}
    found = {}
    for name, points in measured.items():
        result = spearmanr(*zip(*points, strict=True)) if len(points) > 2 else None
        value = None if result is None or np.isnan(result.statistic) else float(result.statistic)
        found |= {name: value, f"{name}_p": None if value is None else float(result.pvalue)}
    return found
