"""Copy a finished experiment's report into the documentation, with what it links to of its own folder.

python scripts/gallery.py results/outputs/demo docs/gallery/demo

Only for texts that may be published: the page of examples goes with it. Runs, logs and data stay where they are, so a
link to them becomes its text.
"""

import re
import shutil
import sys
from pathlib import Path

PAGES = ("report.html", "examples.html")
LINK = re.compile(r'<a\b[^>]*?href="([^"#:]+)(?:#[^"]*)?"[^>]*>(.*?)</a>', re.DOTALL)


def publish(experiment: Path, gallery: Path) -> None:
    """Write the pages of a report, and the tables and figures that they link to, into a folder of the gallery."""
    shutil.rmtree(gallery, ignore_errors=True)
    gallery.mkdir(parents=True)
    for page in PAGES:
        text = (experiment / page).read_text(encoding="utf-8")
        (gallery / page).write_text(LINK.sub(lambda link: _kept(link, experiment, gallery), text), encoding="utf-8")


def _kept(link: re.Match, experiment: Path, gallery: Path) -> str:
    """Return a link whose file is published too, else its text alone."""
    inside = not link[1].startswith("../") and (experiment / link[1]).is_file()
    if inside and link[1] not in PAGES:
        (gallery / link[1]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(experiment / link[1], gallery / link[1])
        if link[1].endswith(".svg"):  # whose lines end in blanks
            lines = (gallery / link[1]).read_text(encoding="utf-8").splitlines()
            (gallery / link[1]).write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")
    return link[0] if inside else link[2]


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]))
