"""How do many processes share one engine? By one Ray actor that scores, and hands every caller its own answers.

One process is one truth: judge limits, the journal, groups that wait for their members, and running statistics. Ray starts the
actor, finds it by name, and tells where it listens; rollouts and answers go over a stream of each caller's own
(`plaudit.ray.door`), many at a time, because a Ray call for each would cost more than scoring it.

What must hold: a rollout that was handed in is answered exactly once, whatever fails.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import plaudit
from plaudit.ray.door import Door, Life, Outbox
from plaudit.ray.siblings import Siblings
from plaudit.ray.steps import Steps
from plaudit.report import flat

log = logging.getLogger("plaudit")

# Rewards of the caller's own are asked about so many single rollouts at a time: each takes a thread or two.
SIDE_BY_SIDE = 128


class Terms(NamedTuple):
    """What makes two actors the same: the recipe with all that changes it, and how groups are waited for."""

    recipe: Any
    overrides: dict[str, Any] | None = None
    state: str | None = None
    imports: tuple[str, ...] = ()
    timeout: float | None = None
    quiet: float | None = None
    examine: int = 0
    share: int = 1

    def engine(self, *, state: bool = True) -> plaudit.Engine:
        """The engine of these terms; without its state where it is only asked what it is."""
        for module in self.imports:
            importlib.import_module(module)
        kept = self.state if state else None
        return plaudit.Engine(self.recipe, overrides=self.overrides, state=kept, share=self.share)


class Kind(NamedTuple):
    """What a rollout is counted under."""

    step: int | None
    validate: bool
    source: str


class Left(NamedTuple):
    """Word of a sibling that will never come."""

    group: str
    member: str | None
    size: int


class Rollout(NamedTuple):
    """One response on its way to the actor."""

    group: str
    member: str | None
    size: int
    response: str
    prompt: Any = None
    reference: str | None = None
    tokens: int | None = None
    extra: dict[str, Any] | None = None
    validate: bool = False
    source: str = ""
    step: int | None = None

    def kind(self) -> Kind:
        """What it is counted under."""
        return Kind(self.step, self.validate, self.source)


class Answer(NamedTuple):
    """What one caller gets: plain values that travel well."""

    total: float | None
    outcome: str
    reason: dict[str, Any] | None = None
    components: dict[str, float | None] = {}
    info: dict[str, Any] = {}
    group_size: int = 1
    partial: bool = False
    late: bool = False
    duplicate: bool = False
    waited: float = 0.0
    siblings_mean: float | None = None
    examine: bool = False
    # Whether it is known what the siblings got: otherwise that there is no mean says nothing of them.
    siblings_known: bool = True

    @classmethod
    def invalid(cls, code: str, message: str, waited: float = 0.0) -> Answer:
        """The answer where nothing could be scored, and nobody has asked what the siblings got."""
        reason = {"code": code, "component": None, "message": message}
        return cls(None, "invalid", reason, waited=waited, siblings_known=False)


class SharedEngine:
    """The actor's class. `plaudit.ray.connection` starts it by name, and starts it again when it dies."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.engine = terms.engine()
        compares = self.engine.compares_groups
        # Only what compares responses waits for the group.
        self.join = self.engine.join(timeout=terms.timeout, quiet=terms.quiet) if compares else None
        self.timeout = terms.timeout if terms.timeout is not None else self.engine.timeout
        self.door = Door(self._receive)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.mailbox = self.join._completion_queue(self._wake) if self.join is not None else None
        # What the join has, by the number that its answer comes under.
        self.joining: dict[int, tuple[Outbox, int, Kind]] = {}
        self.numbers = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self.siblings = Siblings()
        self.steps = Steps(self.engine.components, terms.examine)
        self.miscounted = False
        brought = {each.per for each in self.engine._functions.values()}
        # Where a single rollout may take long, it must not hold up those that came with it; but a function that takes many
        # at once is given many.
        self.singly = bool(brought or self.engine.judges) and "batch" not in brought
        self.room = asyncio.Semaphore(SIDE_BY_SIDE if brought else 1 << 30)

    async def alive(self) -> Life:
        """The name of this life of the actor, and how a stream to it is opened."""
        from ray.util import get_node_ip_address

        return await self.open(get_node_ip_address())

    async def open(self, address: str) -> Life:
        """Listens on this address, for callers and for the join's answers."""
        self.loop = asyncio.get_running_loop()
        return await self.door.open(address)

    async def status(self) -> dict[str, Any]:
        """What goes on, for people and tests."""
        return {
            "life": self.door.name,
            "pid": os.getpid(),
            "join": None if self.join is None else dict(self.join.status),
            "callers": {name: len(box.answers) for name, box in self.door.outboxes.items()},
            "scoring": len(self.tasks) + len(self.joining),
            "steps": self.steps.closed,
            "tallies": list(self.engine.tallies),
        }

    def _receive(self, outbox: Outbox, items: Sequence[Sequence[Any]]) -> None:
        """Takes what a caller hands in: rollouts, and word of siblings that will never come."""
        apart: list[tuple[int, Rollout]] = []
        for ticket, *said in items:
            if len(said) == len(Left._fields):
                self._leave(Left(*said))
                outbox.put(ticket)
                continue
            rollout = Rollout(*said)
            if self.mailbox is None or rollout.validate:
                apart.append((ticket, rollout))
            else:
                self._join(outbox, ticket, rollout)
        if apart:
            outbox.scoring += len(apart)
            for items in [[item] for item in apart] if self.singly else [apart]:
                self._start(self._score_apart(outbox, items))

    def _leave(self, left: Left) -> None:
        """Nobody waits any longer for a sibling that will never come."""
        self.siblings.leave(left.group, left.size)
        if self.join is not None:
            self.join.leave(left.group, left.member)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _join(self, outbox: Outbox, ticket: int, rollout: Rollout) -> None:
        """One rollout that is compared with its siblings: it waits for them in the engine's join."""
        assert self.mailbox is not None
        self.numbers += 1
        self.joining[self.numbers] = (outbox, ticket, rollout.kind())
        group, member, size, response, prompt, reference, tokens, *_ = rollout
        extra = self.steps.feed(rollout)
        try:
            self.mailbox.submit(self.numbers, group, size, member, prompt, response, reference, tokens, extra)
        except Exception as error:  # noqa: BLE001 - whatever it was, the caller must hear of it.
            if self.join is not None:
                self.join.leave(group, member)
            self._joined(self.numbers, error)

    def _wake(self) -> None:
        """The mailbox has answers; said on a thread of the engine's."""
        try:
            assert self.loop is not None
            self.loop.call_soon_threadsafe(self._take)
        except RuntimeError:
            pass  # The loop was closed, so nobody waits any more.

    def _take(self) -> None:
        assert self.mailbox is not None
        for number, told in self.mailbox.take():
            self._joined(number, told)

    def _joined(self, number: int, told: Any) -> None:
        """Answers one rollout with what the join says of it, or with what went wrong."""
        outbox, ticket, kind = self.joining.pop(number)
        if isinstance(told, BaseException):
            answer = failed(told)
        else:
            total, outcome, reason, components, info, *rest, _ = told
            answer = Answer(total, outcome, reason, components, scalars(flat(info)), *rest)
        self._tell(outbox, ticket, kind, answer)

    def _tell(self, outbox: Outbox, ticket: int, kind: Kind, answer: Answer) -> None:
        """Counts an answer and sends it; it goes out even where it cannot be counted."""
        try:
            answer = self.steps.count(kind, answer)
        except Exception:
            if not self.miscounted:
                self.miscounted = True
                log.exception(
                    "plaudit: an answer was not counted towards its step; of others nothing is said"
                )
        outbox.put(ticket, answer)

    async def _score_apart(self, outbox: Outbox, items: Sequence[tuple[int, Rollout]]) -> None:
        """Rollouts that nothing compares with their siblings: validation, and recipes of single responses."""
        async with self.room:
            answers = await self._answers([rollout for _, rollout in items])
        outbox.scoring -= len(items)
        for (ticket, rollout), answer in zip(items, answers, strict=True):
            if not rollout.validate:
                self.siblings.add(rollout.group, rollout.size, answer.total)
            if answer.outcome == "invalid" and not rollout.validate and rollout.size > 1:
                self._start(self._wait_for_siblings(outbox, ticket, rollout, answer))
            else:
                self._tell(outbox, ticket, rollout.kind(), answer)

    async def _answers(self, rollouts: Sequence[Rollout]) -> list[Answer]:
        """One answer each; a rollout with which nothing can be scored is found by halving, and takes no other along."""
        try:
            return await self._each(rollouts)
        except Exception as error:  # noqa: BLE001 - whatever it was, the caller must hear of it.
            if len(rollouts) == 1:
                return [failed(error)]
        half = len(rollouts) // 2
        return [*await self._answers(rollouts[:half]), *await self._answers(rollouts[half:])]

    async def _each(self, rollouts: Sequence[Rollout]) -> list[Answer]:
        """Scores rollouts together that do not know each other: each is a group of its own."""
        answers: list[Answer | None] = [None] * len(rollouts)
        for validate in (False, True):
            places = [place for place, rollout in enumerate(rollouts) if rollout.validate is validate]
            if not places:
                continue
            chosen = [rollouts[place] for place in places]
            began = time.monotonic()
            report = await self.engine.ascore(
                [rollout.prompt for rollout in chosen],
                [rollout.response for rollout in chosen],
                [rollout.reference for rollout in chosen],
                [str(place) for place in places],
                [rollout.tokens for rollout in chosen],
                [self.steps.feed(rollout) for rollout in chosen],
                validate=validate,
            )
            waited = time.monotonic() - began
            for place, answer in zip(places, answers_of(report, waited), strict=True):
                answers[place] = answer
        return [answer if answer is not None else failed(RuntimeError("not scored")) for answer in answers]

    async def _wait_for_siblings(self, outbox: Outbox, ticket: int, rollout: Rollout, answer: Answer) -> None:
        """An invalid rollout is worth what its valid siblings are, so it waits for them."""
        began = time.monotonic()
        mean = await self.siblings.mean(rollout.group, rollout.size, self.timeout)
        waited = answer.waited + time.monotonic() - began
        answer = answer._replace(siblings_mean=mean, siblings_known=True, waited=waited)
        self._tell(outbox, ticket, rollout.kind(), answer)


def answers_of(report: plaudit.Report, waited: float) -> list[Answer]:
    """One answer a row."""
    values = [None if value != value else value for value in report.totals.tolist()]
    columns = {name: column.tolist() for name, column in report.components.items()}
    facts = report.info
    answers = []
    for place, (value, outcome, reason) in enumerate(
        zip(values, report.outcomes, report.reasons, strict=True)
    ):
        components = {
            name: None if column[place] != column[place] else column[place]
            for name, column in columns.items()
        }
        info = scalars({name: column[place] for name, column in facts.items()})
        answers.append(Answer(value, outcome, reason, components, info, waited=waited))
    return answers


def scalars(info: Any) -> dict[str, Any]:
    """The numbers among the evidence: the rest stays where it was found."""
    return {name: value for name, value in info.items() if isinstance(value, (bool, int, float))}


def failed(error: BaseException) -> Answer:
    """The answer to a rollout whose scoring raised."""
    code = getattr(error, "code", None) or "engine.error"
    return Answer.invalid(str(code), f"{type(error).__name__}: {error}")
