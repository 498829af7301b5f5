"""Charts of Altair as HTML that needs no network and, to be read, no JavaScript."""

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
STATIC_WIDTH = 640  # pixels of the picture that stands in where scripts do not run
DIGITS = 6  # significant, of the numbers that a page draws

# On white even in a dark notebook: its ink is dark.  Inline, since a rerun notebook has no style
# sheet of ours.
PICTURE_STYLE = "max-width:100%;height:auto;background:#fff"


def drawn(spec: dict) -> str:
    """HTML of a specification: itself, for `charts.js` to draw alive, and a picture until then.

    Raises:
        ValueError: if it has no description.
    """
    words = spec.get("description", "")
    require(words, "description", words, "what is drawn, in words: that of prose.figure")
    spec = tidy(spec)
    svg = picture(spec)
    still = f'<img alt="{html.escape(words)}" style="{PICTURE_STYLE}" src="{address(svg)}">'
    data = f'<script type="application/json">{packed(spec)}</script>'
    return f'<div class="vl-chart" data-marks="{marks(svg)}">{data}{still}</div>'


def tidy(spec: dict) -> dict:
    """The specification with numbers of DIGITS digits, and rows without what they have no value
    for: a tooltip could not tell null from zero.
    """
    # Browsers read no NaN
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
    """The specification as JSON for a script element, its data column by column, which `charts.js`
    unpacks; null is no value.
    """
    columns = {}
    for name, rows in spec.get("datasets", {}).items():
        fields = dict.fromkeys(field for row in rows for field in row)
        columns[name] = {field: [row.get(field) for row in rows] for field in fields}
    text = json.dumps(spec | {"datasets": columns}, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")  # "<!--<script>" would swallow the end tag


def picture(spec: dict) -> str:
    """The chart as SVG, STATIC_WIDTH wide, with tenths of a pixel and no words but those drawn."""
    text = json.dumps(spec).replace('"width": "container"', f'"width": {STATIC_WIDTH}')
    still = json.loads(text)
    still.setdefault("config", {})["aria"] = False
    return re.sub("<[^>]*>", lambda tag: re.sub(r"(\.\d)\d{2,}", r"\1", tag[0]), svg(still))


def svg(spec: dict) -> str:
    """What Vega draws of a specification."""
    return vlc.vegalite_to_svg(spec, vl_version=VEGALITE)


def marks(svg: str) -> int:
    """How many lines, points, areas and words a picture has; `charts.js` draws few of them as SVG,
    so that a keyboard reaches each.
    """
    return len(re.findall(r"<(?:path|line|rect|text)\b", svg))


def address(svg: str) -> str:
    """A data address of the picture, for an attribute in double quotes."""
    return "data:image/svg+xml," + quote(svg, safe=" !$'()*+,-./:;=?@[]^_`{|}~")
