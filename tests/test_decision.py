"""The decision against its formulas in plain loops, and on the cases at its edges."""

from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest

from thaw.core.errors import UserError
from thaw.decision.arms import COLLAPSED, UNDERTRAINED, Arm, FoldScores, placed
from thaw.decision.decide import PRIOR_SEEDS, SEED_DEVIATION, SPREAD, decide, draws_of
from thaw.decision.prior import GAINS, expected, is_measured
from thaw.decision.stops import LEAST_GAIN, SPREAD_OF_TRAINED, gain_of_unseen, has_to_gain

DRAWS, ROWS = 100, 50


def arm(name: str, rng, level: float, seeds: int = 1, price: float = 1.0, **more) -> Arm:
    """Return an arm whose scores lie about a level, and its scores on drawn rows about those."""
    scores = level + rng.normal(0, 1, seeds)
    by_row = scores[:, None] + rng.normal(0, 3, (seeds, DRAWS))
    return Arm(name, scores, by_row, ROWS, price, **{"converged": False} | more)


def expected_of(arms: list[Arm], within: float = 0.0, weight: float = 0.0) -> dict:
    """Return what is taken and what is said of each arm, [K] each, by the formulas written out."""
    count, seeds = len(arms), max(len(one.scores) for one in arms)
    scores = [[float(np.nan_to_num(one.scores[s % len(one.scores)])) for s in range(seeds)] for one in arms]
    drawn = [
        [
            [scores[k][s] if np.isnan(x := one.by_row[s % len(one.scores)][d]) else x for d in range(DRAWS)]
            for s in range(seeds)
        ]
        for k, one in enumerate(arms)
    ]
    folded = [k for k in range(count) if arms[k].folds]
    if folded:
        best = max(folded, key=lambda k: arms[k].folds.score)
        by_seed, by_draw, wide = scores[best][:], [row[:] for row in drawn[best]], arms[best].folds
        for k in range(count):
            for s in range(seeds):
                own = arms[k].folds
                drawn[k][s] = [
                    own.by_row[d] if own else drawn[k][s][d] - by_draw[s][d] + wide.by_row[d] for d in range(DRAWS)
                ]
                scores[k][s] = own.score if own else scores[k][s] - by_seed[s] + wide.score
    means = [sum(scores[k]) / seeds for k in range(count)]
    first = means.index(max(means))
    noise = np.zeros((count, seeds, DRAWS))  # by drawn rows, about its own mean
    for k in range(count):
        for s in range(seeds):
            away = [drawn[k][s][d] - drawn[first][s][d] for d in range(DRAWS)]
            noise[k, s] = [x - sum(away) / DRAWS for x in away]
    moved = seeds_moved(arms, scores, noise, first, seeds)
    values = [mean - means[first] for mean in means]
    draws = np.array(
        [
            [values[k] + noise[k, :, d].mean() + moved[k][d] - moved[first][d] for k in range(count)]
            for d in range(DRAWS)
        ]
    )
    sound = [COLLAPSED not in one.flags for one in arms]
    sound = sound if any(sound) else [True] * count
    likely = with_prior(draws, values, [k for k in range(count) if sound[k] and arms[k].encoder], arms)
    highest = [max(row[k] for k in range(count) if sound[k]) for row in likely]
    losses = [max(0, sum(top - row[k] for top, row in zip(highest, likely, strict=True)) / DRAWS) for k in range(count)]
    chances = [0.0] * count
    for top, row in zip(highest, likely, strict=True):
        winners = [k for k in range(count) if sound[k] and row[k] >= top - 1e-9]
        for k in winners:
            chances[k] += 1 / len(winners) / DRAWS
    said = {"loss": losses, "chance": chances}
    allowed = [k for k in range(count) if sound[k]]
    cost = {k: losses[k] if within else losses[k] + weight * arms[k].price for k in allowed}
    near = [k for k in allowed if cost[k] <= max(within, min(cost.values())) + 1e-9]
    taken = min(near, key=lambda k: (arms[k].price, losses[k]))
    said["listed"] = [
        k in allowed
        and arms[k].price < arms[taken].price
        and not any(
            arms[j].price <= arms[k].price
            and losses[j] <= losses[k] + 1e-9
            and (arms[j].price < arms[k].price or losses[j] < losses[k] - 1e-9)
            for j in allowed
        )
        for k in range(count)
    ]
    return said | {"taken": arms[taken].name, "ends": ends_of(draws, values, taken, arms)}


def seeds_moved(arms, scores, noise, first: int, seeds: int) -> list:
    """Return by how much other seeds move the mean of each arm, [K][D]."""
    count, free = len(arms), PRIOR_SEEDS + seeds - 1
    relative = [[scores[k][s] - scores[first][s] for s in range(seeds)] for k in range(count)]

    def covariance(one, other):
        return sum((x - np.mean(one)) * (y - np.mean(other)) for x, y in zip(one, other, strict=True)) / (len(one) - 1)

    total = np.diag([0.0 if one.converged else PRIOR_SEEDS * SEED_DEVIATION**2 for one in arms])
    if seeds > 1:
        own = np.empty((count, count))
        for j in range(count):
            for k in range(count):
                each = sum(covariance(noise[j, s], noise[k, s]) for s in range(seeds)) / seeds
                of_mean = covariance(noise[j].mean(0), noise[k].mean(0))
                own[j, k] = covariance(relative[j], relative[k]) - (each - of_mean) * seeds / (seeds - 1)
        lengths, axes = np.linalg.eigh(own)
        total = total + (seeds - 1) * sum(max(x, 0) * np.outer(v, v) for x, v in zip(lengths, axes.T, strict=True))
    own = [one.seeds or len(one.scores) for one in arms]
    total = np.array([[total[j, k] / (own[j] * own[k]) ** 0.5 for k in range(count)] for j in range(count)])
    lengths, axes = np.linalg.eigh(total / free)
    root = sum(np.sqrt(max(x, 0)) * np.outer(v, v) for x, v in zip(lengths, axes.T, strict=True))
    normal = [np.random.default_rng(crc32(one.name.encode())).standard_normal(DRAWS // 2) for one in arms]
    wide = np.random.default_rng(free).chisquare(free, DRAWS // 2)
    half = [
        [sum(root[k][j] * normal[j][d] for j in range(count)) / np.sqrt(wide[d] / free) for d in range(DRAWS // 2)]
        for k in range(count)
    ]
    return [row + [-x for x in row] for row in half]


def with_prior(draws, values, alike, arms) -> np.ndarray:
    """Return the draws with the prior: posterior mean and covariance of normal numbers, by matrices."""
    likely = draws.copy()
    if len(alike) > 1:
        level = [k for k in alike if UNDERTRAINED not in arms[k].flags] or alike
        of = level if len(level) > 1 else alike
        centre = np.eye(len(of)) - 1 / len(of)
        noise = np.cov(draws[:, of] @ centre, rowvar=False)
        signal = noise * SPREAD**2 * (len(of) - 1) / np.trace(noise)  # as the noise, with SPREAD's mean variance
        kept = signal @ np.linalg.pinv(signal + noise)
        share = np.trace(kept) / (len(of) - 1)
        assert kept == pytest.approx(share * centre, abs=1e-6), "one factor for all differences"
        middle = draws[:, level].mean(1)
        for k in alike:
            seen = values[k] - np.mean([values[one] for one in level])
            prior = arms[k].expected - np.mean([arms[one].expected for one in level])
            likely[:, k] = middle + prior + share * (seen - prior) + (draws[:, k] - middle - seen) * share**0.5
        away = likely[:, of] @ centre
        assert np.cov(away, rowvar=False) == pytest.approx(kept @ noise, abs=1e-6), "its covariance is known"
    return likely


def ends_of(draws, values, taken, arms) -> list[tuple]:
    """Return the ends of the interval of each difference to what is taken, by the largest |t| of each draw."""
    others = [k for k in range(len(arms)) if k != taken]
    away = {k: [row[k] - row[taken] - (values[k] - values[taken]) for row in draws] for k in others}
    errors = {k: np.std([row[k] - row[taken] for row in draws]) for k in others}
    reach = np.quantile([max(abs(away[k][d]) / errors[k] for k in others) for d in range(DRAWS)], 0.95)
    middle = [values[k] - values[taken] for k in range(len(arms))]
    return [(middle[k] - reach * errors.get(k, 0), middle[k] + reach * errors.get(k, 0)) for k in range(len(arms))]


def assert_is_expected(arms: list[Arm], within: float = 0.0, weight: float = 0.0) -> None:
    """Compare a decision with the formulas."""
    decision, said = decide(arms, within, weight), expected_of(arms, within, weight)
    assert decision.taken == said["taken"]
    made = {one.name: one for one in decision.arms}
    for k, one in enumerate(arms):
        mine = made[one.name]
        assert [mine.loss, mine.chance] == pytest.approx([said[name][k] for name in ("loss", "chance")], abs=1e-6)
        assert mine.listed == said["listed"][k]
        assert (mine.difference.low, mine.difference.high) == pytest.approx(said["ends"][k], abs=1e-6)
    assert [one.price for one in decision.arms] == sorted(one.price for one in arms)
    assert sum(one.chance for one in decision.arms) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_it_is_the_formulas_written_out(seed, seeds):
    rng = np.random.default_rng((seed, seeds))
    prices = rng.permutation([1.0, 2.0, 5.0, 9.0])
    arms = [
        arm(f"arm{k}", rng, level, seeds, price, expected=gain)
        for k, (level, price, gain) in enumerate(zip((80, 81, 78, 79), prices, (0, 5, 5, 0), strict=True))
    ]
    arms.append(arm("fit", rng, 79, 1, 0.5, converged=True))
    arms.append(arm("words", rng, 70, 1, 0.0, encoder=False, converged=True))
    for within, weight in ((0, 0), (1, 0), (3, 0), (0, 0.3)):
        assert_is_expected(arms, within, weight)


@pytest.mark.parametrize("seeds", [1, 3])
def test_cross_validated_arms_anchor_the_others(seeds):
    rng = np.random.default_rng(seeds)
    folds = [FoldScores(score, score + rng.normal(0, 2, DRAWS), 5 * ROWS) for score in (83.0, 81.0)]
    arms = [arm(f"probe{k}", rng, 80, 1, 1.0, converged=True, folds=one) for k, one in enumerate(folds)]
    arms += [arm("top", rng, 82, seeds, 4.0), arm("full", rng, 81, seeds, 9.0)]
    assert_is_expected(arms)
    by_name = {one.name: one for one in decide(arms).arms}
    shift = 83 - arms[0].scores.mean()
    assert by_name["probe0"].estimate == 83 and by_name["top"].estimate == pytest.approx(arms[2].scores.mean())
    away = by_name["top"].difference.value - by_name["probe0"].difference.value
    assert away == pytest.approx(arms[2].scores.mean() + shift - 83), "differences are on one scale"


def test_an_undefined_score_counts_as_nothing_and_on_a_draw_as_the_whole():
    rng = np.random.default_rng(4)
    arms = [arm("one", rng, 60), arm("other", rng, 58, price=2.0), arm("third", rng, 50, price=3.0)]
    arms[0].by_row[0, :30], arms[2].by_row[0, 7] = np.nan, np.nan
    assert_is_expected(arms)
    undefined = replace(arms[2], scores=np.array([np.nan]), by_row=np.full((1, DRAWS), np.nan))
    assert_is_expected([*arms[:2], undefined])
    assert decide([*arms[:2], undefined]).arms[-1].estimate == 0


def test_a_collapsed_arm_is_taken_only_where_all_are():
    rng = np.random.default_rng(5)
    arms = [arm("low", rng, 50), arm("high", rng, 90, price=2.0, flags=(COLLAPSED,)), arm("mid", rng, 60, price=3.0)]
    assert_is_expected(arms)
    assert decide(arms).taken == "mid" and decide(arms).arms[1].chance == 0
    every = [replace(one, flags=(COLLAPSED,)) for one in arms]
    assert_is_expected(every)
    assert decide(every).taken == "high"


def test_undertrained_arms_say_nothing_of_the_level_of_others():
    """Three of one's own with 3 updates are 35 points below a probe; the level of all would draw it below the words."""
    rng = np.random.default_rng(14)
    words = Arm("words", np.array([78.0]), 78 + rng.normal(0, 6, (1, DRAWS)), 60, 0.0, encoder=False)
    probe = Arm("probe", np.array([85.0]), 85 + rng.normal(0, 6, (1, DRAWS)), 60, 1.0)
    own = [
        Arm(f"own{k}", np.array([50.0]), 50 + rng.normal(0, 6, (1, DRAWS)), 60, 3.0, flags=(UNDERTRAINED,))
        for k in range(3)
    ]
    alone, among = decide([words, probe]), decide([words, probe, *own])
    assert alone.taken == among.taken == "probe" and {one.loss > 10 for one in among.arms if one.flags} == {True}
    unflagged = decide([words, probe, *(replace(one, flags=()) for one in own)])
    assert unflagged.taken == "words", "what trained enough tells the level"
    every = [words, *(replace(one, flags=(UNDERTRAINED,)) for one in (probe, *own))]
    assert decide(every).taken == unflagged.taken, "all of them tell it where none trained enough"
    other = [arm(f"other{k}", rng, level, flags=(UNDERTRAINED,)) for k, level in enumerate((50, 70, 76))]
    assert_is_expected([arm("words", rng, 78, encoder=False), arm("probe", rng, 85), *other])
    shared = rng.normal(0, 6, (1, DRAWS))
    both = [
        Arm(name, np.array([score]), score + shared + rng.normal(0, 1, (1, DRAWS)), 60, price, expected=gain)
        for name, score, price, gain in (("probe", 85.0, 1.0, 0.0), ("full", 83.0, 9.0, 5.0))
    ]
    assert decide(both).taken == decide([*both, *own]).taken == "probe", "nor of the noise that others have"
    tried = decide([arm("probe", rng, 70), arm("layers", rng, 69)])
    more = replace(tried, arms=(*tried.arms, replace(tried.arms[0], name="own", loss=40.0, flags=(UNDERTRAINED,))))
    assert gain_of_unseen(more, 6.0, "") == gain_of_unseen(tried, 6.0, "")


def test_arms_that_are_alike_share_the_chance_and_the_cheapest_is_taken():
    """So it is where validation has one class, which all predict."""
    same = [
        Arm(name, np.array([100.0]), np.full((1, DRAWS), 100.0), ROWS, price)
        for name, price in zip("abc", (3, 1, 2), strict=True)
    ]
    decision = decide(same)
    assert decision.taken == "b" and [one.chance for one in decision.arms] == pytest.approx([1 / 3] * 3)
    assert all(one.loss == pytest.approx(0, abs=1e-9) for one in decision.arms) and decision.price_list == []
    unseen = 100 * (1 - 0.05 ** (1 / ROWS))
    assert decision.resolution == pytest.approx(unseen), "rows that were not seen may differ by so much"


def test_one_arm_is_the_answer():
    decision = decide([arm("only", np.random.default_rng(6), 70)])
    (only,) = decision.arms
    assert (decision.taken, only.loss, only.chance, decision.resolution) == ("only", 0, 1, 0)
    assert decision.promising is None


def test_what_cannot_be_compared_is_refused_in_a_sentence():
    one = arm("one", np.random.default_rng(7), 70, 3)
    with pytest.raises(UserError, match="nothing to decide between"):
        decide([])
    with pytest.raises(UserError, match="other has 9 rows of validation and one 50; run both on one subset"):
        decide([one, replace(one, name="other", rows=9)])
    with pytest.raises(UserError, match="two has 2 seeds and others 3; name the same seeds for all"):
        decide([one, arm("two", np.random.default_rng(8), 70, 2)])


def test_few_rows_make_losses_large_and_what_is_expected_decides():
    """On rows that say nothing the prior is all there is; on many rows it hardly counts."""
    rng = np.random.default_rng(9)
    flat = [arm(name, rng, 70, price=price, expected=gain) for name, price, gain in (("probe", 1, 0), ("full", 9, 6))]
    vague = [replace(one, by_row=one.scores[:, None] + rng.normal(0, 60, (1, DRAWS))) for one in flat]
    sharp = [replace(one, by_row=one.scores[:, None] + rng.normal(0, 0.1, (1, DRAWS))) for one in flat]
    ahead = [replace(sharp[0], scores=sharp[1].scores + 3, by_row=sharp[1].by_row + 3), sharp[1]]
    assert decide(vague).taken == "full" and decide(vague).arms[0].loss == pytest.approx(7, abs=2)
    assert decide(ahead).taken == "probe" and decide(ahead).arms[1].loss == pytest.approx(3, abs=0.5)


def test_training_layers_is_expected_to_gain_where_that_was_measured():
    words = GAINS["minilm"]["words"]
    assert expected("minilm", "spans", "full", True) == words["full"] > words["lora"] > 0
    assert expected("minilm", "tagging", "mine", True) == pytest.approx(sum(words.values()) / 3)
    assert expected("minilm", "pair_regression", "top_k_separate k02", True) < 0
    unknown = [
        ("minilm", "spans", "full", False),
        ("minilm", "multi_label", "full", True),
        ("bert", "spans", "full", True),
    ]
    assert [expected(*one) for one in unknown] == [0, 0, 0]
    assert [is_measured(*one[:2]) for one in unknown] == [True, False, False]


@pytest.mark.parametrize("trained", [(), (6.0,), (6.0, 5.0)])
def test_what_was_not_tried_may_gain_what_a_run_shows_of_what_it_is_above_the_best(trained):
    """Drawn a million times: the level that others tell, a strategy about it, its score, and what that lets expect."""
    rng = np.random.default_rng(11)
    arms = [arm("probe", rng, 70), arm("layers", rng, 69)]
    arms += [arm(f"top{k}", rng, 72 + k, price=2.0, expected=gain) for k, gain in enumerate(trained)]
    decision = decide(arms)
    assert decision.noise == pytest.approx(noise_of(arms))
    levels = [-one.loss - one.expected for one in decision.arms if one.expected or not trained]
    spread, most = SPREAD_OF_TRAINED if trained else SPREAD, max(-one.loss for one in decision.arms)
    mean = sum(levels) / len(levels) + 4.0 - most
    away = spread * (rng.standard_normal(10**6) + rng.standard_normal(10**6) / len(levels) ** 0.5)
    score = away + decision.noise**0.5 * rng.standard_normal(10**6)
    shown = np.cov(away, score)[0, 1] / score.var() * score
    assert gain_of_unseen(decision, 4.0, "") == pytest.approx((mean + shown).clip(min=0).mean(), abs=0.05)


def test_another_way_to_read_pairs_may_gain_more_than_the_one_that_was_tried():
    rng = np.random.default_rng(13)
    tried = arm("alone", rng, 66, price=2.0, expected=6.0, pairs="separate")
    decision = decide([arm("probe", rng, 70), arm("layers", rng, 69), tried])
    assert gain_of_unseen(decision, 6.0, "joint") > 1 > gain_of_unseen(decision, 6.0, "separate")


def noise_of(arms) -> float:
    """Return the mean over arms of the variance of their draws, which all have one level taken off."""
    draws = draws_of(arms, placed(arms), SPREAD).draws
    return sum(np.var(draws[:, k] - draws.mean(1), ddof=1) for k in range(len(arms))) / (len(arms) - 1)


def test_what_was_not_tried_may_gain_nothing_where_something_else_is_far_above_all_that_is_like_it():
    rng = np.random.default_rng(12)
    words = arm("words", rng, 95, price=0.0, encoder=False)
    probes = [arm("probe", rng, 60), arm("layers", rng, 61)]
    assert gain_of_unseen(decide(probes), 6.0, "") > LEAST_GAIN > gain_of_unseen(decide([words, *probes]), 6.0, "")
    fallen = [replace(one, flags=(COLLAPSED,)) for one in probes]
    assert gain_of_unseen(decide([words, *fallen]), 6.0, "") == np.inf, "nothing sound tells the level"
    highest = replace(decide(probes), arms=tuple(replace(one, estimate=100.0) for one in decide(probes).arms))
    assert gain_of_unseen(highest, 6.0, "") == 0, "no score is above it"
    assert (has_to_gain(0.0, 50.0), has_to_gain(0.01, 50.0)) == (LEAST_GAIN, 0.5)
