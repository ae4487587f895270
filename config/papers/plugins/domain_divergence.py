"""Domains: does a probe score less where the words of its test differ more from those that it was fitted to?

Peters et al. 2019, table 6, compare the divergence between the text of pretraining and each domain of MNLI with the
score on that domain. Here probes are fitted to the training rows of each domain, and of all, and scored on the rows of
each domain, so that a domain is compared with itself under different training texts. Every fit has as many rows, and
every divergence as many terms, as the smallest domain allows.
"""

from pydantic import Field

from thaw.declarations.probes import VECTORS, LinearOptions, ProbeKind
from thaw.declarations.value_types import Id


class DomainOptions(LinearOptions):
    """Linear probes by domain."""

    domain: Id = Field(description="the target of the corpus, of kind label, that names each row's domain")


PROBES = {
    "domain_divergence": ProbeKind(
        "thaw.papers.domain_divergence:domain_divergence",
        DomainOptions,
        VECTORS,
        ("domain_figure",),
        "correlation",
        targets=("domain",),
        serves="corpora with a target {domain} of kind label",
        version=2,
    )
}


from itertools import product

import numpy as np

from thaw.core.errors import UserError
from thaw.core.runtime import derive_seed
from thaw.probes.reading import Reading, Split
from thaw.statistics.word_divergence import jensen_shannon, terms

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
            best = reading.best(held, layer, solutions)
            for (split, tested), part_scored in domains.scored.items():
                row = {"layer": reading.numbers[layer], "seed": seed, "split": split, "trained": trained}
                row |= {"tested": tested, "divergence": domains.divergences[trained, split, tested]}
                row |= {"rows": len(fitted.rows), "tested_rows": len(part_scored.rows), "l2": best.l2}
                rows.append(row | {"score": reading.main(part_scored, layer, best)})
    layer_scores = []
    for number in reading.numbers:
        own = [row for row in rows if row["layer"] == number]
        scores = {split: _correlations([row for row in own if row["split"] == split]) for split in reading.scored}
        cells = [{key: row[key] for key in ("split", "trained", "tested", "divergence", "score")} for row in own]
        layer_scores.append({"layer": number, "seed": seed, "scores": scores, "cells": cells})
    return rows, layer_scores


class Domains:
    """Rows by domain, and the divergence of their terms.

    Attributes: fitted, training rows by domain and of all; scored, rows by scored split and domain; divergences in bits
    by domain that was trained on, split and domain that is scored.
    """

    def __init__(self, reading: Reading, seed: int):
        """Draw as many training rows, and as many terms, of each domain as the smallest one has."""
        self.reading, generator = reading, np.random.default_rng(derive_seed(seed, "domains"))
        named = reading.corpus.labels(reading.entry.domain)
        positions = {name: self._positions(name, named) for name in reading.splits}
        train, least = reading.splits["train"], min(map(len, positions["train"].values()))
        if least < 20:
            smallest = min(positions["train"], key=lambda domain: len(positions["train"][domain]))
            raise UserError(
                f"task {reading.task['id']}: domain {smallest!r} has {least} training rows in the subset; 20 are "
                "needed: take a larger subset"
            )
        positions["train"] = {ALL: np.arange(len(train.rows)), **positions["train"]}
        drawn = {domain: np.sort(generator.permutation(rows)[:least]) for domain, rows in positions["train"].items()}
        self.fitted = {domain: train.part(rows) for domain, rows in drawn.items()}
        scored = [(split, domain) for split in reading.scored for domain in named if len(positions[split][domain])]
        self.scored = {key: reading.splits[key[0]].part(positions[key[0]][key[1]]) for key in scored}
        words = {("train", domain): self._terms("train", part) for domain, part in self.fitted.items()}
        words |= {key: self._terms(key[0], part) for key, part in self.scored.items()}
        count = min(map(len, words.values()))
        sample = {key: generator.permutation(domain_terms)[:count].tolist() for key, domain_terms in words.items()}
        self.divergences = {
            (trained, split, tested): jensen_shannon(sample["train", trained], sample[split, tested])
            for trained, (split, tested) in product(self.fitted, self.scored)
        }

    def _positions(self, name: str, named: list[str]) -> dict[str, np.ndarray]:
        """Return by domain the positions of its rows among those that are read of a split."""
        task = {**self.reading.task, "target": self.reading.entry.domain}
        domains = self.reading.corpus.targets(task, name)[self.reading.splits[name].rows]
        return {domain: np.flatnonzero(domains == index) for index, domain in enumerate(named)}

    def _terms(self, name: str, split: Split) -> list[str]:
        corpus = self.reading.corpus
        frame = corpus.frame(name).iloc[split.rows]
        if corpus.words:
            return terms(" ".join(words) for words in frame[corpus.words])
        return terms(text for column in corpus.texts for text in frame[column])


def _correlations(rows: list[dict]) -> dict[str, float | None]:
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
    summary = {}
    for name, points in measured.items():
        result = spearmanr(*zip(*points, strict=True)) if len(points) > 2 else None
        value = None if result is None or np.isnan(result.statistic) else float(result.statistic)
        summary |= {name: value, f"{name}_p": None if value is None else float(result.pvalue)}
    return summary
