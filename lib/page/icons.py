"""The few icons that pages use, cut out of the theme's collection of two thousand."""

from __future__ import annotations

import re

# Those of the theme's templates and script.
NAMES = (
    "angle-left",
    "angle-right",
    "arrow-up",
    "bars",
    "chevron-down",
    "circle-half-stroke",
    "code",
    "download",
    "ellipsis",
    "expand",
    "file",
    "file-lines",
    "file-pdf",
    "github",
    "house",
    "lightbulb",
    "list",
    "magnifying-glass",
    "moon",
    "outdent",
    "pencil",
    "play",
    "rocket",
    "square-github",
    "sun",
    "xmark",
)
SHAPE = """:is(.fa-solid, .fas, .fa-regular, .far, .fa-brands, .fab) {
  display: inline-block; width: 1em; height: 1em; vertical-align: -0.125em; background: currentColor;
  -webkit-mask: var(--icon) center / contain no-repeat; mask: var(--icon) center / contain no-repeat;
}
.fa-lg { font-size: 1.25em; }
"""
UNFILLED = """a.github:before, a.gitlab:before, a.reference.download:before, .nav-external:after, li > a.reference.external:after,
.admonition > .admonition-title:after, span.versionmodified:before, p.highlight-link a:before { content: none !important; }
.bd-sidebar-secondary.hide:not(:hover) .onthispage:after { content: "▾" !important; font-family: inherit !important; }
ul.bd-breadcrumbs li.breadcrumb-item:not(.breadcrumb-home):before { content: "›" !important; font-family: inherit !important; }
"""


def css(collection: str) -> str:
    """A style sheet of the icons named here.

    collection: Font Awesome's script, which has for each icon name:[width,height,[aliases],"code
    point","path"]. Raises ValueError for an icon that it lacks.
    """
    return SHAPE + UNFILLED + "".join(_rule(name, collection) for name in NAMES)


def _rule(name: str, collection: str) -> str:
    entry = re.findall(
        rf'[{{,]"?{name}"?:\[(\d+),(\d+),\[[^\]]*\],"[0-9a-f]+","([^"]+)"\]', collection
    )
    if not entry:
        raise ValueError(
            f"icon: {name!r} is not in the theme's collection; name one that is, in lib/page/icons.py"
        )
    width, height, path = entry[-1]  # the solid ones come last
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}'><path d='{path}'/></svg>"
    return f'.fa-{name} {{ --icon: url("data:image/svg+xml,{svg.replace("#", "%23")}"); }}\n'
