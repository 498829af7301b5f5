"""A renderer for Altair that needs no network and, to be read, no JavaScript."""

from __future__ import annotations

import base64
import html
import json

import altair as alt
import vl_convert as vlc

VEGALITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])  # "6.4"; one of vlc.get_vegalite_versions()
STATIC_WIDTH = 640  # pixels of the picture that stands in where scripts do not run


def renderer(spec: dict, **_) -> dict[str, str]:
    """An Altair renderer: the specification and a static picture, which `charts.js` replaces by a live view.

    No `application/vnd.vegalite.v6.json`: nbformat rejects that key, and with it the whole notebook.
    """
    spec = json.loads(json.dumps(spec), parse_constant=lambda _: None)  # browsers read no NaN
    still = json.loads(json.dumps(spec).replace('"width": "container"', f'"width": {STATIC_WIDTH}'))
    svg = vlc.vegalite_to_svg(still, vl_version=VEGALITE)
    words = spec.get("description", "")
    if not words:
        raise ValueError("description: a chart needs one; pass it through charts.finish(chart, description)")
    data = json.dumps(spec, separators=(",", ":")).replace("<", "\\u003c")  # "<!--<script>" would swallow the end tag
    picture = base64.b64encode(svg.encode()).decode()
    return {
        "text/html": f'<div class="vl-chart"><script type="application/json">{data}</script>'
        f'<img alt="{html.escape(words)}" src="data:image/svg+xml;base64,{picture}"></div>',
        "text/plain": f"<chart: {words}>",
    }
