"""What is in a finished rollout of verl's? Its text, its group, its reference, and whether it is for validation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from plaudit.ray.actor import Rollout
from plaudit.verl.options import VALIDATION, Options

# Columns that the trainer made, and those that are handed over under a name of their own.
OWN = {
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


class Finished(NamedTuple):
    """A rollout as verl has it: the row of the data set with the trainer's own columns, and the tokens."""

    fields: Mapping[str, Any]
    prompt_ids: Any
    response_ids: Any


class Reader:
    """Makes plaudit's rollouts of verl's."""

    def __init__(self, tokenizer: Any, options: Options, size: int | str) -> None:
        self.tokenizer = tokenizer
        self.size = size
        chosen = options.validation or {}
        self.field = str(chosen.get("field", "extra_info.split"))
        values = chosen.get("values", VALIDATION)
        self.values = {str(value) for value in ([values] if isinstance(values, str) else values)}
        reference = options.reference
        self.references = [reference] if isinstance(reference, str) else list(reference)

    def of_batch(self, data: Any) -> Finished:
        """The last row of a DataProto: an agent loop with several outputs is scored by its last one."""
        responses = data.batch["responses"][-1]
        width = responses.shape[-1]
        mask = data.batch["attention_mask"][-1]
        valid = int(mask[-width:].sum()) if width else 0
        fields = {name: column[-1] for name, column in data.non_tensor_batch.items()}
        return Finished(fields, data.batch["prompts"][-1], responses[:valid])

    def read(self, finished: Finished) -> Rollout:
        """Decodes and sorts; runs on a thread beside the event loop."""
        fields = finished.fields
        uid = fields.get("uid")
        if uid is None:
            raise KeyError(
                "this rollout has no `uid`, so its group is unknown; the reward model that shares GPUs with the "
                "policy (reward.reward_model.enable_resource_pool=False) passes none on, and cannot be used with plaudit"
            )
        member = fields.get("session_id", fields.get("priority"))
        step = fields.get("global_steps", at(fields, "tool_extra_fields.global_steps"))
        validate = self.validates(fields)
        return Rollout(
            group=str(uid),
            member=None if member is None else str(member),
            # Nobody waits for the siblings of a validation rollout.
            size=1 if validate else self.size_of(fields),
            response=self.tokenizer.decode(finished.response_ids, skip_special_tokens=True),
            prompt=self.prompt(finished),
            reference=self.reference(fields),
            tokens=len(finished.response_ids),
            extra=extra(fields),
            validate=validate,
            source=str(fields.get("data_source", "")),
            step=None if step is None else int(step),
        )

    def size_of(self, fields: Mapping[str, Any]) -> int:
        """How many rollouts the row's group has."""
        if isinstance(self.size, int):
            return self.size
        said = plain(at(fields, self.size))
        if said is None:
            raise KeyError(f"this row has no `{self.size}`, which `size` names")
        try:
            return int(said)
        except (TypeError, ValueError):
            raise ValueError(
                f"`{self.size}`, which `size` names, is {said!r} in this row, and no number"
            ) from None

    def validates(self, fields: Mapping[str, Any]) -> bool:
        """Whether the row says that it is for validation; verl itself does not tell."""
        said = at(fields, self.field)
        return said is not None and str(said) in self.values

    def tells(self, fields: Mapping[str, Any]) -> bool:
        """Whether the row says at all what it is for."""
        return at(fields, self.field) is not None

    def prompt(self, finished: Finished) -> Any:
        """The messages of the prompt, or its text where the row has none."""
        for name in ("raw_prompt", "prompt"):
            messages = finished.fields.get(name)
            if messages is not None and len(messages):
                return messages if isinstance(messages, str) else [plain(message) for message in messages]
        return self.tokenizer.decode(finished.prompt_ids, skip_special_tokens=True)

    def reference(self, fields: Mapping[str, Any]) -> str | None:
        """The first reference there is; what is not text, such as a list of tests, goes as JSON."""
        for path in self.references:
            value = plain(at(fields, path))
            if isinstance(value, str):
                if value:
                    return value
            elif value is not None:
                return json.dumps(value, ensure_ascii=False)
        return None


def extra(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What rewards may look at besides: `extra_info`, `data_source`, and the other columns that hold single values."""
    found = plain(fields.get("extra_info"))
    found = dict(found) if isinstance(found, Mapping) else {}
    for name, value in fields.items():
        if name not in OWN and not name.startswith("__"):
            value = plain(value)
            if isinstance(value, (str, int, float, bool)):
                found.setdefault(name, value)
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


def plain(value: Any) -> Any:
    """The same without numpy, and without what has no place in JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None
