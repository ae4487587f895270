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
        (source / file).write_text(f"{file}\n")
    unseen_data.main(source, target)
    rows = {name: pd.read_csv(target / name).to_numpy().tolist() for name in unseen_data.BY_CLASS}
    assert rows["subj.csv"] == [["one", "objective"], ["caf\xe9", "objective"], ["two", "subjective"]]
    assert rows["cr.csv"] == [[text, "positive"] for text in "aba"] + [["b", "negative"], ["c, d", "negative"]]
    assert rows["mpqa.csv"] == [["a", "positive"], ["c, d", "negative"]]
    assert all((target / file).read_text() == f"{file}\n" for file in unseen_data.COPIED)
