"""A renderer for Altair that needs no network and, to be read, no JavaScript."""

from __future__ import annotations

import html
import json
import re

import altair as alt
import vl_convert as vlc

# "6.4"; one of vlc.get_vegalite_versions()
VEGALITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
STATIC_WIDTH = 640  # pixels of the picture that stands in where scripts do not run
DIGITS = 6  # significant, of the numbers that a page draws

# On white even in a dark notebook: its ink is dark.  Inline, since a rerun notebook has no style
# sheet of ours.
PICTURE_STYLE = "max-width:100%;height:auto;background:#fff"


def renderer(spec: dict, **_) -> dict[str, str]:
    """An Altair renderer: the specification and a static picture, which `charts.js` replaces by a
    live view.

    No `application/vnd.vegalite.v6.json`: nbformat rejects that key, and with it the whole
    notebook.
    """
    words = spec.get("description", "")
    if not words:
        raise ValueError(
            "description: a chart needs one; draw it with prose.figure(chart, ..., description)"
        )
    spec = tidy(spec)
    svg = picture(spec)
    drawn = f'<img alt="{html.escape(words)}" style="{PICTURE_STYLE}" src="{address(svg)}">'
    data = f'<script type="application/json">{packed(spec)}</script>'
    return {
        "text/html": f'<div class="vl-chart" data-marks="{marks(svg)}">{data}{drawn}</div>',
        "text/plain": f"<chart: {words}>",
    }


def tidy(spec: dict) -> dict:
    """The specification without what is missing, with numbers of DIGITS digits, and with every
    tooltip in words.

    A row lacks what it has no value for: a tooltip could not tell null from zero.
    """
    # Browsers read no NaN
    spec = json.loads(json.dumps(spec), parse_constant=lambda _: None, object_hook=_titled)
    for name, rows in spec.get("datasets", {}).items():
        spec["datasets"][name] = [
            {k: _short(v) for k, v in row.items() if v is not None} for row in rows
        ]
    return spec


def _short(value: object) -> object:
    if not isinstance(value, float):
        return value
    return int(value) if value.is_integer() and abs(value) < 2**53 else float(f"{value:.{DIGITS}g}")


def _titled(part: dict) -> dict:
    """A part of a specification whose tooltips have each a title, else the name of the column, in
    words.
    """
    told = part.get("tooltip")
    for tooltip in told if isinstance(told, list) else [told]:
        if isinstance(tooltip, dict) and "field" in tooltip:
            tooltip.setdefault("title", tooltip["field"].replace("_", " "))
    return part


def packed(spec: dict) -> str:
    """The specification as JSON for a script element: data column by column, which `charts.js`
    unpacks.

    A column is a list, or, if shorter, {"of": its values, "at": the place of each row's value};
    null is no value.
    """
    columns = {name: _columns(rows) for name, rows in spec.get("datasets", {}).items()}
    text = _json(spec | ({"datasets": columns} if columns else {}))
    return text.replace("<", "\\u003c")  # "<!--<script>" would swallow the end tag


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _columns(rows: list[dict]) -> dict[str, list | dict]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: list) -> list | dict:
    texts = [_json(value) for value in values]
    # By text, since 1 == True
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    short = {"of": [json.loads(text) for text in places], "at": [places[text] for text in texts]}
    return min(values, short, key=lambda column: len(_json(column)))


def picture(spec: dict) -> str:
    """The chart as SVG, STATIC_WIDTH wide, without what a still picture does not need."""
    still = json.loads(json.dumps(spec).replace('"width": "container"', f'"width": {STATIC_WIDTH}'))
    return _small(svg(still))


def svg(spec: dict) -> str:
    """What Vega draws of a specification, whatever it has drawn before: it counts clips of all."""
    clips = {}
    drawn = vlc.vegalite_to_svg(spec, vl_version=VEGALITE)
    return re.sub(r"\bclip\d+", lambda one: clips.setdefault(one[0], f"clip{len(clips)}"), drawn)


def marks(svg: str) -> int:
    """How many lines, points, areas and words a picture has; `charts.js` draws few of them as SVG,
    so that a keyboard reaches each.
    """
    return len(re.findall(r"<(?:path|line|rect|text)\b", svg))


FONT = re.compile(r' font-family="([^"]*)"')
UNSEEN = re.compile(r' (?:aria-[a-z]+|role|class|pointer-events|stroke-miterlimit)="[^"]*"')
PLACES = re.compile(r' (?:d|transform|x|y|x1|x2|y1|y2|width|height)="[^"]*"')


def _small(svg: str) -> str:
    """An SVG of Vega with tenths of a pixel, one font for all, and no words but those that are
    drawn.
    """
    fonts = FONT.findall(svg)
    svg = UNSEEN.sub("", FONT.sub("", svg))
    svg = PLACES.sub(lambda places: re.sub(r"\d+\.\d{2,}", _tenths, places[0]), svg)
    svg = svg.replace('<path d="" display="none"/>', "")
    font = fonts[0].replace("&quot;", "").replace("'", "") if fonts else "sans-serif"
    return svg.replace("<svg ", f'<svg font-family="{font}" ', 1).replace("\n", " ")


def _tenths(number: re.Match) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")


def address(svg: str) -> str:
    """A data address of the picture, for an attribute in double quotes; two thirds of what base64
    takes.
    """
    svg = re.sub(r' ([\w:-]+)="([^"\']*)"', r" \1='\2'", svg)
    for sign, code in (
        ("%", "%25"),
        ("#", "%23"),
        ("&", "%26"),
        ('"', "%22"),
        ("<", "%3C"),
        (">", "%3E"),
    ):
        svg = svg.replace(sign, code)
    return "data:image/svg+xml;utf8," + svg
