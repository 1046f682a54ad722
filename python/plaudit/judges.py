"""Questions to the judges of a recipe, asked from inside a custom reward: journaled, counted and limited like all judge calls."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from plaudit._plaudit import ArgumentError, Judges, PlauditError

Question = str | Sequence[Mapping[str, str]]
"""A text, which is the user's message, or chat messages."""

# A question is given up a little before the call of the reward is, so that the reward can still say what it knows.
MAX_MARGIN_S, MARGIN = 1.0, 0.1


class JudgeError(PlauditError):
    """A question to a judge that has no answer.

    Let through by a reward, or returned for a rollout, it makes the rollout invalid with its code.

    Example:
        >>> error.code
        'judge.timeout'
    """

    code: str
    message: str

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class _Asking:
    """What a call of a reward may ask: the judges of its engine, until a moment of the monotonic clock."""

    judges: Judges | None
    deadline: float


_asking: ContextVar[_Asking] = ContextVar("plaudit_asking")


@contextlib.contextmanager
def asking(judges: Judges | None, timeout: float) -> Iterator[None]:
    """Lets `plaudit.judge` find the judges of the engine that calls a reward, in this thread and its tasks."""
    margin = min(MAX_MARGIN_S, timeout * MARGIN)
    token = _asking.set(_Asking(judges, time.monotonic() + timeout - margin))
    try:
        yield
    finally:
        _asking.reset(token)


@dataclass(frozen=True)
class Judge:
    """One judge of the recipe, for as long as a custom reward is being called. `plaudit.judge` makes one.

    Other threads that the reward starts may use it too.
    """

    name: str
    """The name in the recipe."""
    _from: _Asking

    def ask(
        self,
        question: Question,
        *,
        choices: Sequence[str] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Any:
        """Asks one question and waits for the answer.

        Args:
            question: A text, or chat messages of which the last is the user's.
            choices: The answers that count. The judge is told them, and held to them where the endpoint can do that.
            schema: A JSON schema that the answer must fit.

        Returns:
            The text of the reply without the judge's thought; one of the choices; or what the JSON holds.

        Raises:
            JudgeError: There is no such answer; `code` says why.
            ArgumentError: The question is none.

        Example:
            >>> plaudit.judge("main").ask(f"Is this polite?\\n\\n{response}", choices=["yes", "no"])
        """
        return _only(self.ask_many([question], choices=choices, schema=schema))

    def ask_many(
        self,
        questions: Sequence[Question],
        *,
        choices: Sequence[str] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Asks many questions at once, within the limits of the judge, and waits for all answers.

        Args:
            questions, choices, schema: As for `ask`, for each of the questions.

        Returns:
            One answer a question, in their order; a `JudgeError` in place of one that is missing. A reward may return
            it for the rollout.

        Raises:
            ArgumentError: A question is none.

        Example:
            >>> plaudit.judge("main").ask_many(responses, choices=["yes", "no"])
        """
        return _answers(self._start(questions, choices, schema).result(), schema)

    async def aask(
        self,
        question: Question,
        *,
        choices: Sequence[str] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Any:
        """Asks one question without blocking the event loop.

        Args:
            question, choices, schema: As for `ask`.

        Returns:
            As `ask` does.

        Raises:
            JudgeError: There is no such answer; `code` says why.
            ArgumentError: The question is none.

        Example:
            >>> await plaudit.judge("main").aask("Is this polite?", choices=["yes", "no"])
        """
        return _only(await self.aask_many([question], choices=choices, schema=schema))

    async def aask_many(
        self,
        questions: Sequence[Question],
        *,
        choices: Sequence[str] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Asks many questions at once without blocking the event loop.

        Args:
            questions, choices, schema: As for `ask_many`.

        Returns:
            As `ask_many` does.

        Raises:
            ArgumentError: A question is none.

        Example:
            >>> await plaudit.judge("main").aask_many(responses, choices=["yes", "no"])
        """
        import asyncio  # Later, because it takes as long as the package.

        return _answers(await asyncio.wrap_future(self._start(questions, choices, schema)), schema)

    def _start(
        self, questions: Sequence[Question], choices: Sequence[str] | None, schema: Mapping[str, Any] | None
    ) -> Future[Any]:
        if isinstance(questions, str):
            raise ArgumentError("questions: a list of questions is wanted, not a text; ask() takes one")
        if choices is not None and schema is not None:
            raise ArgumentError("an answer is one of the choices, or fits the schema: give one of both")
        if choices is not None and (isinstance(choices, str) or not choices or not _are_texts(choices)):
            raise ArgumentError(f"choices: a list of texts is wanted, not {choices!r:.80}")
        if schema is not None and not isinstance(schema, Mapping):
            raise ArgumentError(f"schema: a dict is wanted, not {type(schema).__name__}")
        asked = [_messages(at, question) for at, question in enumerate(questions)]
        replies: Future[Any] = Future()
        # It runs until the callback, whoever waits.
        replies.set_running_or_notify_cancel()
        judges, left = self._from.judges, self._from.deadline - time.monotonic()
        chosen = None if choices is None else list(choices)
        held = None if schema is None else dict(schema)
        assert judges is not None
        if not judges.ask(self.name, asked, chosen, held, max(left, 0.0), replies.set_result):
            raise ArgumentError(f"there is no judge {self.name!r}")
        return replies


def judge(name: str | None = None) -> Judge:
    """A judge of the recipe whose custom reward is being called.

    Its answers are kept in the journal and its calls are counted, limited and retried like those of the judged rewards.

    Args:
        name: The name of the judge in the recipe; may be left out where it has only one that takes questions.

    Returns:
        A `Judge`.

    Raises:
        ArgumentError: There is no such judge, it is a reward model, or no engine is calling a reward here.

    Example:
        >>> plaudit.judge("main").ask("Is this polite?", choices=["yes", "no"])
    """
    found = _asking.get(None)
    if found is None:
        raise ArgumentError(
            "plaudit.judge works inside a registered reward, while an engine calls it; a thread that the reward starts gets "
            "the judge from it"
        )
    names = found.judges.names() if found.judges is not None else []
    if name is None and len(names) == 1:
        return Judge(names[0], found)
    if name in names:
        return Judge(name, found)
    known = (
        f"those that take questions are {', '.join(names)}"
        if names
        else "the recipe has none that takes questions"
    )
    asked = "say which judge" if name is None else f"there is no judge {name!r:.80}"
    raise ArgumentError(f"{asked}; {known}")


def _messages(at: int, question: Any) -> list[tuple[str, str]]:
    if isinstance(question, str):
        return [("user", question)]
    if not isinstance(question, Sequence) or not question:
        raise ArgumentError(f"questions[{at}]: text or chat messages are wanted, not {question!r:.80}")
    messages = []
    for message in question:
        role = message.get("role") if isinstance(message, Mapping) else None
        content = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(role, str) or not isinstance(content, str):
            raise ArgumentError(f"questions[{at}]: a message has a text as `role` and as `content`")
        messages.append((role, content))
    return messages


def _are_texts(items: Sequence[Any]) -> bool:
    return all(isinstance(item, str) for item in items)


def _answers(replies: list[tuple[str | None, tuple[str, str] | None]] | None, schema: Any) -> list[Any]:
    if replies is None:
        raise JudgeError("engine.stopped", "The engine went away before the judge had answered.")
    return [_answer(reply, error, schema) for reply, error in replies]


def _answer(reply: str | None, error: tuple[str, str] | None, schema: Any) -> Any:
    if error is not None:
        return JudgeError(*error)
    assert reply is not None
    return reply if schema is None else json.loads(reply)


def _only(answers: list[Any]) -> Any:
    if isinstance(answers[0], JudgeError):
        raise answers[0]
    return answers[0]
