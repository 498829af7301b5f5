"""The ledger of all claims: verdicts at a glance, and everything about each."""

from __future__ import annotations

from collections.abc import Iterable

from lib.claims import PAPERS
from lib.page import boxes
from lib.page.prose import Html

SIGNS = {"for": "✓", "against": "✗", "not decided": "?"}
KINDS = {"for": "yes", "against": "no", "not decided": "open"}  # of a network's verdict

MATRIX = """<style>
.book-matrix { display: grid;
  grid-template-columns: auto minmax(9rem, 3fr) minmax(5rem, 2fr) minmax(8rem, 3fr);
  gap: .25rem .7rem; font-size: .85rem; align-items: baseline; margin: .6rem 0 1.2rem; }
.book-matrix a { color: inherit; }
.book-matrix > b { border-bottom: 1px solid var(--pst-color-border, #ccc); }
.book-chips span { display: inline-block; width: 1.25em; text-align: center; border-radius: 3px;
  margin: 0 .12em .12em 0;
  border: 1px solid currentColor; line-height: 1.3; opacity: .8; }
.book-chips .book-own { border-width: 2px; font-weight: 700; opacity: 1; }
.book-chips .book-yes { color: var(--book-yes, #17786c); }
.book-chips .book-no { color: var(--book-no, #bf3549); }
.book-chips .book-open { color: var(--pst-color-text-muted, #666); }
@media (max-width: 576px) { .book-matrix { grid-template-columns: 2.4rem minmax(0, 1fr); }
  .book-matrix > b:nth-child(-n+4) { display: none; }
  .book-matrix > :is(:nth-child(4n+3), :nth-child(4n)) { grid-column: 2; }
  .book-matrix > :nth-child(4n+3) { font-weight: 600; }
  .book-matrix > :nth-child(4n) { margin-bottom: .6rem; } }
.book-papers { border: 0; padding: 0; margin: 1rem 0 0; font-size: .9rem; }
.book-papers label { margin-right: .9rem; }
.book-papers legend { float: left; font-size: inherit; width: auto; margin: 0 .9rem 0 0; }
@media print { .book-papers { display: none !important; } }
.book-claim { border-bottom: 1px solid var(--pst-color-border, #ccc); padding: .1rem 0; }
.book-claim > summary { cursor: pointer; font-size: .9rem; }
{% for letter in papers %}
body:has(#paper-{{ letter }}:checked) [data-paper]:not([data-paper="{{ letter }}"]) { display: none; }
{% endfor %}</style>
<fieldset class="book-papers"><legend>Claims of</legend>
<label><input type="radio" name="paper" id="paper-all" checked> all</label>
{% for letter, title in papers.items() %}
<label><input type="radio" name="paper" id="paper-{{ letter }}"> {{ title }}</label>
{% endfor %}</fieldset>
<div class="book-matrix"><b></b><b>claim</b><b>verdict</b><b>on each network (bold: the paper’s own)</b>
{% for claim in judged %}
<a data-paper="{{ claim.key[0] }}" href="#claim-{{ claim.key }}">{{ claim.key }}</a>
<span data-paper="{{ claim.key[0] }}">{{ claim.title }}</span>
<span data-paper="{{ claim.key[0] }}">{{ claim.verdict }}</span>
<span data-paper="{{ claim.key[0] }}" class="book-chips">
{%- for g in claim.groups|sort(attribute="own", reverse=true) -%}
<span class="book-{{ kinds[g.verdict] }}{{ " book-own" if g.own }}" title="{{ told(g, claim.scale)|e }}">
{{- signs[g.verdict] }}</span>
{%- endfor %}</span>
{% endfor %}</div>"""
# Linked to, a claim opens.
DETAILS = """\
{% for claim, box in judged %}
<details class="book-claim" id="claim-{{ claim.key }}" data-paper="{{ claim.key[0] }}"><summary><b>
{{- claim.key }}</b> {{ claim.title }}: {{ claim.verdict }}</summary>{{ box }}
<p>Rule since {{ since(claim) }}. The number of searches was {{ "not " if not claim.fixed }}fixed in advance.</p>
{% if claim.history %}<ul>{% for change in claim.history %}
<li>Until {{ change.when }}: {{ change.was.rstrip(".") }}. Changed
{{ "with the records known" if change.records_known else "before the records were known" }}: {{ change.why }}.</li>
{% endfor %}</ul>{% endif %}
<p><a href="{{ claim.chapter }}.html">The chapter that measures it</a></p></details>
{% endfor %}
<script>(() => { const open = () => { const at = document.getElementById(location.hash.slice(1));
  if (at && at.tagName === "DETAILS") { at.open = true; at.scrollIntoView(); } };
  addEventListener("hashchange", open); addEventListener("load", open); })();</script>"""


def told(group, scale: str) -> str:
    """A network's effect in one line: "MLP on digits: 1.5 (1.2 to 1.8), n = 10, for"."""
    if not group.n:
        return f"{group.name}: not measured"
    effect, low, high = boxes.numbers(group, scale)
    return f"{group.name}: {effect} ({low} to {high}), n = {group.n}, {group.verdict}"


def matrix(judged: Iterable) -> Html:
    """A row per claim: key, title, the word that sums it up, and a sign per network, the paper's own
    before all; a sign's title says the numbers.  Above, a choice among the papers.
    """
    judged = list(judged)
    letters = {claim.key[0] for claim in judged}
    papers = {letter: title for letter, title in PAPERS.items() if letter in letters}
    words = {"kinds": KINDS, "signs": SIGNS, "told": told}
    return boxes.html(MATRIX, judged=judged, papers=papers, **words)


def details(judged: Iterable) -> Html:
    """Everything about each claim, folded; #claim-KEY opens one."""
    both = [(claim, boxes.claim(claim)) for claim in judged]
    return boxes.html(DETAILS, judged=both, since=since)


def since(claim) -> str:
    """When its rule got its present form."""
    return max([claim.since, *(change.when for change in claim.history)])
