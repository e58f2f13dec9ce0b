"""HTML pages as one file, from templates of Jinja."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def render_page(template: Path, filters: Mapping[str, Callable[[Any], object]], **values: Any) -> str:
    """Render a template; text is escaped, and a name that the template uses and `values` lacks is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment.get_template(template.name).render(**values)
