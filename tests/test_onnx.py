"""ONNX graphs of runs, read by ONNX Runtime; what is said without it."""

import sys

import pytest

from test_export import FULL, House
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.exporting.export import export, export_summary
from thaw.exporting.onnx_graph import require_onnx


@pytest.fixture(scope="module")
def extra():
    """Skip where the extra is not installed; named first, before anything is made."""
    pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
    pytest.importorskip("onnx", reason="the extra `onnx` is not installed")


CASES = [("bert", "spans", {}), ("distilbert", "classification", {"pooling": "mean"}), ("modernbert", "regression", {})]
CASES += [("gpt2", "pair_classification", {"pooling": "last"})]


@pytest.mark.parametrize("family, kind, head", CASES)
def test_a_run_is_exported_as_onnx(extra, tmp_path, family, kind, head):
    run = House(tmp_path / "house", family, kind).run("full", FULL, keep=True, head=head)
    report = export(run, tmp_path / "out", onnx=True)
    assert (tmp_path / "out/model.onnx").is_file() and report == read_json(tmp_path / "out/check.json")
    assert report["onnx"]["largest_difference"] < 1e-5 and report["onnx"]["changed"] == 0
    assert "model.onnx: largest difference" in export_summary(report)


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UserError, match=r"pip install onnx onnxruntime"):
        require_onnx()
