"""What the site needs beyond docs/: a file of the repository that a page links to becomes a page, shown as it is.

mkdocs loads it (mkdocs.yml), in an environment without Thaw's packages. Pages of GENERATED are made here, and are not
committed. A link to a file above docs/ is rewritten to files/<path>.html, a link to a folder to a page that lists its
files. A link to nothing stays, and the build fails.
"""

import os
import posixpath
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# By page in docs/ the module and the function that write it.
GENERATED = {
    "verified.md": ("verified", "page"),
}
LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?(\))")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".smk": "python", ".cff": "yaml"}


def on_files(files, config):
    """Add a page for each file and folder outside docs/ that some page links to, and for what these link to."""
    from mkdocs.structure.files import File

    texts = {name: called(*source)() for name, source in GENERATED.items()}
    for name, text in texts.items():
        files.append(File.generated(config, name, content=text))
    committed = [page for page in files.documentation_pages() if page.abs_src_path]
    texts |= {page.src_uri: Path(page.abs_src_path).read_text(encoding="utf-8") for page in committed}
    waiting = {target for name, text in texts.items() for target in outside(text, posixpath.join("docs", name))}
    shown = set()
    while waiting:
        path = waiting.pop()
        shown.add(path)
        files.append(File.generated(config, address(path), content=page_of(path)))
        if (ROOT / path).is_dir():
            waiting |= set(listed(path)) - shown
        elif path.endswith(".md"):
            waiting |= set(outside((ROOT / path).read_text(encoding="utf-8"), path)) - shown
    return files


def called(module: str, function: str):
    """Return a function of a module in scripts/."""
    if (scripts := str(ROOT / "scripts")) not in sys.path:  # mkdocs takes away what a hook adds when it is loaded
        sys.path.insert(0, scripts)
    return getattr(import_module(module), function)


def on_page_markdown(markdown, page, **_):
    """Point the links of a page to the pages that `on_files` made."""
    place = page.file.src_uri
    if place.startswith("results/"):  # a search is for how Thaw is used
        page.meta["search"] = {"exclude": True}
    if "<!-- simulated: " in markdown:
        markdown = called("simulated_tables", "filled")(markdown)
    source = original(place) if place.startswith("files/") else posixpath.join("docs", place)
    return LINK.sub(lambda link: link[1] + rewritten(link[2], source, place) + (link[3] or "") + link[4], markdown)


def rewritten(link: str, source: str, place: str) -> str:
    """Return a link of a page, whose text is from `source` in the repository, as seen from `place` in the site."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if target.startswith("docs/"):
        inside = target.removeprefix("docs/")
    elif (ROOT / target).exists():
        inside = address(target)
    else:
        return link
    return posixpath.relpath(inside, posixpath.dirname(place) or ".")


def outside(text: str, source: str) -> list[str]:
    """Return what a text of the repository links to outside docs/, as paths from the root."""
    links = (posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2])) for link in LINK.finditer(text))
    return [path for path in links if not path.startswith(("docs/", "..", "/")) and (ROOT / path).exists()]


def address(path: str) -> str:
    """Return where in the site a file or folder of the repository is shown."""
    return f"files/{path}/index.md" if (ROOT / path).is_dir() else f"files/{path}.md"


def original(place: str) -> str:
    """Return the file that a page of files/ shows; of a folder's page a file in it."""
    return place.removeprefix("files/").removesuffix(".md")


def listed(folder: str) -> list[str]:
    """Return the files of a folder that git knows, as paths from the root."""
    command = ["git", "ls-files", "--", folder]
    known = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return sorted(path for path in known if (ROOT / path).suffix in {*LANGUAGES, ".md"})


def page_of(path: str) -> str:
    """Return the page that shows a file or folder; it is left out of the search."""
    head = f"---\ntitle: {path}\nsearch:\n  exclude: true\n---\n\n"
    if (ROOT / path).is_dir():
        names = [f"- [{os.path.relpath(name, path)}]({os.path.relpath(name, path)})" for name in listed(path)]
        return "\n".join([head + f"# {path}\n", *names, ""])
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return head + text
    return f"{head}# {path}\n\n````{LANGUAGES.get(Path(path).suffix, 'text')}\n{text}\n````\n"
