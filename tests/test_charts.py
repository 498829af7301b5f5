"""The renderer's contract: valid in a notebook, offline, and readable without scripts."""

import altair as alt
import nbformat
import pandas as pd
import pytest
import vl_convert as vlc

from lib import book, charts


def chart():
    points = alt.Chart(pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, 1.0]})).mark_point().encode(x="x:Q", y="y:Q")
    return charts.finish(points.properties(width="container"), "two <points>")


@pytest.fixture(scope="module")
def bundle():
    charts.enable()
    return chart()._repr_mimebundle_()


def test_bundle_is_a_valid_notebook_output(bundle):
    output = nbformat.v4.new_output("display_data", data=bundle)
    nbformat.validate(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("c", outputs=[output])]))
    assert {"text/html", "text/plain"} <= set(bundle)


def test_html_needs_no_network_and_has_words(bundle):
    body = bundle["text/html"].replace("https://vega.github.io/schema", "")  # an identifier, never fetched
    assert "http" not in body and 'alt="two &lt;points&gt;"' in body


def test_a_chart_without_words_is_refused():
    with pytest.raises(ValueError, match="description"):
        charts.finish(alt.Chart(), "  ")
    with pytest.raises(ValueError, match="description"):
        charts._renderer(alt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x:Q").to_dict())


def test_the_pinned_converter_knows_altairs_vega_lite():
    assert charts.VEGALITE in vlc.get_vegalite_versions()


@pytest.mark.parametrize("ground", ["#ffffff", "#121212"])
def test_colours_stand_out_on_both_grounds(ground):
    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        return sum(
            w * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
            for w, c in zip((0.2126, 0.7152, 0.0722), parts, strict=True)
        )

    for colour in [*charts.SPARSITY_COLOURS.values(), *charts.ALGORITHM_COLOURS.values()]:
        low, high = sorted((luminance(colour), luminance(ground)))
        assert (high + 0.05) / (low + 0.05) >= 2.4, colour


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234, "1,234"),
        (1234.0, "1,234"),
        (0.03125, "0.0312"),
        (float("nan"), "—"),
        (None, "—"),
        ("a", "a"),
        (0, "0"),
        (float("inf"), "∞"),
    ],
)
def test_numbers_read_as_prose(value, text):
    assert book.number(value) == text


def test_a_verdict_must_be_one_of_four():
    with pytest.raises(ValueError, match="verdict: 'maybe' is not allowed"):
        book.claim("a", "b", "maybe", "c")
    assert "Holds in part" in book.claim("a", "b", "holds in part", "c")
