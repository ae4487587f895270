"""Answer HTTP requests with a folder that `thaw merge` or `thaw export` wrote. Copy this file and change it.

    pip install fastapi uvicorn
    python serve.py my_service
    curl -s localhost:8000/predict -H 'content-type: application/json' -d '{"texts": ["a text"], "tasks": ["trec6"]}'

It listens on this machine alone and has no access control and no encryption. Texts are not logged.
"""

import json
import sys
import threading
from pathlib import Path

import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
from model import Model  # noqa: E402 - of the folder

about = json.loads((folder / "thaw.json").read_text(encoding="utf-8"))
single = None if about["form"] == "merged" else about["task"]["id"]  # an export has one task
model, lock, app = Model(), threading.Lock(), FastAPI()


class Question(BaseModel, extra="forbid"):
    """Texts, pairs [first, second] or lists of words; without tasks all tasks predict."""

    texts: list[str | list[str]] = Field(min_length=1, max_length=512)
    tasks: list[str] | None = None


@app.get("/tasks")
def tasks() -> dict:
    """What each task reads, and its labels."""
    return {single: {"reads": model.reads, "labels": model.labels}} if single else model.tasks


@app.post("/predict")
def predict(question: Question) -> dict:
    """By task a prediction for each text, with probabilities, and `cut` where it was longer than the task reads."""
    try:
        with lock:
            if single is None:
                return model.predict_with_probabilities(question.texts, question.tasks)
            if set(question.tasks or [single]) != {single}:
                raise ValueError(f"there is one task, {single}")
            return {single: list(model.predict_with_probabilities(question.texts))}
    except ValueError as error:
        raise HTTPException(400, str(error)) from error


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[2]) if len(sys.argv) > 2 else 8000, log_level="warning", access_log=False)
