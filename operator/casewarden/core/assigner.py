"""Who may start how many pods: a maximum flow from the pools of agents through the runs to the pools of tasks. Pure.

A run joins at most one pool of each side; an edge of the flow network stands for all runs of one pair of pools. What a
run has stays its own until its pods end: nothing is taken away from a run that goes on. What is free is given out by
level, the highest first. A level's flow is maximal on what the levels above have left; among the ways to reach that
maximum the longest-waiting run comes first, one slot after the other.

A run's level is its priority's rank. A run that has no slot at all rises by one level for every ``LIFT_SECONDS`` that
it waits, in the end above all ranks. There a free slot of one of its pools is kept for it until the other pool has one
too: otherwise runs that need less would take every slot in its place, and it would starve.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from networkx import DiGraph
from networkx.algorithms.flow import edmonds_karp

__all__ = ["LIFT_SECONDS", "Assignment", "Demand", "Pool", "assign"]

LIFT_SECONDS: Final = 300.0

Side = Literal["agents", "tasks"]
Pair = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True, order=True)
class Pool:
    """A pool's name; an endpoint and a task may be called the same."""

    side: Side
    name: str


@dataclass(frozen=True, slots=True)
class Demand:
    """A run that wants slots.

    ``used`` pods hold a slot each, whatever the limits say. ``granted`` is what the run was given, those included.
    ``wanted`` is how many pods it could have at once, those included. ``since`` is when it got a slot last, or when it
    came. A side without a pool is None and has no limit.
    """

    run: str
    agents: str | None
    tasks: str | None
    wanted: int
    used: int = 0
    granted: int = 0
    priority: int = 0
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class Assignment:
    """Slots per run, those in use included, and how many free slots of a pool are kept for runs that starve."""

    slots: Mapping[str, int]
    kept: Mapping[Pool, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Claim:
    """A run's wish for more, at one level."""

    demand: Demand
    units: int
    order: tuple[bool, float, str]

    @property
    def pair(self) -> Pair:
        return self.demand.agents, self.demand.tasks


def assign(limits: Mapping[Pool, int], demands: Sequence[Demand], now: float) -> Assignment:
    """Return what every run may have now. A pool that ``limits`` lacks has no limit."""
    free = dict(limits)
    slots = {demand.run: demand.used for demand in demands}
    for demand in demands:
        _take(free, demand, demand.used)
    for demand in demands:
        # A slot that was given and is not used yet stays given, unless the limits have become smaller.
        kept = min(max(0, min(demand.granted, demand.wanted) - demand.used), _room(free, demand))
        _take(free, demand, kept)
        slots[demand.run] += kept
    kept_free: dict[Pool, int] = defaultdict(int)
    for level, claims in _levels(demands, slots, free, now):
        for run, more in _give(claims, free).items():
            slots[run] += more
        if level < 0:
            _keep_for_the_starving(claims, slots, free, kept_free)
    return Assignment(slots, dict(kept_free))


def _pools(demand: Demand) -> Iterator[Pool]:
    if demand.agents is not None:
        yield Pool("agents", demand.agents)
    if demand.tasks is not None:
        yield Pool("tasks", demand.tasks)


def _room(free: Mapping[Pool, int], demand: Demand) -> int:
    return max(0, min((free[pool] for pool in _pools(demand) if pool in free), default=max(demand.wanted, 0)))


def _take(free: dict[Pool, int], demand: Demand, count: int) -> None:
    for pool in _pools(demand):
        if pool in free:
            free[pool] -= count


def _levels(
    demands: Sequence[Demand], slots: Mapping[str, int], free: Mapping[Pool, int], now: float
) -> Iterator[tuple[int, list[_Claim]]]:
    """Yield the claims of each level, the highest first; what is waited for past the top has negative levels."""
    ranks = {priority: rank for rank, priority in enumerate(sorted({item.priority for item in demands}, reverse=True))}
    levels: dict[int, list[_Claim]] = defaultdict(list)
    for demand in demands:
        units = demand.wanted - slots[demand.run]
        if units <= 0:
            continue
        level = ranks[demand.priority]
        has_some = slots[demand.run] > 0
        lifted = level if has_some else level - int(max(0.0, now - demand.since) // LIFT_SECONDS)
        if lifted < level:
            # Waiting earns one slot; what is beyond it waits at the run's own level.
            levels[lifted].append(_Claim(demand, 1, (False, demand.since, demand.run)))
            units, has_some = units - 1, True
        if units > 0:
            levels[level].append(_Claim(demand, units, (has_some, demand.since, demand.run)))
    for level in sorted(levels):
        claims = [claim for claim in levels[level] if level < 0 or _room(free, claim.demand) > 0]
        yield level, sorted(claims, key=lambda claim: claim.order)


def _keep_for_the_starving(
    claims: Iterable[_Claim], slots: Mapping[str, int], free: dict[Pool, int], kept: dict[Pool, int]
) -> None:
    for claim in claims:
        if slots[claim.demand.run] > 0:
            continue
        for pool in _pools(claim.demand):
            if free.get(pool, 0) > 0:
                free[pool] -= 1
                kept[pool] += 1


def _give(claims: Sequence[_Claim], free: dict[Pool, int]) -> dict[str, int]:
    """Give one level its slots: as many as can be, the longest-waiting first."""
    open_claims = [claim for claim in claims if _room(free, claim.demand) > 0]
    given: dict[str, int] = defaultdict(int)
    if not open_claims:
        return given
    level = _Level(open_claims, free)
    rounds = deque((claim, claim.units) for claim in open_claims)
    while rounds and not level.is_spent:
        claim, units = rounds.popleft()
        if not level.grant(claim.pair):
            continue
        given[claim.demand.run] += 1
        _take(free, claim.demand, 1)
        if units > 1:
            rounds.append((claim, units - 1))
    return given


_Node = tuple[str, str | None]
_Edge = tuple[_Node, _Node]
_SOURCE: Final[_Node] = ("source", None)
_SINK: Final[_Node] = ("sink", None)


class _Level:
    """A maximum flow of one level that is bent, slot by slot, towards whoever comes first, and stays maximal."""

    def __init__(self, claims: Sequence[_Claim], free: Mapping[Pool, int]) -> None:
        self._limits: dict[_Edge, int] = defaultdict(int)
        for claim in claims:
            self._limits[_middle(claim.pair)] += claim.units
        everything = sum(self._limits.values())
        for agents, tasks in list(self._limits):
            self._limits[_SOURCE, agents] = _limit(free, agents, everything)
            self._limits[tasks, _SINK] = _limit(free, tasks, everything)
        self._out: dict[_Node, list[_Edge]] = defaultdict(list)
        self._into: dict[_Node, list[_Edge]] = defaultdict(list)
        for edge in self._limits:
            self._out[edge[0]].append(edge)
            self._into[edge[1]].append(edge)
        self._flow: dict[_Edge, int] = dict.fromkeys(self._limits, 0)
        self._fill(claims)
        self._complete()
        self._granted: dict[_Edge, int] = defaultdict(int)
        self._left = sum(self._flow[edge] for edge in self._out[_SOURCE])
        self._hopeless: set[_Edge] = set()

    @property
    def is_spent(self) -> bool:
        """Whether the whole flow has been given out."""
        return self._left == 0

    def grant(self, pair: Pair) -> bool:
        """Give a slot to a pair of pools if a maximum flow allows it that has all that was granted before."""
        edge = _middle(pair)
        # What was granted stays, so what could not be bent once never can.
        if edge in self._hopeless:
            return False
        if self._flow[edge] == self._granted[edge] and not self._bend(edge):
            self._hopeless.add(edge)
            return False
        self._granted[edge] += 1
        self._left -= 1
        return True

    def _fill(self, claims: Sequence[_Claim]) -> None:
        """Give in the order of claims for as long as that goes by itself: most of it will not have to be bent later."""
        rounds = deque((claim.pair, claim.units) for claim in claims)
        while rounds:
            pair, units = rounds.popleft()
            agents, tasks = _middle(pair)
            path = ((_SOURCE, agents), (agents, tasks), (tasks, _SINK))
            if all(self._flow[edge] < self._limits[edge] for edge in path):
                for edge in path:
                    self._flow[edge] += 1
                if units > 1:
                    rounds.append((pair, units - 1))

    def _complete(self) -> None:
        """Make the flow maximal."""
        graph = DiGraph()
        for edge, limit in self._limits.items():
            start, end = edge
            graph.add_edge(start, end, capacity=limit - self._flow[edge])
            graph.add_edge(end, start, capacity=self._flow[edge])
        residual = edmonds_karp(graph, _SOURCE, _SINK)
        for start, end in self._limits:
            self._flow[start, end] += int(residual[start][end]["flow"])

    def _bend(self, edge: _Edge) -> bool:
        """Move a unit of flow to an edge and leave the total as it is; False where granted slots forbid it."""
        goal, start = edge
        came: dict[_Node, tuple[_Node, _Edge, int]] = {}
        seen, queue = {start}, deque([start])
        while queue and goal not in seen:
            node = queue.popleft()
            for after, over, change in self._moves(node):
                if after not in seen:
                    seen.add(after)
                    came[after] = (node, over, change)
                    queue.append(after)
        if goal not in seen:
            return False
        node = goal
        while node != start:
            node, over, change = came[node]
            self._flow[over] += change
        self._flow[edge] += 1
        return True

    def _moves(self, node: _Node) -> Iterator[tuple[_Node, _Edge, int]]:
        """Yield the residual network's edges from a node: where to, over which edge, how its flow changes."""
        for edge in self._out[node]:
            if self._flow[edge] < self._limits[edge]:
                yield edge[1], edge, 1
        for edge in self._into[node]:
            if self._flow[edge] > self._granted[edge]:
                yield edge[0], edge, -1


def _middle(pair: Pair) -> _Edge:
    return ("agents", pair[0]), ("tasks", pair[1])


def _limit(free: Mapping[Pool, int], node: _Node, everything: int) -> int:
    side: Side = "agents" if node[0] == "agents" else "tasks"
    return everything if node[1] is None else max(0, free.get(Pool(side, node[1]), everything))
