"""Whether all who are asked about finished runs give one answer: report, `thaw show`, `thaw advise` and model card.

python tests/one_answer.py demo config/config.yaml      of results/ here; .ci/run asks so after `make demo`
"""

import html
import json
import re
import sys
import tempfile
from pathlib import Path

import forked
from thaw.decision.record import ADVISED
from thaw.exporting.export import recommended_runs
from thaw.words import wording
from workflow import HOME, activated


def thaw(folder: Path, *words: str, environment: dict[str, str] | None = None) -> str:
    """Run a command in a folder, and return what it printed as the result."""
    given = (environment or activated()) | {"PYTHONPATH": str(HOME / "scripts")}
    done = forked.run(["thaw.cli.main", *words], folder, given)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def sentences(answer: str) -> list[str]:
    """Return what an answer says below its table, but its score on test and on which rows the others are.

    The report has these two elsewhere: with a link, and in its notes.
    """
    said = answer.partition("→ ")[2].splitlines()
    return [line.strip() for line in said if not re.match(r"\s*(It scores|Scores (are|of)) ", line)]


def check(folder: Path, experiment: str, *given: str, environment: dict[str, str] | None = None) -> str:
    """Check that the sentences of `thaw show` are those of the others, and return the card of the last task's model.

    Args: where results/ is; the experiment, whose runs are all there; its files and further words for `thaw advise`.
    """
    outputs = folder / "results/outputs" / experiment
    runs = sorted(folder.glob("results/runs/**/metrics.json"))
    shown = thaw(folder, "show", experiment, environment=environment)
    advised = thaw(folder, "advise", *given, environment=environment)
    assert sorted(folder.glob("results/runs/**/metrics.json")) == runs, "nothing was left to train"
    page = html.unescape((outputs / "report.html").read_text(encoding="utf-8"))
    above = page.partition('aria-label="Recommendation">')[2].partition("</section>")[0]
    abstract = (outputs / "paper.tex").read_text(encoding="utf-8").partition(r"\end{abstract}")[0]
    made = [json.loads((outputs / name).read_text())["answers"] for name in (ADVISED, "tables/advice.json")]
    assert made[0] == made[1], "of thaw advise, and of the report's table"
    answers = shown.split("\n\n")[:-1]
    for answer in answers:
        assert answer in advised and len(sentences(answer)) >= 2
        assert [said for said in sentences(answer) if said not in page] == []
        taken = sentences(answer)[0]
        assert taken in above and wording.tex(taken) in abstract
    run = [*recommended_runs(outputs).values()][-1]
    with tempfile.TemporaryDirectory() as made:
        thaw(folder, "export", str(run), f"{made}/model", environment=environment)
        card = Path(made, "model/README.md").read_text(encoding="utf-8")
    assert any(all(said in card for said in sentences(answer)) for answer in answers), card
    return card


if __name__ == "__main__":
    check(Path.cwd(), *sys.argv[1:])
    print("report, thaw show, thaw advise and model card give one answer")
