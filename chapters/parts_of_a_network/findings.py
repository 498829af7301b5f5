"""What the page on parts of a network says, as numbers and words, and its figure."""

from __future__ import annotations

import altair as alt
import pandas as pd

from chapters.parts_of_a_network import experiments, network_parts
from lib.page import charts, tips, told
from lib.wording import between, percent, span, with_interval

COLOURS = (charts.ORANGE, charts.PURPLE, charts.TEAL, charts.RED)
WORDS = {"sent": "numbers sent", "adds": "multiply-adds", "steps": "training steps"}


def findings(trials: list[pd.DataFrame], *ratios: pd.DataFrame) -> dict:
    """All values of the page's sentences; of subnetworks, growing networks and halves."""
    hard = map(network_parts.hardest, ratios)
    parts, grown, cut = (own.set_index(["arm", "what", "size"]).sort_index() for own in hard)
    own = parts.loc[network_parts.PARTS]
    apart = cut.loc[network_parts.APART, "steps"]
    recovered = cut.loc[network_parts.RECOVERED].effect
    growth = grown.loc[network_parts.GROWN, "adds"]
    small = grown.loc[network_parts.SMALL, "adds"]
    ends = own[["effect", "low", "high"]]
    return told.plain(
        {
            "goal": percent(ratios[0].goal.min()),
            "local": experiments.PUBLISHED,
            "searches": sum(len(table.attrs["provenance"]) for table in trials),
            "trials": experiments.TRIALS,
            **{f"two_{what}": with_interval(*ends.loc[what, 2]) for what in network_parts.COSTS},
            "four_steps": with_interval(*ends.loc["steps", 4]),
            "eight_met": own.met["steps", 8],
            "eight_all": own.n["steps", 8],
            "most": experiments.Subnetworks.max_steps,
            "growing_most": list(experiments.GROWING_STEPS.values()),
            "halves_most": list(experiments.HALVES_STEPS.values()),
            "grown": between(*growth.effect),
            "grown_open": sum((growth.low <= 1) & (growth.high >= 1)),
            "grown_all": len(growth),
            "small": between(*small.effect),
            "missed": apart.n.sum() - apart.met.sum(),
            "halved": apart.n.sum(),
            "recovery_sent": between(*recovered["sent"]),
            "recovery": between(*recovered["steps"]),
        }
    )


def over_whole(ratios: pd.DataFrame, what: str, whole: str, sizes: str = "batch size (examples)"):
    """What each way takes over training the whole network; a menu of costs, a slider over goals.

    ratios: of `network_parts.ratios`.  what: the cost, of WORDS, that is shown at first.  whole: to
    what ways are compared, and sizes: what the sizes are, in words.
    """
    shown = ratios.dropna(subset="effect")
    shown = shown.assign(what=shown.what.map(WORDS))
    shown["interval"] = list(map(span, zip(shown.low, shown.high)))
    scale = charts.log(12)
    axis = charts.fractions(values=[2.0**n for n in range(-6, 7)])
    y = alt.Y("effect:Q", title=None, scale=scale, axis=axis)
    colours = dict(zip(shown.arm.unique(), COLOURS))
    base = alt.Chart(shown).encode(
        x=alt.X("size:O", title=sizes, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("arm:N", sort=list(colours)),
        color=charts.by_name("arm", colours),
    )
    about = {"arm:N": "way", "size:O": sizes, "effect:Q|.2r": f"over {whole}"}
    tooltip = tips.listed(about | {"interval:N": "5–95 %", "n:Q": "searches"})
    bars, _, dots = charts.curve(base, y, scale, tooltip, 80)
    costs = [word for word in WORDS.values() if word in set(shown.what)]
    menu = charts.menu("what", costs, WORDS[what], "compare")
    drawn = charts.controlled([bars, dots], menu, charts.goal_slider(sorted(shown.goal.unique())))
    title = charts.beside(f"what_chosen + ', over those of {whole}'")
    return charts.sized(alt.layer(charts.across(1, y=scale), drawn, title), 320)
