"""The command `thaw`: it finds the sub-command and imports nothing else, so that `thaw --help` is quick."""

import sys
from collections.abc import Callable
from pathlib import Path

from thaw.core.errors import suggestion
from thaw.core.runtime import run_step
from thaw.declarations.lazy_import import LazyImport

COMMANDS = {
    "demo": "run the demo: small synthetic data, no network",
    "run": "run an experiment: thaw run my.yaml [options of Snakemake]",
    "plan": "print runs, jobs, disk space and time; start nothing",
    "fetch": "download files of data sets and encoders that have a public address",
    "pin": "pin what an experiment reads from the Hub to revisions",
    "doctor": "check whether this machine can run an experiment",
    "list": "list tasks, encoders, strategies, subsets, heads, probes or outputs",
    "new": "write the catalogue entry of your data, and an experiment",
    "show": "print the recommendation and where the report is",
    "advise": "find the strategy to take without training all of them",
    "export": "export a trained model and verify it",
    "merge": "merge trained models of several tasks on one trunk and verify them",
    "predict": "label new text with an exported model",
}
WITH_MODELS = ("export", "merge", "predict")  # import torch, unless a server that waits here has done so
HELP, VERSION = ("-h", "--help", "help"), ("-V", "--version", "version")
USAGE = "usage: thaw COMMAND [options]; thaw COMMAND --help describes one"


def main(words: list[str] | None = None) -> None:
    """Run a sub-command and exit: 0, 1 after a mistake that one sentence names, 2 where the command line is wrong."""
    words = sys.argv[1:] if words is None else words
    if not words:
        words = ["--help"]
    if words[0] not in (*COMMANDS, *HELP, *VERSION):
        file = Path(words[0])
        command = "run" if file.suffix in (".yaml", ".yml") else "advise"
        hint = f"; did you mean thaw {command} {file}?" if file.exists() else suggestion(words[0], COMMANDS)
        print(f"error: thaw has no command '{words[0]}'{hint}", file=sys.stderr)
        sys.exit(2)
    run_step(lambda: _run(*words))


def _run(name: str, *words: str) -> None:
    if name in HELP:
        width = max(map(len, COMMANDS))
        lines = [f"  {name:<{width}}  {sentence}" for name, sentence in COMMANDS.items()]
        first = "Linear probe, LoRA, top-k layers or full fine-tuning: compare ways of adapting a pretrained encoder."
        print("\n".join([first, "", USAGE, "", *lines, "", "thaw --version prints the version."]))
    elif name in VERSION:
        from thaw.core.home import release

        print(f"thaw {release()}")
    elif (status := _in_server(name, words)) is not None:
        sys.exit(status)
    else:
        _command(name)(list(words))


def _in_server(name: str, words: tuple[str, ...]) -> int | None:
    if name not in WITH_MODELS or not words or set(words) & {*HELP}:
        return None
    from thaw.core import fork_server

    return fork_server.ask_waiting([name, *words])


def _command(name: str) -> Callable[[list[str]], None]:
    """Import a sub-command and return its function of the words that follow it."""
    source = "thaw.cli.run_command:demo" if name == "demo" else f"thaw.cli.{name}_command:main"
    return LazyImport(source).load()


if __name__ == "__main__":
    main()
