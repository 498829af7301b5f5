"""A file with all that is measured."""

from __future__ import annotations

import base64
import gzip

import pandas as pd

from lib.page import boxes
from lib.page.prose import Html

LINK = """\
<p><a download="{{ name }}" href="data:application/gzip;base64,{{ packed }}">Download {{ name }}</a>\
: {{ rows|count }} rows, {{ size }} kB.</p><details><summary>What its columns hold</summary>
<table class="book-table"><thead><tr><th>column</th><th>what it holds</th></tr></thead><tbody>
{% for column, words in columns.items() %}
<tr><td><code>{{ column }}</code></td><td>{{ words }}</td></tr>
{% endfor %}</tbody></table></details>"""


def download(frame: pd.DataFrame, name: str, columns: dict[str, str]) -> Html:
    """A link that saves the frame as a compressed CSV file, over what its columns hold.

    Args:
        name: of the file, which ends in .csv.gz.
        columns: what is written, and the words for it.
    """
    text = frame[list(columns)].to_csv(index=False)
    packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    size = f"{len(packed) * 3 // 4 / 1000:,.0f}"
    return boxes.html(LINK, name=name, packed=packed, rows=len(frame), size=size, columns=columns)
