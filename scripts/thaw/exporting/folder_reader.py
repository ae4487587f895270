"""A program that answers requests with exported and merged folders, in a process that cannot import Thaw.

A request is a JSON object a line: folders, texts, and for a merged folder tasks. An answer has the predictions by task
("" in the folder of one run), and of a merged folder how many times its layers were called and how many batches read.
"""

import importlib.util
import json
import sys
from pathlib import Path


class CountedFolder:
    """The model of a folder, whose layers are counted as they run."""

    def __init__(self, folder: str):
        spec = importlib.util.spec_from_file_location(f"model_{abs(hash(folder))}", Path(folder) / "model.py")
        assert spec and spec.loader, "a file of Python has both"
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.model = module.Model(folder)
        self.merged = hasattr(self.model, "branches")
        self.layers = self.batches = 0
        if self.merged:
            branches = [branch.own_layers for branch in self.model.branches.values() if branch.own_layers]
            for part in (self.model.trunk, *branches):
                for layer in part.layers:
                    if type(layer).__name__ != "IdentityLayer":
                        layer.register_forward_hook(self._count_layer)
            self._inner, self.model._batch = self.model._batch, self._count_batch

    def reply(self, texts: list, tasks: list[str] | None) -> dict:
        self.layers = self.batches = 0
        if self.merged:
            predictions = self.model.predict_with_probabilities(texts, tasks)
        else:
            predictions = {"": list(self.model.predict_with_probabilities(texts))}
        return {"predictions": predictions, "layers": self.layers, "batches": self.batches}

    def _count_layer(self, *call) -> None:
        self.layers += 1

    def _count_batch(self, *arguments):
        self.batches += 1
        return self._inner(*arguments)


if __name__ == "__main__":
    sys.modules["thaw"] = None  # type: ignore[assignment]  # importing it is an error from here on
    folders: dict[str, CountedFolder] = {}
    for line in sys.stdin:
        request = json.loads(line)
        for name in request["folders"]:
            folders[name] = folders.get(name) or CountedFolder(name)
        replies = [folders[name].reply(request["texts"], request.get("tasks")) for name in request["folders"]]
        loaded = sorted(name for name, module in sys.modules.items() if name.startswith("thaw") and module)
        print(json.dumps({"replies": replies, "thaw": loaded}), flush=True)
