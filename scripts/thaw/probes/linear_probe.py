"""Linear probes: what a linear model predicts of a task from the vectors of one layer.

Logistic regression for labels and tags, linear regression for scores, on each layer by itself (Peters et al. 2019,
figure 1; Liu N. et al. 2019).
"""

from thaw.probes.reading import Reading
from thaw.training.head_candidates import best_strength


def linear(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each layer and strength, and for each layer what the chosen strength scores by split."""
    fitted, held = reading.divided(seed)
    rows, layer_scores = [], []
    for layer, solutions in enumerate(reading.fit(fitted)):
        choice = [reading.main(held, layer, solution) for solution in solutions]
        best = best_strength(choice, reading.entry.l2)
        for index, solution in enumerate(solutions):
            scores = {name: reading.scores(reading.splits[name], layer, solution) for name in reading.scored}
            common = {"layer": reading.numbers[layer], "seed": seed, "l2": solution.l2}
            strength = {"chosen": index == best, "choice": choice[index], "objective": solution.objective}
            strength |= {"steps": solution.steps, "converged": solution.converged}
            rows.append(common | strength | {f"{s}_{m}": value for s in scores for m, value in scores[s].items()})
            if index == best:
                layer_scores.append(common | {"scores": scores})
    return rows, layer_scores
