"""How large a batch volunteers should accumulate: peers of unequal speed that come and go, and pay
a latency every round.

Peers accumulate gradients until a batch of B examples is complete, then exchange them for L seconds
while nobody computes.  With S examples a second in all and K* = c1/B + c2 rounds, the goal takes

    T(B) = (c1/B + c2) (B/S + L) = (c1 + c2 L S + c2 B + c1 L S / B) / S.

The last two terms have a constant product, so their sum is least where they are equal: B* = sqrt(C
L S), with the critical batch size C = c1/c2.  There T S = (sqrt(c1) + sqrt(c2 L S))^2.  If B is off
by a factor f either way, T grows by the share r (f + 1/f - 2) / (1 + r)^2 with r = B*/C; this is
at most (f + 1/f - 2) / 4, when L S = C.

The setting is that of Diskin et al. (2021); derivation and simulation are ours.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lib import forms

SLACK = 1e-9  # examples: what rounding may take from a complete one


def best_batch(critical: float, latency: float, speed: float) -> float:
    """B* (examples) from the critical batch size (examples), an exchange's latency (seconds) and
    the speed of all peers together (examples per second); numbers or arrays.
    """
    return np.sqrt(critical * latency * speed)


# Simulated: seconds, examples per second, times a peer leaves per minute online
SETTINGS = {
    "latency": [0.25, 1.0, 4.0, 16.0],
    "speed": [25.0, 100.0, 400.0, 1600.0],
    "departures": [0.0, 1.0, 6.0],
}
LEAST = 5  # batch sizes that a curve must have


def fitted(curves: pd.DataFrame) -> pd.DataFrame:
    """The points of curves whose fitted c1/c2 lies within their batch sizes, with c1 and c2.

    curves: curve (its name), batch_size, steps, and more.
    """
    parts = [curves[:0].assign(c1=0.0, c2=0.0)]
    for _, points in curves.groupby("curve"):
        if len(points) >= LEAST:
            sizes = points.batch_size
            line = forms.fit(sizes, np.log(points.steps))
            if sizes.min() < np.exp(line.log_critical[0]) < sizes.max():
                parts.append(points.assign(c1=line.c1[0], c2=line.c2[0]))
    return pd.concat(parts[1:] or parts, ignore_index=True)


@dataclass(frozen=True)
class Team:
    """Volunteers.

    peers: how many there are.  speed: examples per second of those online together, on average.
    spread: standard deviation of the logarithm of a peer's speed.  stay, away: mean seconds that a
    peer is online and offline, both exponential; away 0: nobody leaves.
    """

    peers: int = 40
    speed: float = 100.0
    spread: float = 0.5
    stay: float = 60.0
    away: float = 0.0

    @property
    def online(self) -> float:
        """The share of time that a peer is online."""
        return self.stay / (self.stay + self.away)

    def leaving(self, departures: float) -> Team:
        """The same team with peers that leave so many times per minute online and stay away as long
        as they stay online; 0: never.

        It has twice the peers, so that as many are online on average.
        """
        stays = 60 / departures if departures else 0
        return replace(self, peers=2 * self.peers, stay=stays, away=stays) if stays else self

    def rates(self, random: np.random.Generator) -> np.ndarray:
        """Draw the speed of every peer, in examples per second [peers]."""
        drawn = np.exp(self.spread * random.standard_normal(self.peers))
        return drawn / drawn.sum() * self.speed / self.online


def reached(need: int, rates: np.ndarray, since: np.ndarray, now: float = 0.0) -> float:
    """When peers will have completed `need` examples together, in seconds.

    rates: examples per second [peers]; since: when each began its first example [peers], at latest
    `now`, a time at which fewer than `need` are complete.
    """
    early = max((need + since @ rates) / rates.sum(), now)  # if fractions of examples counted
    done = np.floor((early - since) * rates + SLACK)
    short = int(need - done.sum())
    if short <= 0:
        return float(early)
    # No peer has to complete more than `short` further examples
    times = since + (done + np.arange(1, short + 1)[:, None]) / rates
    return float(np.partition(times.ravel(), short - 1)[short - 1])


def simulated(
    team: Team, batch_size: int, latency: float, rounds: int, seed: int
) -> tuple[float, int]:
    """Simulate a team that accumulates batches of this size, with an exchange of `latency` seconds
    after each.  Returns the mean seconds of a round, and the number of examples completed.

    A peer begins an example when it comes online and at the start of every round; an example not
    finished when the peer leaves, or when the batch is complete, is lost.
    """
    run = _Simulation(team, batch_size, latency, seed)
    complete = sum(run.round() for _ in range(rounds))
    return run.now / rounds, complete


class _Simulation:
    """The state of a run: the time, who is online, and when each peer next comes or leaves."""

    def __init__(self, team: Team, need: int, latency: float, seed: int):
        self.team, self.need, self.latency = team, need, latency
        self.random = np.random.default_rng(seed)
        self.now = 0.0
        self.rates = team.rates(self.random)
        self.online = self.random.random(team.peers) < team.online
        # A heap ordered by time
        self.changes = [(self._lasts(peer), peer) for peer in range(team.peers) if team.away]
        heapq.heapify(self.changes)

    def round(self) -> int:
        """Simulate a round, in which peers come and leave.  Returns the examples completed."""
        start = self.now
        now, complete = 0.0, 0
        since = np.zeros(self.team.peers)
        while True:
            change = self._next() - start
            rates = self.rates[self.online]
            begun = since[self.online]
            if complete + np.floor((change - begun) * rates + SLACK).sum() >= self.need:
                break
            now = change
            peer = self._change()
            if self.online[peer]:
                since[peer] = now
            else:
                complete += int((now - since[peer]) * self.rates[peer])
        end = reached(self.need - complete, rates, begun, now)
        self.now = start + (end + self.latency)
        while self._next() <= self.now:
            self._change()
        return complete + int(np.floor((end - begun) * rates + SLACK).sum())

    def _lasts(self, peer: int) -> float:
        return self.random.exponential(self.team.stay if self.online[peer] else self.team.away)

    def _next(self) -> float:
        return self.changes[0][0] if self.changes else math.inf

    def _change(self) -> int:
        """Let the next peer come or leave; returns its index."""
        seconds, peer = self.changes[0]
        self.online[peer] = not self.online[peer]
        heapq.heapreplace(self.changes, (seconds + self._lasts(peer), peer))
        return peer


# Minimal length of a simulation in `round_seconds`: peers' cycles of online and away, and rounds
CYCLES, LEAST_ROUNDS = 6, 3


def round_seconds(team: Team, batch_size: int, latency: float) -> float:
    """The mean simulated seconds of a round; one round is enough if nobody leaves."""
    cycles = CYCLES * (team.stay + team.away) / (batch_size / team.speed + latency)
    rounds = max(LEAST_ROUNDS, math.ceil(cycles)) if team.away else 1
    return simulated(team, batch_size, latency, rounds, seed=0)[0]


def of_settings(team: Team, sizes: list[int]) -> pd.DataFrame:
    """Simulated seconds of a round in all SETTINGS at these batch sizes: latency, speed, departures
    (`Team.leaving`), batch_size, seconds.
    """
    names = [*SETTINGS, "batch_size"]
    settings = pd.MultiIndex.from_product([*SETTINGS.values(), sizes], names=names)
    seconds = [
        round_seconds(replace(team, speed=speed).leaving(departures), size, latency)
        for latency, speed, departures, size in settings
    ]
    return settings.to_frame(index=False).assign(seconds=seconds)


def compared(points: pd.DataFrame, rounds: pd.DataFrame) -> pd.DataFrame:
    """The formula against simulation, a row per curve and setting whose B* lies within the measured
    sizes.

    points: curve, batch_size, steps, c1, c2; rounds: from `of_settings`.  Returns, among others,
    picked (the size nearest to B*) and lost (its simulated time over the shortest, minus one).
    """
    names = ["curve", *SETTINGS]
    table = points.merge(rounds, on="batch_size").sort_values("batch_size", ignore_index=True)
    table["time"] = table.steps * table.seconds
    table["best"] = best_batch(table.c1 / table.c2, table.latency, table.speed)
    table["off"] = np.abs(np.log(table.batch_size / table.best))
    settings = table.groupby(names)
    sizes = settings.batch_size
    table["inside"] = table.best.between(sizes.transform("min"), sizes.transform("max"))
    # Ties go to the smaller size
    picked, fastest = (table.loc[settings[by].idxmin()] for by in ("off", "time"))
    picked["lost"] = picked.time / fastest.time.to_numpy() - 1
    columns = [*names, "batch_size", "lost"]
    return picked.loc[picked.inside, columns].rename(columns={"batch_size": "picked"})
