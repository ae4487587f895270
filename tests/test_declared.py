"""Nothing runs again for want of a file that an older version did not declare, or that no job names."""

import pytest

from workflow import Workplace

CARD = "results/data/things/card.json"


@pytest.fixture
def place(tmp_path) -> Workplace:
    """A user's folder; the encoder is a folder with a file in it, which no job here loads."""
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder/config.json").write_text("{}")
    return Workplace(tmp_path, tmp_path / "encoder")


def test_a_result_of_an_older_version_is_finished_and_a_changed_setting_still_makes_it_again(place):
    """Its folder was not declared: Snakemake has no record of it. Nor is a file missed that no job names."""
    place.snakemake("--cores", "1", CARD)
    place.checked("--cleanup-metadata", "results/data/things")
    (place.folder / "results/data/things/test.parquet").unlink()
    assert "Nothing to be done" in place.checked("--dry-run", "--cores", "1", CARD)
    content = place.files["my/tasks.yaml"]
    content["corpora"]["things"]["files"]["quoting"] = "none"
    place.write("my/tasks.yaml", content)
    assert "params have changed since last execution" in place.checked("--dry-run", "--cores", "1", CARD).lower()
