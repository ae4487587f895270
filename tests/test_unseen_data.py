"""The files of config/experiments/unseen.yaml, from made files in the published forms."""

import pandas as pd

import unseen_data


def test_files_by_class_become_one_and_repeated_phrases_go(tmp_path):
    source, target = tmp_path / "published", tmp_path / "made"
    of_class = {"objective": "one\r\n\r\ncaf\xe9\r\n", "positive": "a\nb\na\n", "negative": "b\nc, d\n \n"}
    for encoding, files in unseen_data.BY_CLASS.values():
        for name, file in files.items():
            (source / file).parent.mkdir(parents=True, exist_ok=True)
            (source / file).write_text(of_class.get(name, "two\n"), encoding, newline="")
    for file in unseen_data.COPIED:
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        (source / file).write_text("one\tWorld\ntwo\tSports\n" * 5 if file.startswith("ag_news") else f"{file}\n")
    unseen_data.main(source, target)
    rows = {name: pd.read_csv(target / name).to_numpy().tolist() for name in unseen_data.BY_CLASS}
    assert rows["subj.csv"] == [["one", "objective"], ["caf\xe9", "objective"], ["two", "subjective"]]
    assert rows["cr.csv"] == [[text, "positive"] for text in "aba"] + [["b", "negative"], ["c, d", "negative"]]
    assert rows["mpqa.csv"] == [["a", "positive"], ["c, d", "negative"]]
    assert all((target / file).read_text() == (source / file).read_text() for file in unseen_data.COPIED)
    assert [len(pd.read_csv(target / f"noise/ag_news/{name}.csv")) for name in ("train", "noisy", "test")] == [8, 8, 2]


def test_a_share_of_labels_is_another_class_and_no_text_is_in_two_parts(tmp_path):
    frame = pd.DataFrame({"text": [f"t{n}" for n in range(1000)], "label": ["a", "b", "c", "d"] * 250})
    unseen_data.write_noise(frame, tmp_path)
    train, noisy, test = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("train", "noisy", "test"))
    assert list(train["text"]) == list(noisy["text"]) and set(train["text"]).isdisjoint(test["text"])
    kept = pd.concat([train, test]).sort_values("text").to_numpy().tolist()
    assert kept == frame.sort_values("text").to_numpy().tolist()
    assert (train["label"] != noisy["label"]).sum() == 160, "a fifth of 800"
    wrong = noisy[train["label"] != noisy["label"]]
    assert wrong["label"].value_counts().between(20, 60).all()
