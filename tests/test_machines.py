"""Bad machines: each ends its own job with one clear sentence, leaves what was finished, and a rerun repairs it."""

import copy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from conftest import HOME
from thaw.core.digests import canonical
from thaw.core.files import read_json
from thaw.core.runtime import explain_error, run_step
from thaw.data.corpus import Corpus
from tiny_corpus import Bench, run_in_process, tiny_corpus

HEAD = {"train": ["head"], "epochs": 1}
TOP = {"train": ["head", {"top": "k"}], "epochs": 1}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machines")
    return Bench(folder, "bert", tiny_corpus(folder / "data", "classification"), "classification")


@pytest.fixture
def bench(made, tmp_path):
    """A bench whose files a test may harm."""
    found = copy.copy(made)
    found.encoder = Path(shutil.copytree(made.encoder, tmp_path / "encoder"))
    found.features = Path(shutil.copytree(made.features, tmp_path / "features"))
    found.corpus = Corpus(shutil.copytree(made.corpus.folder, tmp_path / "corpus"))
    return found


def told(step: str, *arguments) -> str:
    """Run a step that must fail, as the rule does, and return the one line that it prints."""
    with pytest.raises(SystemExit) as ended:
        run_step(lambda: run_in_process(step, *arguments))
    assert isinstance(ended.value.code, str) and "\n" not in ended.value.code, "a text is printed, and the code is 1"
    return ended.value.code


def arguments(bench: Bench, spec: dict, out: Path) -> list:
    """Return the command line of a run."""
    folders = ["--data", bench.corpus.folder, "--encoder", bench.encoder, "--features", bench.features]
    return ["--spec", canonical(spec), *folders, "--out", out]


def features(bench: Bench, out: Path) -> list:
    """Return the command line that extracts a bench's features into another folder."""
    spec = {"version": 1, "view": {"max_length": 64}, "dtype": "fp32", "compute": {"threads": 1}}
    spec |= {"data": bench.corpus.card["digest"], "encoder": read_json(bench.encoder / "card.json")["digest"]}
    folders = ["--data", bench.corpus.folder, "--encoder", bench.encoder, "--out", out]
    return ["--spec", canonical(spec), "--boundaries", 2, 3, *folders]


def flip(path: Path, place: float = 0.6) -> None:
    """Turn one bit of a file."""
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)


# --- damaged files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("harm", ["cut short", "one bit"])
def test_a_damaged_payload_is_told_and_made_again(harm, bench, tmp_path):
    spec, payload = bench.spec(TOP), bench.features / "b2.safetensors"
    whole = bench.step("train", spec, tmp_path / "whole")
    flip(payload) if harm == "one bit" else payload.write_bytes(payload.read_bytes()[:999])
    line = told("train", *arguments(bench, spec, tmp_path / "run"))
    assert "b2.safetensors is not the file that its card describes" in line and not (tmp_path / "run").exists()
    bench.step("train", spec, tmp_path / "run")
    assert (tmp_path / "run/metrics.json").read_bytes() == (whole / "metrics.json").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["cut short", "one bit", "missing"])
def test_damaged_token_ids_are_told_and_made_again(harm, bench, tmp_path):
    spec, tokens = bench.spec(TOP), bench.features / "tokens.parquet"
    whole = bench.step("train", spec, tmp_path / "whole")
    if harm == "missing":
        tokens.unlink()
    else:
        flip(tokens) if harm == "one bit" else tokens.write_bytes(tokens.read_bytes()[:999])
    line = told("train", *arguments(bench, spec, tmp_path / "run"))
    assert "tokens.parquet is missing or not the file that its card describes" in line
    assert not (bench.features / "tokens.json").exists(), "so that the workflow makes the store again"
    run_in_process("features", *features(bench, bench.features))
    bench.step("train", spec, tmp_path / "run")
    assert (tmp_path / "run/metrics.json").read_bytes() == (whole / "metrics.json").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("file", ["corpus/validation.parquet", "encoder/model.safetensors"])
def test_other_files_cut_short_are_named(file, bench, tmp_path):
    path = tmp_path / file
    path.write_bytes(path.read_bytes()[:500])
    line = told("train", *arguments(bench, bench.spec({"train": ["all"], "epochs": 1}), tmp_path / "run"))
    assert str(path if "corpus" in file else path.parent) in line and not (tmp_path / "run/metrics.json").exists()


# --- libraries, memory, GPU -------------------------------------------------------------------------------------------


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("safetensors", "pandas", "pyarrow")]


@pytest.mark.parametrize("library", ["torch", *SLOW])
def test_a_missing_library_is_named(library, bench, tmp_path):
    hidden = f"import sys, runpy; sys.modules[{library!r}] = None; sys.argv[0] = 'train'; import thaw.steps; "
    code = hidden + "runpy.run_module('thaw.steps.train', run_name='__main__')"
    command = [sys.executable, "-c", code, *map(str, arguments(bench, bench.spec(HEAD), tmp_path / "run"))]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(HOME / "scripts")})
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert last.startswith("error: ") and library in last and "pip install -r requirements.txt" in last


@pytest.mark.parametrize("allocate", [lambda: torch.empty(2**50), lambda: np.empty(2**55)], ids=["torch", "numpy"])
def test_memory_that_is_not_enough_names_the_settings(allocate):
    with pytest.raises(SystemExit) as ended:
        run_step(allocate)
    assert "out of memory" in ended.value.code
    assert "batch_size" in ended.value.code and "max_length" in ended.value.code and "mem_mb" in ended.value.code


GPU = {
    "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.1 GiB": "GPU out of memory",
    "CUDA error: unspecified launch failure\nCUDA kernel errors might be reported later": "the GPU failed",
    "CUDA error: no CUDA-capable device is detected": "the GPU failed",
    "CUDA driver error: invalid device ordinal": "the GPU failed",
    "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR": "the GPU failed",
}


def test_a_gpu_that_gives_way_in_training(bench, tmp_path, monkeypatch):
    from thaw.training.phase_loop import PhaseTraining

    text = next(iter(GPU))

    def lost(*_):
        raise RuntimeError(text)

    spec = bench.spec(HEAD)
    with monkeypatch.context() as patched:
        patched.setattr(PhaseTraining, "_update", lost)
        line = told("train", *arguments(bench, spec, tmp_path / "run"))
    assert GPU[text] in line and text in line and not (tmp_path / "run/metrics.json").exists()
    bench.step("train", spec, tmp_path / "run")


def test_what_cuda_says_is_of_its_memory_or_of_the_gpu():
    for text, said in GPU.items():
        line = explain_error(RuntimeError(text))
        assert said in line and text.splitlines()[0] in line and "\n" not in line


def test_our_own_mistakes_keep_their_traceback():
    for error in (KeyError("x"), ValueError("x"), RuntimeError("shapes do not match"), AttributeError("x")):
        assert explain_error(error) is None
