"""Reads rollouts of verl, one that is finished or a whole batch: text, group, reference, extra fields, and whether it is for
validation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plaudit._plaudit import RUBRIC_FIELDS
from plaudit.ray.actor import Rollout
from plaudit.rollout import OTHERS
from plaudit.tables import others
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
    "dummy_tensor",
}

# The places of a reference in a whole batch: verl's own, that of RM-Gallery's VERL tutorial, and that of its training example.
BATCH_REFERENCE = ("reward_model.ground_truth", "extra_info.y", "extra_info.chosen")


def last_row(data: Any) -> tuple[dict[str, Any], Any, Any, Any]:
    """The columns, prompt tokens, response tokens and the response's mask, where it has one, of a DataProto's last row.

    An agent loop with several outputs is scored by its last one.
    """
    responses = data.batch["responses"][-1]
    width = responses.shape[-1]
    mask = data.batch["attention_mask"][-1]
    valid = int(mask[-width:].sum()) if width else 0
    fields = {name: column[-1] for name, column in data.non_tensor_batch.items()}
    own = data.batch["response_mask"][-1][:valid] if "response_mask" in data.batch else None
    return fields, data.batch["prompts"][-1], responses[:valid], own


def response_of(tokenizer: Any, ids: Any, mask: Any) -> str | list[dict[str, Any]]:
    """The response: text, or the spans of an agent loop that put the results of tools between the model's own tokens.

    The engine splits spans by the chat template that it finds in them, and refuses what it cannot split.
    """
    flags = [] if mask is None else [bool(flag) for flag in plain(mask)]
    if all(flags):
        return tokenizer.decode(ids, skip_special_tokens=True)
    spans, start = [], 0
    for end in range(1, len(flags) + 1):
        if end == len(flags) or flags[end] != flags[start]:
            # Special tokens are kept: they say where a turn begins and ends.
            text = tokenizer.decode(ids[start:end], skip_special_tokens=False)
            spans.append({"text": text, "mask": int(flags[start])})
            start = end
    return spans


def own_words(response: str | list[dict[str, Any]]) -> str:
    """The text of a response for a function that takes text: of spans, the model's own."""
    if isinstance(response, str):
        return response
    return "".join(span["text"] for span in response if span["mask"])


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

    def read(
        self, fields: Mapping[str, Any], prompt_ids: Any, response_ids: Any, mask: Any = None
    ) -> Rollout:
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
        reference = self.reference(fields)
        return Rollout(
            group=str(uid),
            member=None if member is None else str(member),
            # Nobody waits for the siblings of a validation rollout.
            size=1 if validate else self.size_of(fields),
            response=response_of(self.tokenizer, response_ids, mask),
            prompt=self.prompt(fields, prompt_ids),
            reference=reference,
            tokens=len(response_ids),
            extra=extra(fields),
            validate=validate,
            source=str(fields.get("data_source", "")),
            step=None if step is None else int(step),
            others=others_of(fields),
            columns=paths(fields) if reference is None else (),
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

    def reference(self, fields: Mapping[str, Any]) -> Any:
        """The first reference there is: a text, a list of accepted answers, or what else stands there, such as tests."""
        for path in self.references:
            value = plain(at(fields, path))
            if value is not None and value != "":
                return value if isinstance(value, (str, list, dict)) else json.dumps(value)
        return None


def extra(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The row's `extra_info`, `data_source` and rubric, and the other columns that hold single values."""
    found = plain(fields.get("extra_info"))
    found = dict(found) if isinstance(found, Mapping) else {}
    rubrics = {name: plain(fields[name]) for name in RUBRIC_FIELDS if name in fields}
    if (own := plain(at(fields, "reward_model.rubrics"))) is not None:
        rubrics["reward_model"] = {"rubrics": own}
    for name, value in rubrics.items():
        found.setdefault(name, value)
    for name, value in fields.items():
        single = not isinstance(value, (Mapping, list, tuple)) and not getattr(value, "ndim", 0)
        if single and value is not None and name not in NOT_EXTRA and not name.startswith("__"):
            found.setdefault(name, plain(value))
    return found


def others_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The finish reason, the declared tools and the like: what an agent loop says of its output, else what the row has.

    verl itself does not tell: it calls a response that was cut off `completed`.
    """
    said = [
        {name: plain(at(fields, f"{place}{name}")) for name in OTHERS} for place in ("", "tool_extra_fields.")
    ]
    return {**others(said[0]), **others(said[1])}


def paths(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """What a row has, beside the trainer's own columns, as the paths that `reference` takes."""
    nested = [(name, plain(fields.get(name))) for name in ("reward_model", "extra_info")]
    inner = [f"{name}.{key}" for name, value in nested if isinstance(value, Mapping) for key in value]
    outer = [name for name in fields if name not in NOT_EXTRA and not name.startswith("__")]
    return tuple(sorted([*outer, *inner]))


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


@dataclass
class RolloutBatch:
    """The rollouts of a batch, in its order."""

    prompts: list[Any]  # Messages where the batch has them, else the decoded text.
    texts: list[str]
    responses: list[str | list[dict[str, Any]]]
    references: list[Any]
    groups: list[str] | None
    tokens: list[int]
    others: list[dict[str, Any]]  # The fields of `plaudit.rollout.Others`.
    last: list[int]  # Where the last token of each response stands; -1, the end of the row, for an empty one.
    extras: list[dict[str, Any]]


def read_batch(
    data: Any, tokenizer: Any, source: str, places: Sequence[str] = BATCH_REFERENCE
) -> RolloutBatch:
    """Padding may stand on either side of a prompt or a response: the attention mask says what is text.

    `source` is the column that names the data source, and `places` are where a reference may be.
    """
    prompts, responses = data.batch["prompts"].cpu(), data.batch["responses"].cpu()
    width = prompts.shape[-1]
    mask = data.batch["attention_mask"].cpu().bool()
    asked, answered = mask[:, :width], mask[:, width : width + responses.shape[-1]]
    # Tokens that tools or users put in between are no words of the model.
    owned = data.batch["response_mask"].cpu().bool() if "response_mask" in data.batch else answered
    columns = data.non_tensor_batch
    rows = [{name: column[row] for name, column in columns.items()} for row in range(len(prompts))]

    def text(ids: Any) -> str:
        return tokenizer.decode(ids.tolist(), skip_special_tokens=True)

    texts = [text(ids[valid]) for ids, valid in zip(prompts, asked, strict=True)]
    filled = [valid.nonzero().flatten().tolist() for valid in answered]
    return RolloutBatch(
        prompts=[
            plain(fields.get("raw_prompt")) or decoded for fields, decoded in zip(rows, texts, strict=True)
        ],
        texts=texts,
        responses=[
            response_of(tokenizer, ids[valid].tolist(), own[valid])
            for ids, valid, own in zip(responses, answered, owned, strict=True)
        ],
        references=[reference_of(fields, places) for fields in rows],
        groups=[str(fields["uid"]) for fields in rows] if "uid" in columns else None,
        tokens=[len(tokens) for tokens in filled],
        last=[tokens[-1] if tokens else -1 for tokens in filled],
        extras=[extra_of(fields, source) for fields in rows],
        others=[others_of(fields) for fields in rows],
    )


def reference_of(fields: Mapping[str, Any], places: Sequence[str] = BATCH_REFERENCE) -> Any:
    """The first reference there is: the answer among messages, or what stands there, such as a text or a list of accepted answers."""
    for place in places:
        value = plain(at(fields, place))
        if isinstance(value, Mapping) and "chosen" in value:
            value = value["chosen"]
        if (
            isinstance(value, list)
            and value
            and all(isinstance(message, Mapping) and "content" in message for message in value)
        ):
            value = next((message for message in value if message.get("role") == "assistant"), value[0])[
                "content"
            ]
        if value is None or value == "" or value == []:
            continue
        return value if isinstance(value, (str, list, dict)) else json.dumps(value)
    return None


def text_of(reference: Any) -> str | None:
    """The one text that stands for a reference among responses: of accepted answers the first."""
    one = reference[0] if isinstance(reference, list) and reference else reference
    return one if one is None or isinstance(one, str) else json.dumps(one, ensure_ascii=False)


def extra_of(fields: Mapping[str, Any], source: str) -> dict[str, Any]:
    """A copy of the row's `extra_info`, with what functions and rewards look for in it added."""
    extra = fields.get("extra_info")
    found = dict(extra) if isinstance(extra, Mapping) else {}
    truth = at(fields, "reward_model.ground_truth")
    added = dict(truth) if isinstance(truth, Mapping) else {"ground_truth": truth}
    for key, value in {
        **added,
        "data_source": fields.get(source),
        "x": plain(fields.get("raw_prompt")),
    }.items():
        if value is not None:
            found.setdefault(key, value)
    return found
