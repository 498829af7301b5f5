"""How large a batch volunteers should accumulate: peers of unequal speed that come and go, and pay
a latency every round.

Peers add up gradients until a batch of B examples is in, then exchange them for L seconds while
nobody computes.  With S examples a second in all and K* = c1/B + c2 rounds, the goal takes

    T(B) = (c1/B + c2) (B/S + L) = (c1 + c2 L S + c2 B + c1 L S / B) / S.

The last two terms have a constant product, so their sum is least where they are equal: B* = sqrt(C
L S), with the critical batch size C = c1/c2.  There T S = (sqrt(c1) + sqrt(c2 L S))^2.  Off by a
factor f, T grows by the share r (f + 1/f - 2) / (1 + r)^2 with r = B*/C: as much above as below,
and at most (f + 1/f - 2) / 4, where L S = C.

The setting is that of Diskin et al. (2021); derivation and simulation are ours.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lib.analysis import scaling

SLACK = 1e-9  # of an example: what rounding may take from one that is complete


def best_batch(critical: float, latency: float, speed: float) -> float:
    """B* (examples) of a critical batch size (examples), an exchange's latency (seconds) and the
    speed of all peers together (examples per second); numbers or arrays.
    """
    return np.sqrt(critical * latency * speed)


# That are simulated: seconds, examples per second, times a peer leaves per minute online
SETTINGS = {
    "latency": [0.25, 1.0, 4.0, 16.0],
    "speed": [25.0, 100.0, 400.0, 1600.0],
    "departures": [0.0, 1.0, 6.0],
}
LEAST = 5  # batch sizes of a curve


def fitted(curves: pd.DataFrame) -> pd.DataFrame:
    """The points of those curves whose c1/c2 is within their sizes, with c1 and c2 of their lines.

    curves: curve (its name), batch_size, steps, and more.
    """
    parts = [curves[:0].assign(c1=0.0, c2=0.0)]
    for _, points in curves.groupby("curve"):
        if len(points) >= LEAST:
            sizes = points.batch_size
            line = scaling.fit(sizes, np.log(points.steps))
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
        """The share of its time that a peer is online."""
        return self.stay / (self.stay + self.away)

    def leaving(self, departures: float) -> Team:
        """As many online on average, but each leaves so many times per minute online, for as long
        as it stays; 0: never.

        So there are twice as many.
        """
        stays = 60 / departures if departures else 0
        return replace(self, peers=2 * self.peers, stay=stays, away=stays) if stays else self

    def rates(self, random: np.random.Generator) -> np.ndarray:
        """Examples per second of every peer [peers], drawn."""
        drawn = np.exp(self.spread * random.standard_normal(self.peers))
        return drawn / drawn.sum() * self.speed / self.online


def reached(need: int, rates: np.ndarray, since: np.ndarray, now: float = 0.0) -> float:
    """When peers will have completed so many examples together, in seconds.

    rates: examples per second [peers]; since: when each began its first [peers], none after `now`,
    when they are fewer.
    """
    early = max((need + since @ rates) / rates.sum(), now)  # if parts of examples counted
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
    """Rounds of a team that accumulates batches of this size, an exchange of `latency` seconds
    after each: mean seconds of a round, and examples handed in.

    A peer begins an example as it comes online and at the start of every round, and what it has not
    finished when it leaves, or when the batch is complete, is lost.
    """
    run = _Simulation(team, batch_size, latency, seed)
    complete = sum(run.round() for _ in range(rounds))
    return run.now / rounds, complete


class _Simulation:
    """The state of a run: the time, who is online, and when each peer comes or leaves next."""

    def __init__(self, team: Team, need: int, latency: float, seed: int):
        self.team, self.need, self.latency = team, need, latency
        self.random = np.random.default_rng(seed)
        self.now = 0.0
        self.rates = team.rates(self.random)
        self.online = self.random.random(team.peers) < team.online
        # A heap, by seconds
        self.changes = [(self._lasts(peer), peer) for peer in range(team.peers) if team.away]
        heapq.heapify(self.changes)

    def round(self) -> int:
        """Go on by one round, in which peers come and leave.  Returns the examples handed in."""
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
        """Let the next peer come or leave; returns which."""
        seconds, peer = self.changes[0]
        self.online[peer] = not self.online[peer]
        heapq.heapreplace(self.changes, (seconds + self._lasts(peer), peer))
        return peer


# How long `round_seconds` simulates: times a peer comes and leaves, and rounds, at least
CYCLES, LEAST_ROUNDS = 6, 3


def round_seconds(team: Team, batch_size: int, latency: float) -> float:
    """The mean seconds of a round, simulated; one is enough where nobody leaves."""
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
    """The formula against simulation, a row per curve and setting whose B* lies within the sizes
    measured.

    points: curve, batch_size, steps, c1, c2; rounds: from `of_settings`.  picked: the size
    nearest to B*; lost: its simulated time over the shortest, less one.
    """
    names = ["curve", *SETTINGS]
    table = points.merge(rounds, on="batch_size").sort_values("batch_size", ignore_index=True)
    table["time"] = table.steps * table.seconds
    table["best"] = best_batch(table.c1 / table.c2, table.latency, table.speed)
    table["off"] = np.abs(np.log(table.batch_size / table.best))
    settings = table.groupby(names)
    sizes = settings.batch_size
    table["inside"] = table.best.between(sizes.transform("min"), sizes.transform("max"))
    # Of two as near, or as fast, the smaller
    picked, fastest = (table.loc[settings[by].idxmin()] for by in ("off", "time"))
    picked["lost"] = picked.time / fastest.time.to_numpy() - 1
    columns = [*names, "batch_size", "lost"]
    return picked.loc[picked.inside, columns].rename(columns={"batch_size": "picked"})
