"""LogME of each layer: how near the task is to what the encoder knows already (You et al. 2021).

Measured on the training rows that a seed leaves for fitting, standardised; it has no split that is scored.
"""

import numpy as np

from thaw.core.errors import UserError
from thaw.probes.measures.information_estimates import standardised
from thaw.probes.measures.log_evidence import logme as evidence
from thaw.probes.reading import Reading


def logme(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each layer, and for each layer its evidence on train, in nats a vector.

    Raises UserError for fewer than two vectors.
    """
    fitted, _ = reading.divided(seed)
    targets = fitted.targets()
    if len(targets) < 2:
        raise UserError(f"task {reading.task['id']}: LogME needs two vectors to fit: take a larger subset")
    targets = targets.astype(np.int64) if reading.labels and targets.ndim == 1 else targets.astype(np.float64)
    rows, layer_scores = [], []
    for number, vectors in zip(reading.numbers, fitted.layers, strict=True):
        states = standardised(vectors.values.cpu().numpy())
        values = {"logme": evidence(states, targets)}
        rows.append({"layer": number, "seed": seed, "vectors": len(targets)} | values)
        layer_scores.append({"layer": number, "seed": seed, "scores": {"train": values}})
    return rows, layer_scores
