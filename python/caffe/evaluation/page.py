"""Renders the page of an evaluation: one self-contained HTML file."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Optional

from .._packages import need
from . import charts

_TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **content: Any) -> str:
    """The HTML page. template: a file of `templates` that extends page.html. All text is escaped."""
    jinja2 = need("jinja2")
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(str(_TEMPLATES)), autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(share=_share, number=_number)
    markup = need("markupsafe").Markup
    drawn: Dict[str, Any] = {name: lambda *values, draw=getattr(charts, name): markup(draw(*values))
                             for name in ("reliability", "precision_over_recall")}
    return environment.get_template(template).render(**content, **drawn)


def _share(value: Optional[float]) -> str:
    """Percentage, or a dash if undefined."""
    return "–" if value is None else f"{100 * value:.1f}%"


def _number(value: Optional[float], digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
