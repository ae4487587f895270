"""The curves of a run as TensorBoard reads them."""

import pytest

from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.exporting.tensorboard_log import scalars, write_events

TRAINED = """phase,epoch,step,loss,rate,validation_accuracy
1,1,1,0.7,0.1,
1,1,2,0.6,0.05,0.5
2,1,1,0.5,0.01,0.75
"""
FITTED = "phase,l2,step,loss,validation_accuracy\n1,0.001,20,0.25,0.5\n1,0.1,9,0.5,0.75\n"
EXPECTED = [
    *[(1, "loss", 0.7), (1, "rate", 0.1), (2, "loss", 0.6), (2, "rate", 0.05), (2, "validation/accuracy", 0.5)],
    *[(3, "loss", 0.5), (3, "rate", 0.01), (3, "validation/accuracy", 0.75)],
]


@pytest.fixture
def runs(tmp_path):
    for name, content in (("full/seed1", TRAINED), ("frozen/seed1", FITTED)):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "history.csv").write_text(content)
    write_json(tmp_path / "runs/full/seed1/cost.json", {"date": "2026-01-02T03:04:05+00:00"})
    return tmp_path / "runs"


def test_updates_are_counted_through_all_phases(runs):
    assert scalars(runs / "full/seed1/history.csv") == EXPECTED


def test_a_fit_has_its_candidates_in_the_place_of_updates(runs):
    found = scalars(runs / "frozen/seed1/history.csv")
    assert [(step, value) for step, name, value in found if name == "l2"] == [(1, 0.001), (2, 0.1)]


def test_tensorboard_reads_them(runs, tmp_path):
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    assert len(write_events(runs, tmp_path / "logs")) == 2
    (file,) = (tmp_path / "logs/full/seed1").iterdir()
    events = [event for event in EventFileLoader(str(file)).Load() if event.summary.value]
    read = [(e.step, e.summary.value[0].tag, e.summary.value[0].tensor.float_val[0]) for e in events]
    assert read == [(step, name, pytest.approx(value)) for step, name, value in EXPECTED]
    with pytest.raises(UserError, match="is there already"):
        write_events(runs, tmp_path / "logs")
    with pytest.raises(UserError, match="no history.csv is below it"):
        write_events(tmp_path / "logs", tmp_path / "more")


def test_without_the_package_it_says_what_to_install(runs, tmp_path):
    try:
        import tensorboard  # noqa: F401

        pytest.skip("the extra tensorboard is installed")
    except ImportError:
        with pytest.raises(UserError, match="pip install tensorboard"):
            write_events(runs, tmp_path / "logs")
