"""From timings and a critical batch size to the batch that reaches a goal soonest, and the form of
the sheet that computes the same in a browser.

Steps to a goal are taken as K (1 + C/B), with critical batch size C, and a step as a + b B seconds:
the run takes K (a + b C + b B + a C/B) seconds, which is least at B = sqrt(C a/b).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lib.page import boxes
from lib.page.prose import Html

MORE = 0.1  # share of time that the range of batches costs more than the best, at most
NONE = 1e-6  # of a step's time: what rounding leaves of a part that is not there
Points = Sequence[tuple[float, float]]  # (batch size, what was measured there)


@dataclass(frozen=True)
class Choice:
    """A batch size and what it rests on.

    overhead: seconds of a step beside its examples.  example: seconds of an example.  critical,
    best: examples.  low, high: batches between which the run takes at most `MORE` longer.  saved:
    the share of the steps that doubling the best batch saves.
    """

    overhead: float
    example: float
    critical: float
    best: float
    low: float
    high: float
    saved: float


def decide(times: Points, critical: float) -> Choice | None:
    """The batch that reaches the goal soonest; None unless a step's time has both parts.

    Args:
        times: (batch size, seconds of a step), two or more.
        critical: examples; or a noise scale in its place.
    """
    overhead, example = fitted(times, (0, 1))
    if critical <= 0 or min(overhead, example) <= NONE * times[0][1]:
        return None
    root = math.sqrt(overhead * example * critical)
    half = 1 + MORE * (overhead + example * critical + 2 * root) / root / 2
    reach = half + math.sqrt(half**2 - 1)
    best = math.sqrt(critical * overhead / example)
    saved = critical / (2 * (best + critical))
    return Choice(overhead, example, critical, best, best / reach, best * reach, saved)


def critical_of(steps: Points) -> float:
    """C = c1/c2 of c1/B + c2 through (batch size, steps to the goal); infinite if c2 is none."""
    floor, falling = fitted(steps, (0, -1))
    return falling / floor if floor > 0 else math.inf


def fitted(points: Points, powers: tuple[int, int]) -> tuple[float, float]:
    """Two factors, of B to these powers, whose sum is nearest to the points by the sum of squared
    relative distances.
    """
    sizes, values = np.asarray(points, float).T
    columns = np.stack([sizes**power for power in powers], axis=1) / values[:, None]
    first, second = np.linalg.lstsq(columns, np.ones(len(values)), rcond=None)[0]
    return float(first), float(second)


# --- the form -------------------------------------------------------------------------------------

FORM = """<style>
.book-decide { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr));
  gap: .4rem 1rem; border: 1px solid var(--pst-color-border, #ccc); border-radius: 6px;
  padding: .7rem .9rem; margin: .6rem 0; }
.book-decide label { display: block; font-size: .85rem; }
.book-decide textarea, .book-decide input { width: 100%; box-sizing: border-box; font: inherit;
  background: var(--pst-color-surface, #fff); color: inherit;
  border: 1px solid var(--pst-color-border, #888); border-radius: 4px; padding: .2rem .4rem; }
.book-decide output { grid-column: 1 / -1; font-weight: 600; }
@page { size: A4; margin: 10mm 12mm; }
@media print {
  .bd-article { font-size: 9.4pt; line-height: 1.3; }
  h1 { font-size: 17pt !important; margin: 0 !important; }
  .bd-article h2 { font-size: 11.5pt; margin: 6pt 0 2pt; }
  .bd-article p, .bd-article ul, .bd-article li { margin-top: 0 !important; margin-bottom: 2pt !important; }
  .book-decide { padding: .3rem .6rem; } .book-decide :is(textarea, input, label) { font-size: 8pt; }
  .bd-article ul { columns: 2; column-gap: 7mm; } .bd-article li { break-inside: avoid; }
  section:is(#rerun-this-page, #what-this-does-not-show) { display: none; } footer { display: none; }
}</style>
<form class="book-decide" onsubmit="return false">
<label>Batch size and seconds of a step, a pair a line
<textarea name="times" rows="3">{{ times }}</textarea></label>
<label>Batch size and steps to your goal, a pair a line; or leave empty
<textarea name="steps" rows="3"></textarea></label>
<label>Or the critical batch size or noise scale, in examples
<input name="critical" inputmode="decimal" value="{{ critical }}"></label>
<output aria-live="polite">{{ without }}</output></form>
<script>(() => {
  const form = document.querySelector(".book-decide"), out = form.querySelector("output");
  const grouped = text => /^[1-9]\\d{0,2}(,\\d{3})+(\\.\\d*)?$/.test(text);
  const number = text => {
    const plain = grouped(text) ? text.replace(/,/g, "") : text.replace(",", ".");
    return /^(\\d+\\.?\\d*|\\.\\d+)(e[-+]?\\d+)?$/i.test(plain) ? +plain : NaN; };
  // A comma alone parts two numbers, unless it may be one of thousands
  const pair = (line, example) => {
    const apart = line.replace(/,(?=\\s)|[;:]/g, " ").trim().split(/\\s+/);
    const [size, value = "", ...more] = apart.length > 1 || grouped(line) ? apart : line.split(",");
    // 1,234 seconds may be a thousand, or one and a bit
    const either = example === SECONDS && grouped(value) && !value.includes(".");
    const read = [number(size), either ? NaN : number(value)];
    if (more.length || !Number.isInteger(read[0]) || !read.every(v => v > 0))
      throw new RangeError(`The line “${line}” cannot be read: write a pair such as ${example}.`);
    return read; };
  const SECONDS = "1024 0.5", STEPS = "1024 350";
  const pairs = (text, example) => text.split(/\\n/).map(line => line.trim()).filter(Boolean)
    .map(line => pair(line, example));
  const fitted = (points, p, q) => { // least squares of relative distances
    let [a, b, c, d, e] = [0, 0, 0, 0, 0];
    for (const [size, value] of points) { const u = size ** p / value, v = size ** q / value;
      a += u * u; b += u * v; c += v * v; d += u; e += v; }
    const whole = a * c - b * b; return [(d * c - e * b) / whole, (a * e - b * d) / whole]; };
  const short = v => v >= 100 ? Math.round(+v.toPrecision(2)).toLocaleString("en") : String(+v.toPrecision(2));
  const say = () => {
    const times = pairs(form.times.value, SECONDS), steps = pairs(form.steps.value, STEPS);
    const sizes = points => new Set(points.map(p => p[0])).size;
    if (sizes(times) < 2) return "Enter the time of a step at two batch sizes or more.";
    const [overhead, example] = fitted(times, 0, 1);
    const typed = form.critical.value.trim();
    let critical = number(typed);
    if (typed && !(critical > 0)) return `“${typed}” cannot be read as a critical batch size.`;
    if (sizes(steps) > 1) { const [floor, falling] = fitted(steps, 0, -1);
      if (floor <= 0) return "Steps fall in proportion to the batch: measure a larger batch.";
      if (falling <= 0) return "Steps do not fall: measure a smaller batch."; critical = falling / floor; }
    if (!(critical > 0)) return "Enter steps at two batch sizes or more, or a critical batch size.";
    const none = {{ least }} * times[0][1];
    if (!(overhead > none)) return "A step's time is proportional to its batch: a smaller batch is as fast, and cheaper.";
    if (!(example > none)) return `A step's time does not grow: take the largest batch up to about ${short(4 * critical)}.`;
    const root = Math.sqrt(overhead * example * critical);
    const half = 1 + {{ more }} * (overhead + example * critical + 2 * root) / root / 2;
    const reach = half + Math.sqrt(half * half - 1), best = Math.sqrt(critical * overhead / example);
    return `Use about ${short(best)} examples a step. From ${short(best / reach)} to ` +
      `${short(best * reach)}, the run takes at most {{ percent }} % longer. ` +
      `The critical batch size is ${short(critical)}; doubling this batch saves ` +
      `${short(100 * critical / (2 * (best + critical)))} % of the steps.`; };
  const show = () => { try { out.textContent = say(); } catch (error) {
    if (!(error instanceof RangeError)) throw error; out.textContent = error.message; } };
  form.addEventListener("input", show); show(); })();</script>"""


def form(times: Points, critical: float) -> Html:
    """A form for timings and a critical batch size, or steps, filled with an example; without
    scripts it says that it needs them.

    Args:
        times: (batch size, seconds of a step) to begin with.
        critical: examples, to begin with.
    """
    return boxes.html(
        FORM,
        times="\n".join(f"{size:g} {seconds:.3g}" for size, seconds in times),
        critical=f"{critical:.3g}",
        more=MORE,
        least=NONE,
        percent=round(100 * MORE),
        without="The form needs JavaScript; the worked example below does not.",
    )
