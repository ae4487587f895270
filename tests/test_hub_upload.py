"""An export is uploaded by huggingface_hub's own calls, to a server on this machine that answers as the Hub does."""

import http.server
import json
import threading
from base64 import b64decode
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import ModelCard

from thaw.core.errors import UserError
from thaw.exporting.export import push
from thaw.exporting.model_card import Stated, metadata

COMMIT = "0" * 40
FORM = "sequence_classification"


class Hub(http.server.BaseHTTPRequestHandler):
    """A server that makes a repository and takes commits."""

    taken: list[tuple[str, bytes]]

    def do_POST(self):  # noqa: N802
        """Answer one call of the API and keep what it brought."""
        body = self._body()
        self.taken.append((self.path, body))
        address = f"http://127.0.0.1:{self.server.server_port}/me/mine"
        if self.path == "/api/repos/create":
            return self._send(403 if b"denied" in body else 200, {"url": address, "error": "no right to write"})
        if self.path.endswith("/preupload/main"):
            files = [entry["path"] for entry in json.loads(body)["files"]]
            modes = {"uploadMode": "regular", "shouldIgnore": False}
            return self._send(200, {"files": [{"path": path, **modes} for path in files]})
        if self.path == "/api/validate-yaml":
            return self._send(200, {"errors": [], "warnings": []})
        return self._send(200, {"success": True, "commitOid": COMMIT, "commitUrl": f"{address}/commit/{COMMIT}"})

    def log_message(self, *arguments):
        """Keep quiet."""

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send(self, status: int, answer: dict) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def hub(monkeypatch):
    """Give the address of a running server."""
    monkeypatch.setenv("HF_TOKEN", "a token")
    Hub.taken = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "README.md").write_text(
        metadata(run(), FORM, "org/encoder", Stated("mit", ("en",))) + "\n\n# A model\n"
    )
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    return tmp_path


def run(**card):
    """Return what a card reads of a run on a data set of the Hub."""
    source = {"kind": "hub", "id": "org/data", "config": "small", "revision": "abc"} | card
    task = {"id": "topics", "metrics": ["f1_micro", "f1_macro"], "test": ["test"], "target": "labels"}
    scores = {"validation": {"f1_micro": 0.9, "f1_macro": 0.8}, "test": {"f1_micro": 0.75, "f1_macro": None}}
    corpus = SimpleNamespace(card={"corpus": "topics", "source": source})
    return SimpleNamespace(
        task=task, corpus=corpus, target="label_set", encoder=Path("minilm"), metrics={"scores": scores}
    )


def test_the_folder_is_one_commit(hub, folder):
    assert push(folder, "me/mine", True, hub) == f"{hub}/me/mine"
    made = next(json.loads(body) for path, body in Hub.taken if path == "/api/repos/create")
    assert made.get("private") is True or made.get("visibility") == "private"
    commit = next(body for path, body in Hub.taken if "/commit/main" in path)
    files = [line["value"] for line in map(json.loads, commit.splitlines()) if line["key"] == "file"]
    assert {file["path"]: b64decode(file["content"]) for file in files} == {
        name: (folder / name).read_bytes() for name in ("README.md", "model.safetensors")
    }


def test_what_the_hub_refuses_is_one_sentence(hub, folder):
    with pytest.raises(UserError, match=r"--push me/denied: .* is written, but not uploaded .*; set HF_TOKEN"):
        push(folder, "me/denied", False, hub)
    with pytest.raises(UserError, match="expected owner/name"):
        push(folder, "me/mine/more", False, hub)


def test_the_hub_reads_the_card(folder):
    data = ModelCard.load(folder / "README.md").data
    assert (data.license, data.language, data.base_model, data.datasets) == ("mit", ["en"], "org/encoder", ["org/data"])
    (result,) = data.eval_results  # a score that is not defined is left out
    assert (result.metric_type, result.metric_value, result.dataset_split) == ("f1", 0.75, "test")
    assert (result.dataset_type, result.dataset_config, result.task_type) == (
        "org/data",
        "small",
        "text-classification",
    )


def test_what_nobody_states_is_left_out():
    text = metadata(run(kind="files"), FORM, None, Stated())
    assert not any(word in text for word in ("license", "language:", "base_model", "datasets"))
