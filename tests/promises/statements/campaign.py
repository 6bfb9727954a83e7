"""Foreign statements run one after another, and what Catchment makes of the log of each."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pymysql

from catchment.demo.server import PrivateServer
from tests.promises.statements.corpus import number_of, of_file
from tests.promises.statements.guest import Guest
from tests.promises.statements.manners import manner_of
from tests.promises.statements.reading import Reader, Verdict
from tests.promises.statements.stage import Content, Stage

_LATER = 100  # statements
_OPEN = 4  # statements in one transaction
_OF_A_FILE = 120  # statements


@dataclass(frozen=True)
class Case:
    """A statement that the log tells something of: `statement` is what was run, `start` and `end` its place."""

    statement: str
    start: tuple[str, int]
    end: tuple[str, int]
    before: Content
    after: Content

    @property
    def changed(self) -> bool:
        """Whether rows of chosen tables did."""
        return self.before != self.after


@dataclass
class Tally:
    """`passed`: changed chosen rows that the run would go on over without knowing. `stops`: cases that ended a run
    although the log's rows are all there is to know, with the reason."""

    run: int = 0
    refused: int = 0
    logged: int = 0
    changed: int = 0
    stopped: int = 0
    passed: list[tuple[Case, str]] = field(default_factory=list)
    stops: list[tuple[Case, str]] = field(default_factory=list)
    unseen: list[Case] = field(default_factory=list)
    refusals: Counter[int] = field(default_factory=Counter)

    def __str__(self) -> str:
        return (
            f"{self.run} run, {self.refused} refused, {self.logged} logged, {self.changed} changed chosen rows, "
            f"{self.stopped} stopped, {len(self.stops)} of them with nothing lost, {len(self.passed)} PASSED"
        )


class Campaign:
    """Statements against one server under one `binlog_format`."""

    def __init__(self, server: PrivateServer, schema: str, binlog_format: str, settings: str = "") -> None:
        self.tally = Tally()
        self._stage = Stage(server)
        self._stage.run(f"SET GLOBAL binlog_format = {binlog_format}")
        self._stage.run(
            "DROP DATABASE IF EXISTS plain", "CREATE DATABASE plain DEFAULT CHARACTER SET utf8mb4"
        )
        self._guest = Guest(server, schema, settings)
        self._reader = Reader(server)
        self._schema = schema
        ((version,),) = server.sql("SELECT VERSION()")
        self._mysql = "mariadb" not in version.lower()
        self._content = self._stage.content()
        self._later: list[Case] = []

    def alone(self, statements: Iterable[str]) -> None:
        """Run each statement by itself against a whole stage, with names corrected, in some manner."""
        for statement in statements:
            self._guest.begin()
            start = self._stage.end()
            ran = ""
            try:
                ran = self._guest.corrected(statement, manner_of(statement, mysql=self._mysql))
                self.tally.run += 1
            except pymysql.err.MySQLError as error:
                self.tally.refused += 1
                self.tally.refusals[int(error.args[0])] += 1
            self._mend(objects=self._judge(ran or statement, start))
        self._judge_later()

    def in_order(self, file: Path, *, hooked: bool) -> None:
        """Run a file's statements one after another, on tables of its own; `hooked`: give those triggers."""
        self._guest.begin()
        self._empty()
        start, pending = self._stage.end(), 0
        for statement in of_file(file)[:_OF_A_FILE]:
            try:
                self._guest.run(statement)
                self.tally.run += 1
            except pymysql.err.MySQLError as error:
                self.tally.refused += 1
                self.tally.refusals[int(error.args[0])] += 1
            pending += 1
            if self._guest.in_transaction and pending < _OPEN:
                continue
            if self._guest.in_transaction:
                self._guest.settle(commit=number_of(statement, 3) > 0)
            self._judge(statement, start)
            if hooked and statement[:6].upper() in ("CREATE", "RENAME", "DROP T"):
                self._stage.hook()
            start, pending = self._stage.end(), 0
        self._guest.settle()
        self._judge(f"the end of {file.name}", start)
        self._judge_later()
        self._guest.close()
        self._mend()

    def close(self) -> None:
        """End all sessions."""
        self._guest.close()
        self._stage.close()

    def _empty(self) -> None:
        if self._schema != "test":
            self._stage.run(f"DROP DATABASE IF EXISTS {self._schema}", f"CREATE DATABASE {self._schema}")
            self._guest.begin()

    def _mend(self, *, objects: bool = True) -> None:
        self._guest.settle()
        if (objects and self._stage.repair()) | self._stage.shrink(self._content):
            self._content = self._stage.content()

    def _judge(self, statement: str, start: tuple[str, int]) -> bool:
        """Compare what was done with what the log makes of it; whether tables, views or routines may be others."""
        before, end = self._content, self._stage.end()
        self._content = after = self._stage.content()
        if start == end:
            if before != after:
                self.tally.unseen.append(Case(statement, start, end, before, after))
            return False
        case = Case(statement, start, end, before, after)
        verdict = self._reader.verdict(start, end, before)
        self.tally.logged += 1
        self.tally.changed += case.changed
        self.tally.stopped += bool(verdict.stopped)
        self._take(case, verdict, "")
        self._later.append(case)
        if len(self._later) >= _LATER:
            self._judge_later()
        return verdict.ddl

    def _judge_later(self) -> None:
        """Read the log of the last cases again, now that tables, views, triggers and routines are others."""
        for case in self._later:
            verdict = self._reader.verdict(case.start, case.end, case.before)
            if case.changed or verdict.stopped == "":
                self._take(case, verdict, "later: ")
        self._later.clear()

    def _take(self, case: Case, verdict: Verdict, when: str) -> None:
        if not verdict.stopped:
            if verdict.rows != case.after:
                self.tally.passed.append((case, when + " | ".join(verdict.told)[:300]))
        elif not when and not case.changed:
            self.tally.stops.append((case, verdict.stopped))


def explained(stops: Iterable[tuple[Case, str]], known: dict[str, str]) -> dict[str, list[str]]:
    """Stops by the kind that `known` gives a pattern of statement and reason; under "" those of no known kind."""
    found: dict[str, list[str]] = {}
    for case, reason in stops:
        told = f"{case.statement[:200]}  <-  {reason[:300]}"
        kind = next((kind for pattern, kind in known.items() if re.search(pattern, told, re.DOTALL)), "")
        found.setdefault(kind, []).append(told)
    return found
