"""How do many processes share one engine? By one Ray actor that scores, and hands every caller its own answers.

One process is one truth: judge limits, the journal, groups that wait for their members, and running statistics. Calls
between Ray processes are what costs here, so a caller (`plaudit.ray.connection`) hands in many rollouts at once by a
call that returns nothing, and has one `collect` call open through which all its answers come back.

What must hold: a rollout that was handed in is answered exactly once, whatever fails; `collect` and `hand_in` may be
repeated after a lost connection without anything being scored or lost twice.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import time
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import plaudit
from plaudit.ray.siblings import Siblings
from plaudit.ray.steps import Steps

# How long answers are gathered before a waiting `collect` returns with them.
GATHER_S = 0.004
# Callers that have not collected for this long are gone, and what waits for them is let go.
FORGET_S = 3600.0


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

    @classmethod
    def invalid(cls, code: str, message: str, waited: float = 0.0) -> Answer:
        """The answer where nothing could be scored."""
        reason = {"code": code, "component": None, "message": message}
        return cls(None, "invalid", reason, waited=waited)


class Delivery(NamedTuple):
    """Answers for a caller, by ticket, and how many it was sent before them."""

    before: int
    answers: list[tuple[int, Answer]]


class Outbox:
    """Answers that wait for one caller; each is kept until the caller has said that it came."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Answer]] = []
        self.sent = 0
        self.known: set[int] = set()
        self.ready = asyncio.Event()
        self.collected = time.monotonic()

    def put(self, ticket: int, answer: Answer) -> None:
        self.answers.append((ticket, answer))
        self.ready.set()

    def acknowledge(self, seen: int) -> None:
        """Lets go of what the caller has, by the number of answers that it has had in all."""
        arrived = max(0, seen - self.sent)
        for ticket, _ in self.answers[:arrived]:
            self.known.discard(ticket)
        del self.answers[:arrived]
        self.sent += arrived
        if not self.answers:
            self.ready.clear()


class SharedEngine:
    """The actor's class. `plaudit.ray.connection` starts it by name, and starts it again when it dies."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.engine = terms.engine()
        compares = self.engine.compares_groups
        # Only what compares responses waits for the group.
        self.join = self.engine.join(timeout=terms.timeout, quiet=terms.quiet) if compares else None
        self.timeout = terms.timeout if terms.timeout is not None else self.engine.timeout
        self.life = uuid.uuid4().hex
        self.outboxes: dict[str, Outbox] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.siblings = Siblings()
        self.steps = Steps(self.engine.components, terms.examine)

    async def alive(self) -> str:
        """The name of this life of the actor: another one after a restart."""
        return self.life

    async def hand_in(self, caller: str, life: str, rollouts: Sequence[tuple[int, Rollout]]) -> None:
        """Takes rollouts, each with the caller's ticket. Those of another life, and those already known, are passed over."""
        if life != self.life:
            return
        outbox = self._outbox(caller)
        fresh = [(ticket, rollout) for ticket, rollout in rollouts if ticket not in outbox.known]
        outbox.known.update(ticket for ticket, _ in fresh)
        apart = [item for item in fresh if self.join is None or item[1].validate]
        for ticket, rollout in fresh:
            if self.join is not None and not rollout.validate:
                self._start(self._score_joined(self.join, outbox, ticket, rollout))
        if apart:
            self._start(self._score_apart(outbox, apart))

    async def collect(self, caller: str, life: str, seen: int, wait: float) -> Delivery | None:
        """The answers that the caller has not seen yet, as soon as there are some; `None`: this is another life."""
        if life != self.life:
            return None
        outbox = self._outbox(caller)
        outbox.acknowledge(seen)
        outbox.collected = time.monotonic()
        if not outbox.answers:
            try:
                await asyncio.wait_for(outbox.ready.wait(), wait)
            except asyncio.TimeoutError:
                return Delivery(outbox.sent, [])
            await asyncio.sleep(GATHER_S)
        return Delivery(outbox.sent, outbox.answers.copy())

    async def leave(self, group: str, member: str | None, size: int) -> None:
        """A sibling will never come: nobody waits for it any longer."""
        self.siblings.leave(group, size)
        if self.join is not None:
            self.join.leave(group, member)

    async def status(self) -> dict[str, Any]:
        """What goes on, for people and tests."""
        return {
            "life": self.life,
            "pid": os.getpid(),
            "join": None if self.join is None else dict(self.join.status),
            "callers": {name: len(box.answers) for name, box in self.outboxes.items()},
            "scoring": len(self.tasks),
            "steps": self.steps.closed,
            "tallies": list(self.engine.tallies),
        }

    def _outbox(self, caller: str) -> Outbox:
        outbox = self.outboxes.get(caller)
        if outbox is None:
            now = time.monotonic()
            for name in [name for name, box in self.outboxes.items() if now - box.collected > FORGET_S]:
                del self.outboxes[name]
            outbox = self.outboxes[caller] = Outbox()
        return outbox

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _score_joined(self, join: plaudit.Join, outbox: Outbox, ticket: int, rollout: Rollout) -> None:
        """One rollout that is compared with its siblings: it waits for them in the engine's join."""
        try:
            result = await join.ascore(
                rollout.group,
                rollout.size,
                rollout.response,
                prompt=rollout.prompt,
                reference=rollout.reference,
                tokens=rollout.tokens,
                extra=self.steps.feed(rollout),
                member=rollout.member,
                validate=False,
            )
            answer = Answer(
                result.total,
                result.outcome,
                result.reason,
                dict(result.components),
                scalars(result.info),
                result.group_size,
                result.partial,
                result.late,
                result.duplicate,
                result.waited,
                result.siblings_mean,
            )
        except Exception as error:  # noqa: BLE001 - whatever it was, the caller must hear of it.
            answer = failed(error)
        outbox.put(ticket, self.steps.count(rollout, answer))

    async def _score_apart(self, outbox: Outbox, items: Sequence[tuple[int, Rollout]]) -> None:
        """Rollouts that nothing compares with their siblings: validation, and recipes of single responses."""
        rollouts = [rollout for _, rollout in items]
        try:
            answers = await self._each(rollouts)
        except Exception as error:  # noqa: BLE001
            answers = [failed(error)] * len(items)
        for (ticket, rollout), answer in zip(items, answers, strict=True):
            if not rollout.validate:
                self.siblings.add(rollout.group, rollout.size, answer.total)
            if answer.outcome == "invalid" and not rollout.validate and rollout.size > 1:
                self._start(self._wait_for_siblings(outbox, ticket, rollout, answer))
            else:
                outbox.put(ticket, self.steps.count(rollout, answer))

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
        outbox.put(ticket, self.steps.count(rollout, answer._replace(siblings_mean=mean, waited=waited)))


def answers_of(report: plaudit.Report, waited: float) -> list[Answer]:
    """One answer a row."""
    values = [None if value != value else value for value in report.values.tolist()]
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
