"""Altair charts as HTML that needs no network and is readable without JavaScript."""

from __future__ import annotations

import html
import json
import re
from urllib.parse import quote

import altair as alt
import vl_convert as vlc

from lib import require

# "6.4"; one of vlc.get_vegalite_versions()
VEGALITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
STATIC_WIDTH = 640  # pixels of the picture shown where scripts do not run
DIGITS = 6  # significant digits of the numbers that a page draws

# White even in a dark notebook, since the ink is dark.  Inline, since rerun notebooks do not have
# our style sheet.
PICTURE_STYLE = "max-width:100%;height:auto;background:#fff"


def drawn(spec: dict) -> str:
    """HTML for a specification: its JSON, for `charts.js` to draw, and a picture until then.

    Raises:
        ValueError: if it has no description.
    """
    words = spec.get("description", "")
    require(words, "description", words, "what is drawn, in words (see prose.figure)")
    spec = tidy(spec)
    svg = picture(spec)
    still = f'<img alt="{html.escape(words)}" style="{PICTURE_STYLE}" src="{address(svg)}">'
    data = f'<script type="application/json">{packed(spec)}</script>'
    return f'<div class="vl-chart" data-marks="{marks(svg)}">{data}{still}</div>'


def tidy(spec: dict) -> dict:
    """The specification with numbers rounded to DIGITS digits, and rows without missing values:
    tooltips could not distinguish null from zero.
    """
    # Browsers cannot read NaN
    spec = json.loads(json.dumps(spec), parse_constant=lambda _: None, parse_float=_short)
    for rows in spec.get("datasets", {}).values():
        rows[:] = [{k: v for k, v in row.items() if v is not None} for row in rows]
    return spec


def _short(digits: str) -> float:
    value = float(digits)
    if value.is_integer() and abs(value) < 2**53:
        return int(value)
    return float(f"{value:.{DIGITS}g}")


def packed(spec: dict) -> str:
    """The specification as JSON for a script element, with its data column by column, which
    `charts.js` unpacks; null marks a missing value.
    """
    columns = {}
    for name, rows in spec.get("datasets", {}).items():
        fields = dict.fromkeys(field for row in rows for field in row)
        columns[name] = {field: [row.get(field) for row in rows] for field in fields}
    text = json.dumps(spec | {"datasets": columns}, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")  # "<!--<script>" would swallow the end tag


def picture(spec: dict) -> str:
    """The chart as SVG, STATIC_WIDTH wide, to tenths of a pixel, with no text but what is drawn."""
    text = json.dumps(spec).replace('"width": "container"', f'"width": {STATIC_WIDTH}')
    still = json.loads(text)
    still.setdefault("config", {})["aria"] = False
    return re.sub("<[^>]*>", lambda tag: re.sub(r"(\.\d)\d{2,}", r"\1", tag[0]), svg(still))


def svg(spec: dict) -> str:
    """What Vega draws of a specification."""
    return vlc.vegalite_to_svg(spec, vl_version=VEGALITE)


def marks(svg: str) -> int:
    """How many lines, points, areas and words a picture has; if few, `charts.js` draws them as SVG,
    so that a keyboard reaches each.
    """
    return len(re.findall(r"<(?:path|line|rect|text)\b", svg))


def address(svg: str) -> str:
    """A data URL of the picture, for an attribute in double quotes."""
    return "data:image/svg+xml," + quote(svg, safe=" !$'()*+,-./:;=?@[]^_`{|}~")
