"""The fields of a rollout: their names, columns, examples and types. `make docs` makes it of `FIELDS` in the engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

Messages = Sequence[Mapping[str, Any]]
"""Chat messages, each with at least `role` and `content`."""
Conversation = Messages | Mapping[str, Any]
"""Messages, items or masked spans; or an object that holds them, such as a trace."""
Reference = str | float | bool | Sequence[Any] | Mapping[str, Any]
"""What a response is compared with: a text or a number, a list of accepted answers, or an object."""

FIELDS = {
    "id": "ids",
    "group": "groups",
    "prompt": "prompts",
    "response": "responses",
    "reference": "references",
    "tokens": "tokens",
    "finish_reason": "finish_reasons",
    "truncated": "truncated",
    "tools": "tools",
    "extra": "extras",
}
"""The fields, each with the name of its column in the arguments of `Engine.score`."""

OTHERS = ("finish_reason", "truncated", "tools")
"""The fields that say more of a rollout than its texts, its length and its `extra`."""

EXAMPLES = {
    "id": json.loads('"r1"'),
    "group": json.loads('"g1"'),
    "prompt": json.loads('"6 * 7?"'),
    "response": json.loads('"It is 42."'),
    "reference": json.loads('"42"'),
    "tokens": json.loads("812"),
    "finish_reason": json.loads('"length"'),
    "truncated": json.loads("true"),
    "tools": json.loads('[{"name": "multiply", "parameters": {"type": "object"}}]'),
    "extra": json.loads('{"data_source": "math"}'),
}
"""A value of each field."""


class Others(TypedDict, total=False):
    """The fields of `OTHERS` of one rollout."""

    finish_reason: str | bool | None
    """Why the generation ended: `stop`, `length`, `tool_calls` or another word of a server; or whether it was truncated."""
    truncated: bool | None
    """Whether the limit on its length cut the response off, where no `finish_reason` says it."""
    tools: Sequence[Any] | str | None
    """The declarations of the tools that the model was given."""


class OtherColumns(TypedDict, total=False):
    """The same fields of a batch, each with one entry a rollout."""

    finish_reasons: Sequence[str | bool | None] | Any | None
    """Why the generation ended: `stop`, `length`, `tool_calls` or another word of a server; or whether it was truncated."""
    truncated: Sequence[bool | None] | Any | None
    """Whether the limit on its length cut the response off, where no `finish_reason` says it."""
    tools: Sequence[Sequence[Any] | str | None] | Any | None
    """The declarations of the tools that the model was given."""


class Rollout(Others, total=False):
    """A rollout as a dict, as `Service.score` takes it. Only `response` must be there."""

    id: str | int | None
    """The caller's name for it; its place where there is none. In a group line, `NAME.0` and so on."""
    group: str | int | None
    """The name of its group; where there is none, equal prompts make a group."""
    prompt: str | Messages | None
    """What the model was asked: text, or chat messages."""
    response: str | Conversation | None
    """What the model answered: text, or a conversation in any wire form."""
    reference: Reference | None
    """The answer to compare with: a text or a number, a list of accepted answers, or an object."""
    tokens: int | None
    """The length of the response in the model's own tokens."""
    extra: Mapping[str, Any] | None
    """Everything else that rewards and routes may read."""
