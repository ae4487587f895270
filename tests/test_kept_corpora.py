"""What was prepared of a corpus is kept until it is prepared again."""

import shutil

import pytest

from thaw.cli import workflow_events


@pytest.fixture
def corpus(tmp_path):
    """The folder of a prepared corpus."""
    folder = tmp_path / "data/mine"
    folder.mkdir(parents=True)
    (folder / "card.json").write_text("old")
    (folder / "train.parquet").write_text("rows")
    return folder


def test_after_a_failure_it_is_there_as_before(tmp_path, corpus):
    workflow_events.set_aside([corpus, tmp_path / "data/new"])
    shutil.rmtree(corpus)  # as Snakemake does
    corpus.mkdir()
    (corpus / "train.parquet").write_text("half")
    workflow_events.put_back(tmp_path)
    assert {path.name: path.read_text() for path in corpus.iterdir()} == {"card.json": "old", "train.parquet": "rows"}
    assert [path.name for path in corpus.parent.iterdir()] == ["mine"]


def test_after_success_the_new_one_is_there_alone(tmp_path, corpus):
    workflow_events.set_aside([corpus])
    shutil.rmtree(corpus)
    corpus.mkdir()
    (corpus / "card.json").write_text("new")
    workflow_events.put_back(tmp_path)
    assert {path.name: path.read_text() for path in corpus.iterdir()} == {"card.json": "new"}
    assert [path.name for path in corpus.parent.iterdir()] == ["mine"]


def test_a_disk_without_links_gets_copies(tmp_path, corpus, monkeypatch):
    def no_link(source, target):
        raise OSError("no links here")

    monkeypatch.setattr("os.link", no_link)
    workflow_events.set_aside([corpus])
    shutil.rmtree(corpus)
    workflow_events.put_back(tmp_path)
    assert (corpus / "card.json").read_text() == "old"
