"""Compares what a run saw with the log as mysql-replication reads it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from catchment.demo.server import PrivateServer
from tests.promises.hidden.follow import Claim, CopiedRows, Seen
from tests.promises.hidden.ledger import Change, read_groups
from tests.world.log_groups import Place


@dataclass
class Verdict:
    """What was wrong; the numbers say how much was looked at."""

    cuts: int = 0
    chunks: int = 0
    claims: int = 0
    wrong_chunks: list[str] = field(default_factory=list)
    wrong_claims: list[str] = field(default_factory=list)
    wrong_segments: list[str] = field(default_factory=list)


@dataclass
class _State:
    """Tables at a place of the log; `told`: transactions per writer."""

    rows: dict[int, str]
    told: dict[int, int]

    def apply(self, changes: Iterable[Change]) -> None:
        for table, before, after in changes:
            if table == "d.told":
                assert after is not None
                self.told[after["writer"]] = after["n"]
            elif table == "d.t":
                if before is not None:
                    assert self.rows.pop(before["id"]) == before["v"]
                if after is not None:
                    self.rows[after["id"]] = after["v"]


@dataclass(frozen=True)
class Base:
    """The tables while nobody wrote, at the place where the judge begins."""

    at: Place
    rows: dict[int, str]
    told: dict[int, int]


def take_base(server: PrivateServer) -> Base:
    """Rows of now; nobody may write."""
    at = Place(*server.log_end())
    base = Base(at, dict(server.sql("SELECT * FROM d.t")), dict(server.sql("SELECT * FROM d.told")))
    assert Place(*server.log_end()) == at
    return base


def judge(server: PrivateServer, base: Base, seen: Seen) -> Verdict:
    """Replay the log and compare at every place that the run speaks of."""
    verdict = Verdict(len(seen.segments) - 1, len(seen.chunks), len(seen.claims))
    questions: list[tuple[Place, CopiedRows | Claim]] = [(c.cut, c) for c in seen.chunks]
    questions += [(c.sealed, c) for c in seen.claims]
    questions.sort(key=lambda question: question[0], reverse=True)
    state = _State(dict(base.rows), dict(base.told))
    sequences: dict[Place, int] = {}
    for group in read_groups(server.login(), base.at):
        while questions and questions[-1][0] < group.end:
            _answer(questions.pop()[1], state, verdict)
        state.apply(group.changes)
        sequences[group.end] = group.sequence
    while questions:
        _answer(questions.pop()[1], state, verdict)
    _judge_segments(seen, sequences, verdict)
    return verdict


def _answer(question: CopiedRows | Claim, state: _State, verdict: Verdict) -> None:
    if isinstance(question, Claim):
        _judge_claim(question, state, verdict)
    else:
        _judge_chunk(question, state, verdict)


def _judge_chunk(chunk: CopiedRows, state: _State, verdict: Verdict) -> None:
    wanted = {key: value for key, value in state.rows.items() if chunk.lo < key <= chunk.hi}
    if chunk.rows != wanted:
        keys = [k for k in sorted(chunk.rows.keys() | wanted.keys()) if chunk.rows.get(k) != wanted.get(k)]
        verdict.wrong_chunks.append(f"({chunk.lo}, {chunk.hi}] at {chunk.cut}: keys {keys}")


def _judge_claim(claim: Claim, state: _State, verdict: Verdict) -> None:
    unseen = {w: n for w, n in state.told.items() if claim.told.get(w, 0) < n}
    if unseen:
        verdict.wrong_claims.append(f"{claim.sealed}: transactions {unseen}, a new SELECT shows {claim.told}")


def _judge_segments(seen: Seen, sequences: dict[Place, int], verdict: Verdict) -> None:
    """Sequence numbers have no gaps in a log of one server and domain: a group skipped shows at once."""
    for (at, before, _), (to, after, count) in pairwise(seen.segments):
        if after - before != count:
            verdict.wrong_segments.append(f"{at} to {to}: {count} groups of {after - before}")
        if to in sequences and sequences[to] != after:
            verdict.wrong_segments.append(f"{to}: GTID sequence {after}, the log has {sequences[to]}")
