"""The plan of what is read more than one way: pairs of texts, baselines that are runs, transfer sets."""

from plans import plan_of

PAIRS = {"tasks": ["paraphrase", "acceptability"], "seeds": [1], "outputs": ["main_table"]}


def job(plan, **wanted):
    """Return the job of the one run that has these attributes."""
    (run,) = [r for r in plan.runs if all(getattr(r, name) == value for name, value in wanted.items())]
    return plan.job(run.step, run.key)


def test_a_frozen_run_on_pairs_reads_both_views_and_others_their_own():
    plan = plan_of(strategies=["linear_probe"], baselines=[], **PAIRS)
    stores = [f"minilm/paraphrase/{view}" for view in ("joint", "separate")]
    pair = job(plan, task="paraphrase")
    assert pair.spec["features"] == [plan.job("features", key).digest for key in stores]
    assert pair.inputs["tokens"] == [f"results/features/{key}/tokens.json" for key in stores]
    single = job(plan, task="acceptability")
    assert single.spec["features"] == plan.job("features", "minilm/acceptability/joint").digest
    assert "minilm/acceptability/separate" not in plan.jobs["features"]


def test_a_strategy_for_pairs_is_run_on_pairs_alone():
    plan = plan_of(strategies=["linear_probe_joint", "frozen_separate", "full_separate", "full"], **PAIRS)
    of = {name: {r.task for r in plan.runs if r.strategy == name} for name in ("full", "full_separate")}
    assert of == {"full": {"paraphrase", "acceptability"}, "full_separate": {"paraphrase"}}
    rows = [entry["row"] for entry in plan.job("collect", "demo").spec["results"] if entry["row"]["kind"] == "run"]
    assert {name: {row["task"] for row in rows if row["strategy"] == name} for name in of} == of


def test_baselines_that_need_an_encoder_are_runs_of_their_own():
    plan = plan_of(strategies=["full"], baselines=["majority", "cosine", "random_encoder"], **PAIRS)
    shown = [(r.task, r.encoder, r.head, r.strategy) for r in plan.runs if r.strategy != "full"]
    assert shown == [
        ("paraphrase", "minilm", "cosine", "frozen_separate"),
        ("paraphrase", "minilm_random", "linear", "linear_probe"),
        ("acceptability", "minilm_random", "linear", "linear_probe"),
    ]
    assert plan.job("fetch", "minilm_random").spec["entry"]["weights"] == "random"
    assert set(plan.jobs["baseline"]) == {"paraphrase/all/majority", "acceptability/all/majority"}
    rows = [entry["row"] for entry in plan.job("collect", "demo").spec["results"] if "stores" in entry]
    assert list(dict.fromkeys((row["strategy"], row["encoder"], row["head"], row["task"]) for row in rows)) == [
        ("cosine", "minilm", "", "paraphrase"),
        ("random_encoder", "minilm", "", "paraphrase"),
        ("random_encoder", "minilm", "", "acceptability"),
        ("full", "minilm", "linear", "paraphrase"),
        ("full", "minilm", "linear", "acceptability"),
    ]


def test_transfer_sets_are_planned_and_asked_for(tmp_path):
    entries = (
        "corpora: {other: {texts: [sentence], targets: {label: label}, synthetic: acceptability}}\n"
        "tasks:\n  other: {corpus: other, target: label, type: classification, metrics: [accuracy]}\n"
        "  more: {base: acceptability, transfer_sets: [{task: other}]}\n"
    )
    (tmp_path / "tasks.yaml").write_text(entries)
    changes = {"tasks": ["more"], "catalogues": [str(tmp_path)], "seeds": [1]}
    plan = plan_of(strategies=[{"top_k": [2]}, "full"], **changes)
    top, full = job(plan, strategy="top_k"), job(plan, strategy="full")
    (entry,) = top.spec["also"]
    assert entry["task"]["id"] == "other" and entry["data"] == plan.job("prepare", "other").digest
    assert top.inputs["also_boundaries"] == ["results/features/minilm/other/joint/b4.json"]
    assert full.inputs["also_boundaries"] == [] and full.inputs["also_tokens"] == top.inputs["also_tokens"]
    assert "also" not in top.spec["task"] and "also" not in plan.job("baseline", "more/all/majority").spec["task"]
