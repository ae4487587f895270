"""Templates of HTML and LaTeX, and how they are filled in: everything that comes from data is escaped."""

from pathlib import Path


def render(name: str, **values) -> str:
    """Return a template of this folder filled in with values; a value that is missing is an error."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(name).render(**values)


def render_tex(name: str, **values) -> str:
    """Return a LaTeX template filled in with values; `<< >>`, `<% %>` and `<# #>` replace Jinja's braces."""
    import jinja2
    from markupsafe import Markup

    from thaw.outputs.wording import tex

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else tex(str(value)),
    )
    environment.filters["as_is"] = Markup  # what a macro of the template wrote is LaTeX already
    return environment.get_template(name).render(**values)
