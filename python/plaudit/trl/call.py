"""Reads the arguments of one call of a reward function: rows for the engine, and the group of each row.

TRL calls a reward function with lists: prompts and completions as text or as messages, token ids, and every further column of
the data set.
"""

from __future__ import annotations

import functools
import json
import logging
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from plaudit._plaudit import REFERENCE_FIELDS, ArgumentError
from plaudit.tables import others as others_of

_log = logging.getLogger("plaudit")

REFERENCES = ("reference", *REFERENCE_FIELDS)
"""The columns that hold the reference where `columns=` does not say it: the first of them that the data set has."""

OWN = ("trainer_state", "log_extra", "log_metric", "environments")
"""Arguments of TRL's own, beside the columns of the data set."""


class Row(NamedTuple):
    """One completion, with the fields that the engine takes."""

    prompt: str | list[dict[str, str]] | None
    response: str | list[Any]
    reference: Any
    tokens: int | None
    extra: dict[str, Any]
    others: dict[str, Any]
    """The fields of `plaudit.rollout.Others`."""

    def fields(self) -> dict[str, Any]:
        """The rollout by the names of its fields, without those that it lacks."""
        named = {**self._asdict(), **self.others}
        del named["others"]
        return {name: value for name, value in named.items() if value is not None and value != {}}


@dataclass(slots=True)
class Call:
    """One call of a trainer's process: its rows, and where they stand in the trainer's whole batch."""

    rows: list[Row]
    keys: list[Hashable]
    size: int | None
    start: int
    evaluates: bool
    log_metric: Callable[[str, float], None] | None
    log_extra: Callable[[str, list[Any]], None] | None
    step: int | None = None
    statistics: dict[str, Any] | None = None
    """Those of the rows that an engine of this process has scored."""
    columns: Sequence[str] = ()
    """The columns of the data set."""

    @property
    def positions(self) -> range:
        """The places of the rows in the batch of all ranks."""
        return range(self.start, self.start + len(self.rows))

    def rows_by_place(self) -> dict[int, Row]:
        return dict(zip(self.positions, self.rows, strict=True))

    def groups(self) -> list[int]:
        """The number of each row's group.

        A trainer puts the completions of a prompt next to one another, so where the size of a group is known, the place
        of a row tells its group: two equal prompts that follow one another stay two groups, and the numbers agree on all
        ranks. A batch in another order is grouped by its keys alone, each cut into groups of that size.
        """
        if self.in_order:
            assert self.size is not None
            return [position // self.size for position in self.positions]
        numbers: dict[tuple[Hashable, int], int] = {}
        seen: dict[Hashable, int] = {}
        groups = []
        for key in self.keys:
            before = seen.get(key, 0)
            seen[key] = before + 1
            group = (key, before // self.size if self.size else 0)
            groups.append(numbers.setdefault(group, len(numbers)))
        return groups

    def groups_of(self, places: Iterable[int]) -> list[int]:
        """The groups of rows by their places, which may be rows of other ranks where the batch is in order."""
        own = dict(zip(self.positions, self.groups(), strict=True))
        return [own[place] if place in own else place // (self.size or 1) for place in places]

    @property
    def in_order(self) -> bool:
        """Whether the rows of every group follow one another, as TRL has them."""
        if self.size is None:
            return False
        firsts: dict[int, Hashable] = {}
        return all(
            firsts.setdefault(position // self.size, key) == key
            for position, key in zip(self.positions, self.keys, strict=True)
        )


def read(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    completion_ids: Sequence[Sequence[int]] | None,
    others: Mapping[str, Any],
    columns: Mapping[str, str | None],
    group: str,
) -> tuple[list[Row], list[Hashable]]:
    """The rows of a call, and the key of each row's group."""
    count = len(completions)
    if len(prompts) != count:
        raise ArgumentError(f"{len(prompts)} prompts came with {count} completions")
    data: dict[str, list[Any]] = {}
    for name, values in others.items():
        if name in OWN or isinstance(values, str) or not hasattr(values, "__len__"):
            continue
        values = values.tolist() if hasattr(values, "tolist") else values
        if not isinstance(values, (list, tuple)):
            continue
        if len(values) == count:
            data[name] = list(values)
        else:
            warnings.warn(
                f"`{name}` has {len(values)} values for {count} completions and is left out", stacklevel=2
            )
    named = [column for column, role in columns.items() if role == "reference"]
    reference = next((name for name in (named or REFERENCES) if name in data), None)
    if named and reference is None:
        raise ArgumentError(
            f"columns= names `{named[0]}` as the reference, but the data set has no such column, only {sorted(data)}"
        )
    if reference not in (None, "reference", *named):
        _tell_reference(reference)
    if group != "prompt" and group not in data:
        raise ArgumentError(f"group= names the column `{group}`, but the data set has {sorted(data)}")

    rows = []
    for at in range(count):
        roles = ((columns.get(name, name), values[at]) for name, values in data.items() if name != reference)
        named = {role: value for role, value in roles if role is not None}
        extra = {role: value for role, value in named.items() if _is_json(value)}
        rows.append(
            Row(
                prompt=_prompt(at, prompts[at]),
                response=_response(at, completions[at]),
                reference=_reference(reference, data[reference][at]) if reference else None,
                tokens=len(completion_ids[at]) if completion_ids is not None else None,
                extra=extra,
                others=others_of(named),
            )
        )
    if group == "prompt":
        return rows, [_key(row.prompt) for row in rows]
    return rows, [_key(value) for value in data[group]]


def _key(value: Any) -> Hashable:
    """Something that is equal where the values are, whatever they are."""
    simple = value is None or isinstance(value, (str, int))
    return value if simple else json.dumps(value, sort_keys=True, default=str)


@functools.cache
def _tell_reference(column: str) -> None:
    """Once a process: nobody named the column."""
    _log.warning("the reference is the column `%s`; columns={'NAME': 'reference'} names another", column)


def _reference(column: str, value: Any) -> Any:
    """A text, a number or a truth, a list of accepted answers, or an object."""
    if value is None or isinstance(value, (str, bool, int, float, list, tuple, Mapping)):
        return value
    raise ArgumentError(
        f"the column `{column}` was taken for the reference, but holds a {type(value).__name__}; "
        f"name the right one with columns={{'NAME': 'reference'}}"
    )


def _is_json(value: Any) -> bool:
    """Whether a value can be written as JSON, unlike an image and its like, which no reward reads."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _prompt(at: int, prompt: Any) -> str | list[dict[str, str]] | None:
    if prompt is None or isinstance(prompt, str):
        return prompt
    if not _are_messages(prompt) or not all("role" in message for message in prompt):
        raise ArgumentError(
            f"prompts[{at}] is {prompt!r:.200}; text is wanted, or messages with `role` and `content`"
        )
    return [{"role": str(message["role"]), "content": _content(message)} for message in prompt]


def _response(at: int, completion: Any) -> str | list[Any]:
    """The response: text, or the messages of a completion with tool calls or several turns."""
    if isinstance(completion, str):
        return completion
    messages = [completion] if isinstance(completion, Mapping) else completion
    if not _are_messages(messages):
        raise ArgumentError(f"completions[{at}] is {completion!r:.200}; text is wanted, or messages")
    if not messages:
        return ""
    if len(messages) == 1 and not messages[0].get("tool_calls"):
        return _message_text(messages[0])
    # Plain values, whatever classes a tool's result and its arguments are of.
    plain = json.loads(json.dumps([{"role": "assistant", **message} for message in messages], default=str))
    for message in plain:
        for call in message.get("tool_calls") or ():
            # The policy writes the name: one that is no text must not end the training.
            function = call.get("function", call)
            function["name"] = str(function.get("name"))
    return plain


def _are_messages(given: Any) -> bool:
    return isinstance(given, Iterable) and all(isinstance(message, Mapping) for message in given)


def _message_text(message: Mapping[str, Any]) -> str:
    """One message as the model wrote it: a chat template may have taken the thought out of the content."""
    parts = []
    thought = message.get("reasoning_content") or message.get("thinking")
    if thought:
        parts.append(f"<think>\n{thought}\n</think>")
    if content := _content(message):
        parts.append(content)
    return "\n\n".join(parts)


def _content(message: Mapping[str, Any]) -> str:
    """The text of a message; its other parts, such as images, are left out."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.get("text") or "" for part in content if isinstance(part, Mapping))
