"""Pages as single HTML files that need nothing else. `_page.html` has what all of them share; templates extend it."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Mapping

from ._packages import need

_SHARED = Path(__file__).parent


def render(template: Path, filters: Mapping[str, Callable[..., Any]], **content: Any) -> str:
    """The page. Templates may also use those in the folder of `template`. All text is escaped. filters: for the templates."""
    jinja2 = need("jinja2")
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader([str(template.parent), str(_SHARED)]), autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(filters)
    return environment.get_template(template.name).render(**content)
