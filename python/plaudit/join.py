"""`Join`: scores groups whose rollouts are handed in one by one. Each caller waits, and gets its own `Result`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from plaudit import _plaudit, custom
from plaudit.engine import awaited
from plaudit.fork import PerProcess
from plaudit.report import flat, statistics
from plaudit.result import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from plaudit.engine import Engine
    from plaudit.rollout import Conversation, Messages, Others, Reference


class Join:
    """Callers hand in one rollout each, with the name and the size of its group, and get it scored with the group.

    A group is scored when it is complete, when its timeout is over, or when nothing has come for a while, as the recipe's
    `groups` says. Where the recipe compares nothing, a rollout is scored at once; only one without a total waits for its
    siblings, to get their mean. Every caller gets a result, whatever happens. A forked child starts with no groups.

    `Engine.join` makes one.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        timeout: float | None = None,
        quiet: float | None = None,
        remember: int | None = None,
    ) -> None:
        self.engine = engine
        self._settings = (timeout, quiet, remember)
        self._process: PerProcess[_plaudit.Join] = PerProcess()
        _ = self._inner
        engine._joins.add(self)

    @property
    def _inner(self) -> _plaudit.Join:
        return self._process.get(lambda: _plaudit.Join(self.engine._inner, *self._settings))

    @property
    def timeout(self) -> float:
        """The seconds after which a group is scored with those who came."""
        return self._inner.timeout

    @property
    def quiet(self) -> float | None:
        """The seconds without an arrival after which a group that is at least half there is scored."""
        return self._inner.quiet

    @property
    def status(self) -> dict[str, Any]:
        """How many groups are open and how many callers wait, and counts of what has happened so far."""
        return self._inner.status()

    @property
    def statistics(self) -> dict[str, Any]:
        """The statistics of everything that was scored so far, as those of a report."""
        return statistics(self._inner.statistics())

    @property
    def last_step(self) -> dict[str, Any] | None:
        """The step that `take_step` ended last."""
        step = self._inner.last_step()
        return None if step is None else statistics(step)

    def take_step(self, step: int) -> dict[str, Any]:
        """Ends a step of the training.

        Args:
            step: The number of the step.

        Returns:
            `step`, and the `statistics` of what was scored since the step before.

        Example:
            >>> join.take_step(17)["statistics"]["total"]["mean"]
        """
        return statistics(self._inner.take_step(step))

    def score(
        self,
        group: str | int,
        size: int,
        response: str | Conversation,
        *,
        prompt: str | Messages | None = None,
        reference: Reference | None = None,
        tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
        member: str | int | None = None,
        timeout: float | None = None,
        validate: bool | None = None,
        **others: Unpack[Others],
    ) -> Result:
        """Hands in one rollout and waits until its group has been scored.

        Args:
            group: The name or number of the group. It must not be used again for other rollouts.
            size: How many members the group has.
            response: The text that is scored, or a conversation, as for `Engine.score`.
            prompt: Text or chat messages.
            reference: The right answer; a number is taken as its decimal text, and any answer of a list is right.
            tokens: The length of the response in the policy's own tokens.
            extra: A dict for rewards and routes that read it.
            member: The name or number of the rollout in its group. With it, a rollout that is handed in twice counts once.
            timeout: The seconds that this caller waits at most, where that is less than the join's.
            validate: Whether the reference takes part in comparisons; where it is None, the recipe decides.
            others: The fields of `plaudit.rollout.Others`: `finish_reason`, `truncated`, and `tools`, the declarations of the tools that
                the policy was given.

        Returns:
            The `Result` of this rollout.

        Raises:
            ArgumentError: An argument has the wrong type or value; the message names it.
            RunError: The engine was closed.

        Example:
            >>> join.score("prompt-17", 8, text, prompt=prompt, member=3).total
        """
        over = threading.Event()
        outcome: list[Any] = []

        def done(fields: Any, error: BaseException | None) -> None:
            outcome.append((fields, error))
            over.set()

        rollout = _fields(response, prompt, reference, tokens, extra, others)
        self._inner.submit(done, group, size, member, timeout, validate, rollout)
        while not over.wait(0.1):
            pass  # In short turns, so that Ctrl-C works on every system.
        fields, error = outcome[0]
        if error is not None:
            raise error
        return self._result(fields)

    async def ascore(
        self,
        group: str | int,
        size: int,
        response: str | Conversation,
        *,
        prompt: str | Messages | None = None,
        reference: Reference | None = None,
        tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
        member: str | int | None = None,
        timeout: float | None = None,
        validate: bool | None = None,
        **others: Unpack[Others],
    ) -> Result:
        """Hands in one rollout without blocking the event loop. The rollout of a cancelled caller still counts as a member.

        Args:
            group, size, response, prompt, reference, tokens, extra, member, timeout, validate, others: As for `score`.

        Returns:
            The `Result` of this rollout.

        Raises:
            ArgumentError, RunError: As for `score`.

        Example:
            >>> result = await join.ascore("prompt-17", 8, text, prompt=prompt)
        """
        rollout = _fields(response, prompt, reference, tokens, extra, others)
        place = (group, size, member, timeout, validate)
        return self._result(await awaited(lambda done: self._inner.submit(done, *place, rollout)))

    def _result(self, fields: tuple[Any, ...]) -> Result:
        total, outcome, reason, components, info, *rest = fields
        if self.engine._on_error == "raise":
            error = custom.failure([reason], self.engine._raised)
            if error is not None:
                raise error
        return Result(total, outcome, reason, components, flat(info), *rest)

    def _completion_queue(self, wake: Callable[[], object]) -> _plaudit.CompletionQueue:
        """A queue for the results of many rollouts under numbers, for adapters that have thousands waiting.

        `wake` is called on another thread when there is something to take, and not again before it was taken.
        """
        return self._inner.completion_queue(wake)

    def leave(self, group: str | int, member: str | int | None = None) -> None:
        """Reports that a member will never come, so that the others do not wait for it. No member need have come yet.

        Args:
            group: The name or number of the group.
            member: The name or number of the member, where it has one.

        Raises:
            ArgumentError: A name is neither text nor a whole number.

        Example:
            >>> join.leave("prompt-17", 5)
        """
        self._inner.leave(group, member)

    def flush(self) -> None:
        """Closes every open group now, as if its timeout were over.

        Example:
            >>> join.flush()
        """
        self._inner.flush()

    def close(self) -> None:
        """Closes every open group, and refuses all further rollouts.

        Example:
            >>> join.close()
        """
        self._inner.close()

    def _close_here(self) -> None:
        """Closes it where this process has used it."""
        inner = self._process.made_here()
        if inner is not None:
            inner.close()


def _fields(
    response: Any, prompt: Any, reference: Any, tokens: Any, extra: Any, others: Mapping[str, Any]
) -> dict[str, Any]:
    """A rollout by the names of its fields."""
    named = {"prompt": prompt, "reference": reference, "tokens": tokens, "extra": extra}
    return {"response": response, **named, **others}
