"""Step `pretrain`: an encoder trained further on the training text of a corpus, in a folder as fetch writes one."""

import shutil
from pathlib import Path

from thaw.core.devices import run_again_if_needed
from thaw.core.digests import digest
from thaw.core.files import read_json, write_json
from thaw.core.runtime import run_step, set_threads
from thaw.core.step_arguments import ENCODER, GPU_MB, parse_arguments, required
from thaw.encoders.names import TOKENIZER
from thaw.schema.experiment import threads_of
from thaw.schema.further_pretraining import FurtherPretrainingConfig


def main() -> None:
    """Train, write the encoder's files and its cost, and the card last."""
    arguments = parse_arguments(
        __doc__,
        ENCODER,
        GPU_MB,
        required("--features", "store that holds the corpus' tokens"),
        out="folder of the new encoder",
    )
    spec, out = arguments.spec, arguments.out
    set_threads(threads_of(spec))
    run_again_if_needed(lambda: pretrain(spec, arguments.encoder, arguments.features, out))


def pretrain(spec: dict, folder: Path, features: Path, out: Path) -> None:
    """Train, put the encoder's files in place, and write its cost and its card."""
    from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
    from thaw.core.files import check_digest
    from thaw.encoders.folders import staged, verified
    from thaw.features.store import FeatureStore
    from thaw.training.further_training import Pretraining

    watch = Stopwatch()
    check_digest(folder / "card.json", spec["encoder"])
    check_digest(features / "tokens.json", spec["features"])
    with watch("load"):
        store = FeatureStore(features)
        training = Pretraining(FurtherPretrainingConfig.model_validate(spec["settings"]), store, folder)
    with claimed(watch) as device:
        said, cost = training.on(device).train(watch)
        cost |= measure_cost(watch, device)
        training.model.cpu()
    with staged(out) as staging:
        for name in TOKENIZER:
            if (folder / name).is_file():
                shutil.copyfile(folder / name, staging / name)
        training.model.write(folder, staging)
        facts = read_json(folder / "card.json") | verified(staging)
    facts["pretraining"] = [*facts["pretraining"], f"training text of {store.card['corpus']}"]
    said |= {"corpus": store.card["corpus"], "settings": spec["settings"]}
    write_json(out / "cost.json", cost)
    write_json(out / "card.json", facts | {"further": said, "encoder": out.name, "digest": digest(spec)})


if __name__ == "__main__":
    run_step(main)
