"""Reads a finished rollout of verl: its text, group, reference, extra fields, and whether it is for validation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plaudit.ray.actor import Rollout
from plaudit.values import plain
from plaudit.verl.options import VALIDATION, Options

# Columns of the trainer, and columns that a rollout has under a name of their own: they are not part of `extra`.
NOT_EXTRA = {
    "uid",
    "session_id",
    "priority",
    "global_steps",
    "raw_prompt",
    "prompt",
    "reward_model",
    "extra_info",
    "tool_extra_fields",
    "tools_kwargs",
    "interaction_kwargs",
    "multi_modal_data",
    "multi_modal_inputs",
    "agent_name",
    "prompt_len",
    "response_len",
    "full_prompts",
}


def last_row(data: Any) -> tuple[dict[str, Any], Any, Any]:
    """The columns, prompt tokens and response tokens of a DataProto's last row.

    An agent loop with several outputs is scored by its last one.
    """
    responses = data.batch["responses"][-1]
    width = responses.shape[-1]
    mask = data.batch["attention_mask"][-1]
    valid = int(mask[-width:].sum()) if width else 0
    fields = {name: column[-1] for name, column in data.non_tensor_batch.items()}
    return fields, data.batch["prompts"][-1], responses[:valid]


class RolloutReader:
    """Makes a `Rollout` of a row of the data set, with the trainer's own columns, and its tokens."""

    def __init__(self, tokenizer: Any, options: Options, size: int | str) -> None:
        """`size`: how many rollouts a group has, or the path of the field that says so."""
        self.tokenizer = tokenizer
        self.size = size
        chosen = options.validation or {}
        self.field = str(chosen.get("field", "extra_info.split"))
        values = chosen.get("values", VALIDATION)
        self.values = {str(value) for value in ([values] if isinstance(values, str) else values)}
        reference = options.reference
        self.references = [reference] if isinstance(reference, str) else list(reference)

    def read(self, fields: Mapping[str, Any], prompt_ids: Any, response_ids: Any) -> Rollout:
        """Decodes the tokens and picks the fields; runs on a thread beside the event loop."""
        uid = fields.get("uid")
        if uid is None:
            raise KeyError(
                "this rollout has no `uid`, so its group is unknown; the reward model that shares GPUs with the "
                "policy (reward.reward_model.enable_resource_pool=False) passes none on, and cannot be used with plaudit"
            )
        member = fields.get("session_id", fields.get("priority"))
        step = fields.get("global_steps", at(fields, "tool_extra_fields.global_steps"))
        validate = self.is_validation(fields)
        return Rollout(
            group=str(uid),
            member=None if member is None else str(member),
            # Nobody waits for the siblings of a validation rollout.
            size=1 if validate else self.size_of(fields),
            response=self.tokenizer.decode(response_ids, skip_special_tokens=True),
            prompt=self.prompt(fields, prompt_ids),
            reference=self.reference(fields),
            tokens=len(response_ids),
            extra=extra(fields),
            validate=validate,
            source=str(fields.get("data_source", "")),
            step=None if step is None else int(step),
        )

    def size_of(self, fields: Mapping[str, Any]) -> int:
        """How many rollouts the row's group has."""
        if isinstance(self.size, int):
            return self.size
        value = plain(at(fields, self.size))
        if value is None:
            raise KeyError(f"this row has no `{self.size}`, which `size` names")
        try:
            return int(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"`{self.size}`, which `size` names, is {value!r} in this row, and no number"
            ) from None

    def is_validation(self, fields: Mapping[str, Any]) -> bool:
        """Whether the row says that it is for validation; verl itself does not tell."""
        split = at(fields, self.field)
        return split is not None and str(split) in self.values

    def has_split(self, fields: Mapping[str, Any]) -> bool:
        """Whether the row says at all what it is for."""
        return at(fields, self.field) is not None

    def prompt(self, fields: Mapping[str, Any], prompt_ids: Any) -> Any:
        """The messages of the prompt, or its text where the row has none."""
        for name in ("raw_prompt", "prompt"):
            messages = fields.get(name)
            if messages is not None and len(messages):
                return plain(messages)
        return self.tokenizer.decode(prompt_ids, skip_special_tokens=True)

    def reference(self, fields: Mapping[str, Any]) -> str | None:
        """The first reference there is; what is not text, such as a list of tests, becomes JSON."""
        for path in self.references:
            value = plain(at(fields, path))
            if isinstance(value, str):
                if value:
                    return value
            elif value is not None:
                return json.dumps(value, ensure_ascii=False)
        return None


def extra(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The row's `extra_info` and `data_source`, and the other columns that hold single values."""
    found = plain(fields.get("extra_info"))
    found = dict(found) if isinstance(found, Mapping) else {}
    for name, value in fields.items():
        single = not isinstance(value, (Mapping, list, tuple)) and not getattr(value, "ndim", 0)
        if single and value is not None and name not in NOT_EXTRA and not name.startswith("__"):
            found.setdefault(name, plain(value))
    return found


def at(fields: Any, path: str) -> Any:
    """The value at a dotted path through mappings and lists, or None."""
    for name in path.split("."):
        if isinstance(fields, Mapping):
            fields = fields.get(name)
        elif isinstance(fields, (Sequence, np.ndarray)) and not isinstance(fields, str) and name.isdigit():
            fields = fields[int(name)] if int(name) < len(fields) else None
        else:
            return None
    return fields
