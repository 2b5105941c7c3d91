"""Renders the page of an evaluation: one self-contained HTML file."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Optional

from .. import _page
from .._packages import need
from . import charts

_TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **content: Any) -> str:
    """The HTML page. template: a file of `templates` that extends page.html. All text is escaped."""
    markup = need("markupsafe").Markup
    drawn: Dict[str, Any] = {name: lambda *values, draw=getattr(charts, name): markup(draw(*values))
                             for name in ("reliability", "precision_over_recall")}
    return _page.render(_TEMPLATES / template, {"share": _share, "number": _number}, **content, **drawn)


def _share(value: Optional[float]) -> str:
    """Percentage, or a dash if undefined."""
    return "–" if value is None else f"{100 * value:.1f}%"


def _number(value: Optional[float], digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
