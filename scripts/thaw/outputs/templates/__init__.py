"""HTML templates, and how they are filled in: everything that comes from data is escaped."""

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
