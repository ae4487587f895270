"""Templates of HTML and LaTeX, and how they are filled in: everything that comes from data is escaped."""

import functools
from pathlib import Path

FOLDER = Path(__file__).parent
TEX = ".tex.j2"


def render(name: str, **values) -> str:
    """Return a template of this folder filled in with values; a value that is missing is an error."""
    return _html().get_template(name).render(**values)


def render_tex(name: str, **values) -> str:
    """Return a LaTeX template filled in with values; `<< >>`, `<% %>` and `<# #>` replace Jinja's braces."""
    return _tex().get_template(name).render(**values)


def compile_all() -> None:
    for path in FOLDER.iterdir():
        if path.suffix in (".j2", ".css", ".js"):
            (_tex() if path.name.endswith(TEX) else _html()).get_template(path.name)


@functools.cache
def _html():
    return _environment(autoescape=True)


@functools.cache
def _tex():
    from markupsafe import Markup

    from thaw.words.wording import tex

    environment = _environment(
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        finalize=lambda value: value if isinstance(value, Markup) else tex(str(value)),
    )
    environment.filters["as_is"] = Markup  # what a macro of the template wrote is LaTeX already
    return environment


def _environment(**options):
    import jinja2

    loader, undefined = jinja2.FileSystemLoader(FOLDER), jinja2.StrictUndefined
    return jinja2.Environment(loader=loader, undefined=undefined, trim_blocks=True, lstrip_blocks=True, **options)
