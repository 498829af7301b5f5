"""Small panels side by side on one view as wide as the page: a row and a column of names, and grey
where nothing is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts

TOP, HEAD, PANEL, FOOT = 18, 24, 104, 22  # pixels: names of columns, of a row, its panels, ticks
LEFT, INSET, ACROSS = 0.3, 0.06, 0.84  # of a panel's width: room for ticks, margin, what is drawn
ROOM = 1.25  # times that the axis goes beyond the outermost marks


@dataclass(frozen=True)
class Layout:
    """Where panels lie, in units of a panel's width and in pixels.

    Attributes:
        rows: the names of the rows, from the top.
        columns: the names of the columns, from the left.
        across: the ends of the horizontal axis, which all panels share.
        up: the ends of the vertical axis of each row that has marks.
    """

    rows: list[str]
    columns: list[str]
    across: tuple[float, float]
    up: dict[str, tuple[float, float]]

    @property
    def height(self) -> int:
        return TOP + len(self.rows) * (HEAD + PANEL) + FOOT

    def top(self, row: str) -> int:
        """Pixels from the top to a row's panels."""
        return TOP + HEAD + self.rows.index(row) * (HEAD + PANEL)

    def right(self, column: str, share: float) -> float:
        """Where a share of the horizontal axis lies in a column."""
        return self.columns.index(column) + INSET + ACROSS * share

    def down(self, row: str, value: float) -> float:
        """Where a value lies on a row's vertical axis, in pixels."""
        return self.top(row) + PANEL * (1 - _share(value, self.up[row]))

    def placed(self, marks: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
        """The marks with `right` and `down`."""
        shares = _share(marks[x].to_numpy(), self.across)
        return marks.assign(
            right=list(map(self.right, marks.panel_column, shares)),
            down=list(map(self.down, marks.panel_row, marks[y])),
        )


def _share(value: float | np.ndarray, ends: tuple[float, float]) -> float | np.ndarray:
    """How far along a logarithmic axis a value lies, from 0 to 1."""
    return np.log(value / ends[0]) / np.log(ends[1] / ends[0])


def layout(marks: pd.DataFrame, rows: list[str], columns: list[str], x: str, y: str) -> Layout:
    """Panels for these marks.

    Args:
        marks: panel_row, panel_column, and the columns x and y, both positive.
        rows, columns: the names of all panels, from the top and from the left.
        x, y: what is drawn across and up.
    """
    by = marks.groupby("panel_row")[y]
    up = zip(by.min() / ROOM, by.max() * ROOM)
    return Layout(
        rows, columns, (marks[x].min(), marks[x].max()), dict(zip(by.groups, up, strict=True))
    )


def draw(
    marks: pd.DataFrame,
    panels: Layout,
    axes: dict[str, tuple[str, list[float]]],
    colour: alt.Color,
    series: list[str],
    tooltip: list,
) -> alt.LayerChart:
    """A line for each series in every panel, points with tooltips, and diamonds where a row's
    `kind` is "mark".

    Args:
        marks: as for `layout`, with the colour's column and `kind`, "point" or "mark".
        panels: of `layout`.
        axes: by column, x and then y: the axis's title, and its ticks.
        colour: its legend singles out a value.
        series: columns that tell the lines of one panel apart.
        tooltip: of points and diamonds.
    """
    (x, (across, x_ticks)), (y, (up, y_ticks)) = axes.items()
    quiet = {"labels": False, "ticks": False, "domain": False, "grid": False}
    places = {
        "x": alt.X(
            "right:Q",
            axis=alt.Axis(title=across, **quiet),
            scale=alt.Scale(domain=[-LEFT, len(panels.columns)], nice=False),
        ),
        "y": alt.Y(
            "down:Q",
            axis=alt.Axis(title=up, **quiet),
            scale=alt.Scale(domain=[panels.height, 0], nice=False),
        ),
    }
    pick, faded = charts.picked(colour["shorthand"].split(":")[0])
    base = alt.Chart(panels.placed(marks, x, y)).encode(color=colour, opacity=faded, **places)
    points = base.transform_filter("datum.kind === 'point'")
    diamonds = base.transform_filter("datum.kind === 'mark'")
    layers = [
        *_frames(marks, panels, places),
        *_words(panels, places, x_ticks, y_ticks),
        points.mark_line(strokeWidth=1.8)
        .encode(detail=["panel_row:N", "panel_column:N", *series])
        .add_params(pick),
        points.mark_point(filled=True, size=22, opacity=1).encode(tooltip=tooltip),
        diamonds.mark_point(shape="diamond", size=90, strokeWidth=2).encode(tooltip=tooltip),
    ]
    return charts.sized(alt.layer(*layers), panels.height)


def _frames(marks: pd.DataFrame, panels: Layout, places: dict) -> list[alt.Chart]:
    """A rectangle for each panel, filled and labelled where it has no marks."""
    known = set(zip(marks.panel_row, marks.panel_column))
    frames = pd.DataFrame(
        [
            {
                "right": panels.right(column, -0.03),
                "end": panels.right(column, 1.03),
                "down": panels.top(row),
                "bottom": panels.top(row) + PANEL,
                "words": "" if (row, column) in known else "not measured",
            }
            for row in panels.rows
            for column in panels.columns
        ]
    )
    filled = alt.when("datum.words === ''").then(alt.value(0)).otherwise(alt.value(0.18))
    base = alt.Chart(frames).encode(**places)
    boxes = base.mark_rect(stroke=charts.GUIDE, strokeWidth=0.6, color=charts.GUIDE)
    middle = alt.Chart(
        frames.assign(right=(frames.right + frames.end) / 2, down=(frames.down + frames.bottom) / 2)
    )
    return [
        boxes.encode(x2="end:Q", y2="bottom:Q", fillOpacity=filled),
        middle.mark_text(fontSize=11).encode(text="words:N", **places),
    ]


def _words(
    panels: Layout, places: dict, x_ticks: list[float], y_ticks: list[float]
) -> list[alt.Chart]:
    """The names of rows and columns, and the ticks of both axes."""
    kinds = {"head": [], "row": [], "below": [], "beside": []}
    foot = panels.height - FOOT
    for column in panels.columns:
        kinds["head"].append((panels.right(column, 0.5), 8, column))
        kinds["below"] += [
            (panels.right(column, _share(tick, panels.across)), foot + 10, _short(tick))
            for tick in x_ticks
            if panels.across[0] <= tick <= panels.across[1]
        ]
    for row in panels.rows:
        kinds["row"].append((-LEFT, panels.top(row) - 14, row))
        low, high = panels.up.get(row, (1, 0))
        kinds["beside"] += [
            (INSET / 2, panels.down(row, tick), _short(tick))
            for tick in y_ticks
            if low <= tick <= high
        ]
    looks = {
        "head": {"fontSize": 12, "fontWeight": "bold"},
        "row": {"fontSize": 12, "align": "left"},
        "below": {"fontSize": 11},
        "beside": {"fontSize": 11, "align": "right"},
    }
    return [
        alt.Chart(pd.DataFrame(rows, columns=["right", "down", "words"]))
        .mark_text(**looks[kind])
        .encode(text="words:N", **places)
        for kind, rows in kinds.items()
        if rows
    ]


def _short(value: float) -> str:
    """A tick in few letters: 16k."""
    return f"{value / 1000:.0f}k" if value >= 1000 else f"{value:g}"
