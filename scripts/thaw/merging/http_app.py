"""A small HTTP server for a merged folder, or for an export of one run: JSON in, JSON out.

GET /health, GET /tasks, POST /predict {"texts": [...], "tasks": [...], "probabilities": false}. Texts are not logged.
FastAPI and uvicorn are the optional extra `serve`.
"""

import contextlib
import json
import os
import socket
import sys
import threading
from pathlib import Path

from thaw.core.errors import UserError
from thaw.exporting.standalone_model import Model
from thaw.merging.merged_folder import FORM, branches_of, warnings_of
from thaw.merging.merged_model import MergedModel, check
from thaw.merging.request_limits import Limits

CUT = "cut-off"  # no id of a task, as it has a hyphen
CONNECTIONS = 1000  # open ones without a request, above which new ones are refused
MISSING = "thaw serve needs FastAPI and uvicorn; pip install fastapi uvicorn"


class SingleModel:
    """An export of one run, called as a merged folder is."""

    def __init__(self, folder: Path, about: dict):
        self._model, self._lock = Model(folder), threading.Lock()
        self.name = about["task"]["id"]
        size = {"reads": self._model.reads, "labels": self._model.labels}
        self.tasks = {self.name: size}

    def predict_with_probabilities(self, texts: list, tasks: list[str] | None = None) -> dict[str, list[dict]]:
        """Return the predictions of the one task. Raises ValueError as a merged model does."""
        check(texts, [self.name] if tasks is None else tasks, {self.name: self._model.reads})
        with self._lock:
            return {self.name: list(self._model.predict_with_probabilities(texts))}


def load(folder: Path) -> MergedModel | SingleModel:
    """Return the model of a folder; a folder that thaw merge or thaw export did not write is a UserError."""
    if not (folder / "thaw.json").is_file():
        raise UserError(f"{folder} has no thaw.json; name a folder that thaw merge or thaw export wrote")
    about = json.loads((folder / "thaw.json").read_text(encoding="utf-8"))
    return MergedModel(folder) if about["form"] == FORM else SingleModel(folder, about)


def warnings(folder: Path) -> list[str]:
    """Return what the runs of a folder are flagged for, a sentence each."""
    about = json.loads((folder / "thaw.json").read_text(encoding="utf-8"))
    return warnings_of(branches_of(folder) if about["form"] == FORM else {about["task"]["id"]: about})


def answer(model, request, limits: Limits) -> dict:
    """Return the predictions for a request's texts by task; a mistake in the request is a ValueError of one sentence.

    With "probabilities": true an entry is {"prediction", "probabilities"} and not the prediction alone. Where texts
    were cut, `CUT` has by task their positions, counted from 0, and how many tokens of each were read.
    """
    if not isinstance(request, dict) or not isinstance(request.get("texts"), list):
        raise ValueError('expected a JSON object with "texts", a list')
    if unknown := sorted(request.keys() - {"texts", "tasks", "probabilities"}):
        raise ValueError(f'there is no "{unknown[0]}"; a request has texts, tasks, probabilities')
    texts, tasks, full = request["texts"], request.get("tasks"), request.get("probabilities", False)
    if not texts or len(texts) > limits.texts:
        raise ValueError(f"{len(texts)} texts; a request has 1 to {limits.texts}")
    if tasks is not None and not (isinstance(tasks, list) and tasks and all(isinstance(one, str) for one in tasks)):
        raise ValueError('"tasks" is a list of names; leave it out for all')
    if not isinstance(full, bool):
        raise ValueError('"probabilities" is true or false')
    if max(map(_characters, texts)) > limits.characters:
        raise ValueError(f"a text has more than {limits.characters} characters; send a part of it")
    predictions = model.predict_with_probabilities(texts, tasks)
    cut = {task: _cut(some) for task, some in predictions.items() if any("cut" in one for one in some)}
    if not full:
        predictions = {task: [one["prediction"] for one in some] for task, some in predictions.items()}
    return predictions | ({CUT: cut} if cut else {})


def _cut(predictions: list[dict]) -> dict:
    """Return which of a task's texts were cut, and how many tokens of each were read."""
    places = [place for place, one in enumerate(predictions) if "cut" in one]
    return {"texts": places, "tokens": predictions[places[0]]["cut"]}


def parsed(body: bytes):
    """Return the JSON of a body; one that is not JSON in UTF-8, or has what UTF-8 cannot hold, is a ValueError."""
    try:
        request = json.loads(body.decode("utf-8-sig"))
        json.dumps(request, ensure_ascii=False).encode()  # an escape may be half of a pair; tokenizers fail on it
    except UnicodeDecodeError as error:
        raise ValueError("the body is not UTF-8") from error
    except UnicodeEncodeError as error:
        what = "half of a surrogate pair (\\ud800 to \\udfff), which is no character"
        raise ValueError(f"the body has {what}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"the body is not JSON ({error.msg})") from error
    return request


def app(model, limits: Limits, concurrent: int):
    """Return the FastAPI application of a model. Args: concurrent, requests at once; more get status 503."""
    try:
        from fastapi import FastAPI, Request
        from fastapi.concurrency import run_in_threadpool
        from fastapi.responses import JSONResponse
        from starlette.requests import ClientDisconnect
    except ImportError as error:
        raise UserError(MISSING) from error
    server = FastAPI(title="Thaw", docs_url=None, redoc_url=None, openapi_url=None)

    waiting = threading.Semaphore(concurrent)

    def refused(status: int, why: str, headers=None) -> JSONResponse:
        return JSONResponse({"error": why.encode(errors="backslashreplace").decode()}, status, headers)

    @server.exception_handler(404)
    @server.exception_handler(405)
    async def unknown(request: Request, error) -> JSONResponse:
        known = ", ".join(f"{method} {route.path}" for route in server.routes for method in route.methods)
        asked = f"{request.method} {request.url.path}"
        return refused(error.status_code, f"there is no {asked}; there are {known}", error.headers)

    @server.get("/health")
    def health() -> dict:
        return {"status": "ok", "tasks": sorted(model.tasks)}

    @server.get("/tasks")
    def tasks() -> dict:
        return model.tasks

    @server.post("/predict")
    async def predict(request: Request):
        if not waiting.acquire(blocking=False):
            return refused(503, f"more than {concurrent} requests at once; ask again later")
        try:
            return await answered(request)
        finally:
            waiting.release()

    async def answered(request: Request) -> JSONResponse:
        body = b""
        try:
            async for part in request.stream():  # counted as it comes: a length that is stated may be wrong
                body += part
                if len(body) > limits.body:
                    return refused(413, f"the body has more than {limits.body} bytes; send fewer texts at once")
            return JSONResponse(await run_in_threadpool(answer, model, parsed(body), limits))
        except ClientDisconnect:
            return refused(400, "the client hung up")  # nobody reads it; raised, it would be a traceback in the log
        except RecursionError:
            return refused(400, "the body is nested too deeply")
        except ValueError as error:
            return refused(400, str(error))

    predict.__annotations__["request"] = Request
    return server


def serve(folder: Path, host: str, port: int, limits: Limits, concurrent: int) -> None:
    """Serve a folder until the process is interrupted. Args: concurrent, requests at once; more get status 503."""
    try:
        import uvicorn
    except ImportError as error:
        raise UserError(MISSING) from error
    server = app(load(folder), limits, concurrent)
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno)
        raise UserError(f"{host}:{port}: {reason}; name another with --port or --host") from error
    for line in warnings(folder):
        print(f"warning: {line}", file=sys.stderr)
    print(f"http://{host}:{port}/predict", flush=True)
    # uvicorn counts connections, those without a request among them, and its refusal is no JSON
    limit = CONNECTIONS + concurrent
    config = uvicorn.Config(server, log_level="warning", access_log=False, limit_concurrency=limit)
    with contextlib.suppress(KeyboardInterrupt):  # by which it is ended
        uvicorn.Server(config).run(sockets=[listening])


def _characters(text) -> int:
    """Return the characters of a text, of a pair, or of a list of words."""
    return len(text) if isinstance(text, str) else sum(len(str(part)) for part in text) if isinstance(text, list) else 0
