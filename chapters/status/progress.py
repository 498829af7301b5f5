"""How much of what is planned is measured."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.page import boxes
from lib.page.prose import Html
from lib.wording import number

BARS = """<style>
.book-progress { display: grid;
  grid-template-columns: minmax(9rem, 3fr) minmax(5rem, 4fr) auto auto; gap: .15rem .8rem;
  font-size: .85rem; align-items: center; margin: 1rem 0; } .book-progress b { font-weight: 600; }
.book-progress progress { width: 100%; height: .7rem; accent-color: #2f77b8; }
html[data-theme="dark"] .book-progress progress { color-scheme: dark; }
  .book-progress .book-right { text-align: right; }
@media (max-width: 576px) { .book-progress {
  grid-template-columns: minmax(0, 3fr) minmax(0, 2fr) auto; }
  .book-progress .book-time { display: none; } }
</style>{% macro bars(rows) %}<div class="book-progress">
<b>study</b><b></b><b class="book-right">searches</b><b class="book-right book-time">core-hours</b>
{% for row in rows %}
<span title="{{ row.title|e }}">{{ row.study }}</span>
<progress value="{{ row.done }}" max="{{ row.planned }}" aria-label="{{ row.title|e }}"></progress>
<span class="book-right">{{ row.done|count }} of {{ row.planned|count }}</span>
<span class="book-right book-time">{{ hours(row.hours) }} h</span>
{% endfor %}</div>{% endmacro %}{{ bars(rows|selectattr("lacks")) }}
<details><summary>The complete studies</summary>{{ bars(rows|rejectattr("lacks")) }}</details>"""


def progress(studies: pd.DataFrame) -> Html:
    """A bar per study, the least complete first; those that are complete are folded.

    Args:
        studies: study, title, done, planned and hours.
    """
    share = studies.done / studies.planned
    studies = studies.assign(lacks=share < 1).iloc[np.argsort(share, kind="stable")]
    rows = list(studies.itertuples())
    return boxes.html(BARS, rows=rows, hours=lambda h: number(round(h, 2 if h < 1 else 1)))
