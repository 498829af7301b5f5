"""How large a batch volunteers should accumulate: peers of unequal speed that come and go, and pay
a latency every round.

Peers add up gradients until a batch of B examples is in, then exchange them for L seconds while
nobody computes.  With S examples a second in all and K* = c1/B + c2 rounds, the goal takes

    T(B) = (c1/B + c2) (B/S + L) = (c1 + c2 L S + c2 B + c1 L S / B) / S.

The last two terms have a constant product, so their sum is least where they are equal: B* = sqrt(C
L S), with the critical batch size C = c1/c2.  There T S = (sqrt(c1) + sqrt(c2 L S))^2.  Off by a
factor f, T grows by the share r (f + 1/f - 2) / (1 + r)^2 with r = B*/C: as much above as below,
and at most (f + 1/f - 2) / 4, where L S = C.

If peers go on computing while they exchange, T(B) = (c1/B + c2) max(B/S, L), if the rounds stay as
many although gradients are one round old.  Up to B = L S it falls, from there on it grows as c1 +
c2 B: B* = L S.  It is the shorter of the two while the delay multiplies the floor c2 by less than 1
+ 2 sqrt(C / (L S)).

A peer whose micro-batch of m examples is unfinished when a round ends loses half of it on average:
n peers then lose n m / (2 S) seconds a round, which counts as latency.

The setting is that of Diskin et al. (2021); derivation and simulation are ours.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lib.analysis import scaling

MOST_ROUNDS = 10**7
SLACK = 1e-9  # of a micro-batch: what rounding may take from one that is complete


def best_batch(critical: float, latency: float, speed: float, overlap: bool = False) -> float:
    """B*, the batch (examples) at which the goal is reached soonest, of a critical batch size
    (examples).

    latency: seconds of an exchange; speed: examples per second of all peers together; overlap:
    whether peers compute meanwhile. Numbers or arrays that fit.
    """
    return latency * speed if overlap else np.sqrt(critical * latency * speed)


def round_time(
    batch_size: np.ndarray, latency: float, speed: float, overlap: bool = False
) -> np.ndarray:
    """Seconds of a round [n] at these batch sizes [n] if no work is lost; the rest as
    `best_batch`.
    """
    collect = np.asarray(batch_size, float) / speed
    return np.maximum(collect, latency) if overlap else collect + latency


def to_goal(
    c1: float,
    c2: float,
    batch_size: np.ndarray,
    latency: float,
    speed: float,
    overlap: bool = False,
) -> np.ndarray:
    """T(B), seconds to the goal [n] at these batch sizes [n], of the curve c1/B + c2; the rest as
    `best_batch`.
    """
    steps = c1 / np.asarray(batch_size, float) + c2
    return steps * round_time(batch_size, latency, speed, overlap)


def most_lost(factor: float) -> float:
    """The largest share of time that a batch off by this factor loses, whatever the curve and the
    peers: where latency times speed is the critical size.
    """
    return (factor + 1 / factor - 2) / 4


# That are simulated
SETTINGS = {
    "latency": (0.25, 1.0, 4.0, 16.0),
    "speed": (25.0, 100.0, 400.0, 1600.0),
    "departures": (0.0, 1.0, 6.0),
}
LEAST = 5  # batch sizes of a curve


def fitted(curves: pd.DataFrame) -> pd.DataFrame:
    """The points of those curves whose c1/c2 is within their sizes, with c1 and c2 of their lines.

    curves: curve (its name), batch_size, steps, and more.
    """
    found = [curves[:0].assign(c1=0.0, c2=0.0)]
    for _, own in curves.groupby("curve"):
        if len(own) >= LEAST:
            line = scaling.fit(own.batch_size, np.log(own.steps))
            if own.batch_size.min() < np.exp(line.log_critical[0]) < own.batch_size.max():
                found.append(own.assign(c1=line.c1[0], c2=line.c2[0]))
    return pd.concat(found[1:] or found, ignore_index=True)


def settings(start: dict[str, float]) -> dict[str, list[float]]:
    """The latencies, speeds and departures that a figure's sliders offer, those at which it begins
    among them.
    """
    return {name: sorted({*values, start[name]}) for name, values in SETTINGS.items()}


# T(B) and B* in the language of the charts; a test evaluates both.
EXPRESSIONS = {
    "time": "({c1} / datum.batch_size + {c2}) * (datum.batch_size / {speed} + {latency})",
    "best": "sqrt({c1} / {c2} * {latency} * {speed})",
}


@dataclass(frozen=True)
class Team:
    """Volunteers.

    peers: how many there are.  speed: examples per second of those online together, on average.
    spread: standard deviation of the logarithm of a peer's speed.  stay, away: mean seconds that a
    peer is online and offline, both exponential; away 0: nobody leaves.  micro_batch: examples that
    a peer hands in at once.
    """

    peers: int = 40
    speed: float = 100.0
    spread: float = 0.5
    stay: float = 60.0
    away: float = 0.0
    micro_batch: int = 1

    @property
    def online(self) -> float:
        """The share of its time that a peer is online."""
        return self.stay / (self.stay + self.away)

    @property
    def unfinished(self) -> float:
        """Seconds that all lose a round with the micro-batches they have not finished, half a one
        each on average.
        """
        return self.peers * self.online * self.micro_batch / (2 * self.speed)

    def leaving(self, departures: float) -> Team:
        """As many online on average, but each leaves so many times per minute online, for as long
        as it stays; 0: never.

        So there are twice as many.
        """
        if not departures:
            return self
        return replace(self, peers=2 * self.peers, stay=60 / departures, away=60 / departures)

    def rates(self, random: np.random.Generator) -> np.ndarray:
        """Micro-batches per second of every peer [peers], drawn."""
        drawn = np.exp(self.spread * random.standard_normal(self.peers))
        return drawn / drawn.sum() * self.speed / self.online / self.micro_batch


def reached(need: int, rates: np.ndarray, since: np.ndarray, now: float = 0.0) -> float:
    """When peers will have completed so many micro-batches together, in seconds.

    rates: micro-batches per second [peers]; since: when each began its first [peers], none after
    `now`, when they are fewer.
    """
    early = max((need + since @ rates) / rates.sum(), now)  # if parts of micro-batches counted
    done = np.floor((early - since) * rates + SLACK)
    short = int(need - done.sum())
    if short <= 0:
        return float(early)
    # Each completes so many more at most
    times = since + (done + np.arange(1, short + 1)[:, None]) / rates
    return float(np.partition(times.ravel(), short - 1)[short - 1])


def simulated(
    team: Team, batch_size: int, latency: float, rounds: int, seed: int
) -> tuple[float, int]:
    """Rounds of a team that accumulates batches of this size, a multiple of its micro-batch, an
    exchange of `latency` seconds after each: mean seconds of a round, and examples handed in.

    A peer begins a micro-batch as it comes online and at the start of every round, and what it has
    not finished when it leaves, or when the batch is complete, is lost.
    """
    run = _Simulation(team, batch_size // team.micro_batch, latency, seed)
    complete = sum(run.round() for _ in range(rounds))
    return run.now / rounds, complete * team.micro_batch


class _Simulation:
    """The state of a run: the time, who is online, and when each peer comes or leaves next."""

    def __init__(self, team: Team, need: int, latency: float, seed: int):
        self.team = team
        self.need = need
        self.latency = latency
        self.random = np.random.default_rng(seed)
        self.now = 0.0
        self.rates = team.rates(self.random)
        self.online = self.random.random(team.peers) < team.online
        # A heap, by seconds
        self.changes = [(self._lasts(peer), peer) for peer in range(team.peers) if team.away]
        heapq.heapify(self.changes)

    def round(self) -> int:
        """Go on by one round, in which peers may come and leave.  Returns the micro-batches handed
        in.
        """
        start = self.now
        at = 0.0
        given = 0
        since = np.zeros(self.team.peers)
        while True:
            change = self._next() - start
            rates = self.rates[self.online]
            begun = since[self.online]
            if given + np.floor((change - begun) * rates + SLACK).sum() >= self.need:
                break
            at = change
            peer = self._change()
            if self.online[peer]:
                since[peer] = at
            else:
                given += int((at - since[peer]) * self.rates[peer])
        end = reached(self.need - given, rates, begun, at)
        self.now = start + (end + self.latency)
        while self._next() <= self.now:
            self._change()
        return given + int(np.floor((end - begun) * rates + SLACK).sum())

    def _lasts(self, peer: int) -> float:
        return self.random.exponential(self.team.stay if self.online[peer] else self.team.away)

    def _next(self) -> float:
        return self.changes[0][0] if self.changes else math.inf

    def _change(self) -> int:
        """Let the next peer come or leave; returns which."""
        at, peer = self.changes[0]
        self.online[peer] = not self.online[peer]
        heapq.heapreplace(self.changes, (at + self._lasts(peer), peer))
        return peer


# How long `round_seconds` simulates: times a peer comes and leaves, and rounds, at least
CYCLES, LEAST_ROUNDS = 6, 3
SEEDS = 2  # teams drawn for `with_micro_batches`


def round_seconds(team: Team, batch_size: int, latency: float, seed: int) -> float:
    """The mean seconds of a round, simulated; one is enough where nobody leaves."""
    cycles = CYCLES * (team.stay + team.away) / round_time(batch_size, latency, team.speed)
    rounds = max(LEAST_ROUNDS, math.ceil(cycles)) if team.away else 1
    return simulated(team, batch_size, latency, min(rounds, MOST_ROUNDS), seed)[0]


def of_settings(
    team: Team,
    sizes: Iterable[int],
    latencies: Iterable[float],
    speeds: Iterable[float],
    departures: Iterable[float],
) -> pd.DataFrame:
    """Simulated seconds of a round for every combination: latency, speed, departures
    (`Team.leaving`), batch_size, seconds.
    """
    names = ["latency", "speed", "departures", "batch_size"]
    every = pd.MultiIndex.from_product([latencies, speeds, departures, sizes], names=names)
    table = every.to_frame(index=False)
    table["seconds"] = [
        round_seconds(replace(team, speed=speed).leaving(leave), size, latency, 0)
        for latency, speed, leave, size in every
    ]
    return table


def compared(points: pd.DataFrame, rounds: pd.DataFrame) -> pd.DataFrame:
    """The formula against simulation, a row per curve and setting whose B* lies within the sizes
    measured.

    points: curve, batch_size, steps, c1, c2; rounds: of `of_settings`.  best: B*; picked: the size
    nearest to it; found: the size with the shortest simulated time; lost: by picked over found, a
    share.
    """
    rows = []
    setting = ["latency", "speed", "departures"]
    keys = ["curve", "c1", "c2", *setting]
    for key, one in points.merge(rounds, on="batch_size").groupby(keys):
        about = dict(zip(keys, key))
        best = best_batch(about["c1"] / about["c2"], about["latency"], about["speed"])
        sizes = one.batch_size.to_numpy()
        time = (one.steps * one.seconds).to_numpy()
        if sizes.min() <= best <= sizes.max():
            picked = np.lexsort((sizes, np.abs(np.log(sizes / best))))[0]
            found = sizes[np.lexsort((sizes, time))[0]]
            lost = time[picked] / time.min() - 1
            rows.append(
                {**about, "best": best, "picked": sizes[picked], "found": found, "lost": lost}
            )
    return pd.DataFrame(rows, columns=["curve", *setting, "best", "picked", "found", "lost"])


def with_micro_batches(
    team: Team, c1: float, c2: float, latency: float, micro_batches: Iterable[int]
) -> pd.DataFrame:
    """What larger micro-batches do to the best batch, on the curve c1/B + c2: a row per size of a
    micro-batch.

    unfinished: `Team.unfinished`; plain and corrected: B* without it and with it as latency; found:
    the best of simulated sizes; lost, lost_corrected: by plain and corrected over it, shares of its
    time.
    """
    rows = []
    critical = c1 / c2
    for micro in micro_batches:
        one = replace(team, micro_batch=micro)
        plain = float(best_batch(critical, latency, team.speed))
        corrected = float(best_batch(critical, latency + one.unfinished, team.speed))
        wanted = np.geomspace(plain / 4, 4 * corrected, 17)
        counts = np.maximum(np.rint(wanted / micro), 1)
        sizes = np.unique(counts.astype(int)) * micro
        drawn = [[round_seconds(one, int(b), latency, n) for b in sizes] for n in range(SEEDS)]
        time = (c1 / sizes + c2) * np.mean(drawn, axis=0)
        at = np.interp(np.log([plain, corrected]), np.log(sizes), time)
        best = int(sizes[time.argmin()])
        rows.append((micro, one.unfinished, plain, corrected, best, *(at / time.min() - 1)))
    names = ["micro_batch", "unfinished", "plain", "corrected", "found", "lost", "lost_corrected"]
    return pd.DataFrame(rows, columns=names)
