"""Reads a whole batch of verl, a `DataProto`, into lists with one value a rollout."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plaudit.values import plain
from plaudit.verl.rollout_reader import at

# The places of a row's reference: verl's own, that of RM-Gallery's VERL tutorial, and that of its training example.
REFERENCE = ("reward_model.ground_truth", "extra_info.y", "extra_info.chosen")


@dataclass
class RolloutBatch:
    """The rollouts of a batch, in its order."""

    prompts: list[Any]  # Messages where the batch has them, else the decoded text.
    texts: list[str]
    responses: list[str]
    references: list[str | None]
    groups: list[str] | None
    tokens: list[int]
    last: list[int]  # Where the last token of each response stands; -1, the end of the row, for an empty one.
    extras: list[dict[str, Any]]


def read_batch(data: Any, tokenizer: Any, source: str, places: Sequence[str] = REFERENCE) -> RolloutBatch:
    """Padding may stand on either side of a prompt or a response: the attention mask says what is text.

    `source` is the column that names the data source, and `places` are where a reference may be.
    """
    prompts, responses = data.batch["prompts"].cpu(), data.batch["responses"].cpu()
    width = prompts.shape[-1]
    mask = data.batch["attention_mask"].cpu().bool()
    asked, answered = mask[:, :width], mask[:, width : width + responses.shape[-1]]
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
        responses=[text(ids[valid]) for ids, valid in zip(responses, answered, strict=True)],
        references=[reference_of(fields, places) for fields in rows],
        groups=[str(fields["uid"]) for fields in rows] if "uid" in columns else None,
        tokens=[len(tokens) for tokens in filled],
        last=[tokens[-1] if tokens else -1 for tokens in filled],
        extras=[extra_of(fields, source) for fields in rows],
    )


def reference_of(fields: Mapping[str, Any], places: Sequence[str] = REFERENCE) -> str | None:
    """The first reference there is: a text, or the answer among messages; anything else goes as JSON."""
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
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return None


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
