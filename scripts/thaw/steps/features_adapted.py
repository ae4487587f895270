"""Step `features_adapted`: the hidden states that an encoder gives as a run left it, at all layers, on a few rows."""

from argparse import Namespace

from thaw.core import layout
from thaw.core.devices import run_again_if_needed
from thaw.core.digests import digest
from thaw.core.files import write_json
from thaw.core.runtime import hardware, log, run_step, set_threads
from thaw.core.step_arguments import RUN_INPUTS, parse_arguments, required
from thaw.schema.experiment import threads_of
from thaw.training import run_inputs


def main() -> None:
    """Write the tokens of the rows that probes read, the states of all boundaries on them, and last card.json."""
    arguments = parse_arguments(
        __doc__,
        *RUN_INPUTS,
        required("--run", "metrics.json of the run that adapted the encoder"),
        out="folder of the store",
    )
    spec = arguments.spec
    set_threads(threads_of(spec))
    run_again_if_needed(lambda: execute(spec, arguments))


def execute(spec: dict, arguments: Namespace) -> None:
    """Read the rows with the adapted encoder, in one pass. Args: spec; the parsed arguments."""
    from thaw.compute_cost.stopwatch import Stopwatch, claimed
    from thaw.core.digests import file_sha256
    from thaw.core.files import locked
    from thaw.evaluation.result_files import read_rows
    from thaw.features.extract import StatesFormat, extract, write_cards
    from thaw.features.store import write_excerpt
    from thaw.training.adapted import AdaptedEncoder

    watch = Stopwatch()
    (inputs,) = run_inputs.open_inputs(spec, arguments)
    adapted = AdaptedEncoder.of(arguments.encoder, arguments.run, spec["run"])
    changes = {"digest": digest(spec), "weights": file_sha256(arguments.run.parent / layout.ENCODER)}
    store = write_excerpt(inputs.store, arguments.out, read_rows(spec, inputs.corpus), changes)
    numbers: list[int | str] = list(range(spec["layers"] + 1))
    encoder = adapted.encoder()
    form = StatesFormat.of(spec)
    with locked(store.folder):
        facts = extract(store, encoder, numbers, form, claimed(watch))
        write_cards(store, encoder, form, facts, {})
    seconds = watch.seconds()["total"]
    card = {"spec": spec, "digest": digest(spec), "seconds": seconds, "device": hardware(watch.device)["device"]}
    card |= {"bytes": sum(fact["bytes"] for fact in facts.values())}
    write_json(arguments.out / "card.json", card)
    log(f"{len(numbers)} boundaries, {card['bytes'] / 2**20:.1f} MiB, {seconds:.1f} s")


if __name__ == "__main__":
    run_step(main)
