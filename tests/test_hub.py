"""Fetch by Hub id, against a server on this machine that answers as the Hub does."""

import hashlib
import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path

import torch
from safetensors.torch import load_file

from thaw.core.digests import canonical
from thaw.core.files import read_json
from tiny import tiny_encoder

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(http.server.BaseHTTPRequestHandler):
    """A server that answers as the Hub does, for one model."""

    folder: Path

    def do_GET(self):  # noqa: N802
        """Answer with a listing or a file."""
        self._answer(self.command == "GET")

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *arguments):
        """Keep quiet."""

    def _answer(self, body: bool) -> None:
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/us/tiny"):
            files = [self._entry(file) for file in sorted(self.folder.iterdir())]
            answer = files if "/tree/" in path else {"id": "us/tiny", "sha": COMMIT, "siblings": files}
            return self._send(200, json.dumps(answer).encode(), body)
        file = self.folder / Path(path).name
        if not path.startswith(f"/us/tiny/resolve/{COMMIT}/") or not file.is_file():
            return self._send(404, b"", body, X_Error_Code="RepoNotFound")
        return self._send(200, file.read_bytes(), body, X_Repo_Commit=COMMIT, ETag=f'"{_name(file)}"')

    def _entry(self, file: Path) -> dict:
        names = {"path": file.name, "rfilename": file.name}
        return {"type": "file", **names, "size": file.stat().st_size, "oid": _name(file)}

    def _send(self, status: int, content: bytes, body: bool, **headers) -> None:
        self.send_response(status)
        for name, value in {"Content_Type": "application/json", "Content_Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if body:
            self.wfile.write(content)


def _name(path: Path) -> str:
    """Return a file's checksum, as the Hub names its files."""
    return hashlib.sha1(path.read_bytes()).hexdigest()


def test_hub(tmp_path, home):
    """By id: the commit is resolved and recorded, a .bin is taken where there is no safetensors, errors are clear."""
    model = tiny_encoder("bert", tmp_path / "model")
    tensors = load_file(model / "model.safetensors")
    torch.save(tensors, model / "pytorch_model.bin")
    (model / "model.safetensors").unlink()
    handler = type("Handler", (Hub,), {"folder": model})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def download(name: str, address: str):
        entry = {"hub": name, "layers": 3, "width": 32, "cased": False, "objective": "none", "pretraining": ["none"]}
        spec = {"version": 1, "encoder": "tiny", "entry": entry}
        command = [sys.executable, "-m", "thaw.steps.fetch", "--spec", canonical(spec), "--out", tmp_path / "out"]
        environment = {"PYTHONPATH": str(home / "scripts"), "HF_HOME": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"}
        environment |= {"HF_ENDPOINT": address, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)

    try:
        address = f"http://127.0.0.1:{server.server_port}"
        done = download("us/tiny", address)
        assert done.returncode == 0, done.stderr
        card = read_json(tmp_path / "out" / "card.json")
        assert card["source"] == "hub us/tiny" and card["revision"] == COMMIT
        converted = load_file(tmp_path / "out" / "model.safetensors")
        assert all(torch.equal(converted[name], tensors[name]) for name in tensors)
        done = download("us/other", address)
        assert done.returncode == 1 and "error: us/other could not be downloaded from the Hub" in done.stderr
        assert "Traceback" not in done.stderr
    finally:
        server.shutdown()
