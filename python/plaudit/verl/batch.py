"""Reward managers for whole batches: verl 0.4 to 0.7.0, whose trainers call `manager(data, return_dict)` once a step.

They replace the reward manager of RM-Gallery's VERL tutorial. Later versions of verl call for one rollout at a time, with
`PlauditRewardManager`. `score_batch` does the same for plain lists, and needs neither verl nor torch.
"""

from __future__ import annotations

import collections
import contextlib
import difflib
import inspect
import json
import logging
import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plaudit
from plaudit.abort import DEFAULT, AbortAfter, NothingScored, StepCounter, tally
from plaudit.imports import load as load_module
from plaudit.result import fill_with_group_means
from plaudit.tables import of_rollouts
from plaudit.values import plain
from plaudit.verl.columns import AGAINST_REFERENCE, Columns, find_fact
from plaudit.verl.custom_function import INVALID, CustomFunction, GroupInput, unwrap
from plaudit.verl.engine_cache import make_engine, shared_engine
from plaudit.verl.options import is_seconds, is_whole, modules
from plaudit.verl.rollout_reader import BATCH_REFERENCE, RolloutBatch, own_words, read_batch, text_of

log = logging.getLogger("plaudit")

# How the reference is named, and how a run goes on without any.
ABORT_WORDS = ("reward_kwargs.reference=COLUMN", "reward_kwargs.abort_after=never")
# The tutorial's defaults: groups at a time, and seconds for each of them.
WORKERS, TIMEOUT = 8, 300.0


@dataclass
class Rewards:
    """What the rollouts of a batch get: finite numbers, in the order of the batch."""

    rewards: list[float]
    info: dict[str, list[Any]]  # By key, one value a rollout: what a trainer logs.
    invalid: list[bool]  # Whose reward is a stand-in, because there is none of its own.
    reasons: list[str | None]


@dataclass
class _Scores:
    """The scores of a batch, with None where a rollout has none."""

    values: list[float | None]
    columns: dict[str, list[Any]]
    reasons: list[str | None]
    details: list[str]


class PlauditBatchRewardManager:
    """Scores a whole batch by one call of the engine, or by a custom function on all groups at once.

    Every option can be set under verl's `reward_model.reward_kwargs`. `recipe` (with `overrides` and `state`)
    is what scores, `tutorial` by default; `imports` are modules that register custom rewards for it.
    `compute_score` is a custom function instead; the default function of verl does not count as one. `max_workers` groups are scored at a time, each for at most `timeout` seconds; a recipe
    has its own `groups.parallel` and `groups.timeout`, and these are used where the two are not given.
    `reference` says where in a row the reference is.

    A rollout that could not be scored gets the mean of its valid siblings, and 0 where there is none
    (`invalid="mean"`), or a fixed number (`invalid=-999.0`). Either way `plaudit/invalid` is 1 for it. Where nothing can be
    scored the run ends: at once if that cannot heal by itself, else after `abort_after` batches in a row; `never` goes on.
    """

    def __init__(
        self,
        tokenizer: Any = None,
        num_examine: int = 0,
        compute_score: Callable[..., Any] | None = None,
        reward_fn_key: str = "data_source",
        *,
        recipe: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] | None = None,
        state: str | os.PathLike[str] | None = None,
        imports: str | Sequence[str] = (),
        max_workers: int | None = None,
        timeout: float | None = None,
        use_group_reward: bool | None = None,
        return_details: bool | None = None,
        return_statistics: bool | None = None,
        is_val_mode: bool | None = None,
        invalid: str | float = "mean",
        same_size: bool = True,
        reference: str | Sequence[str] = BATCH_REFERENCE,
        abort_after: AbortAfter = DEFAULT,
        **reward_kwargs: Any,
    ):
        self.tokenizer = tokenizer
        self.num_examine = num_examine
        self.reward_fn_key = reward_fn_key
        self.max_workers = WORKERS if max_workers is None else max_workers
        self.timeout = TIMEOUT if timeout is None else timeout
        self.return_details = bool(return_details)
        self.return_statistics = return_statistics is not False
        self.is_val_mode = is_val_mode
        self.stand_in = _stand_in(invalid)
        self.abort = StepCounter(abort_after)
        self.same_size = same_size
        self.reference = (reference,) if isinstance(reference, str) else tuple(reference)
        #: Statistics that are fed back from step to step: to custom functions as keyword arguments, and to rewards
        #: in `extras`.
        self.meta_info: dict[str, Any] = {}
        self.compute_score = (
            None if compute_score is None or _is_verls_default(compute_score) else compute_score
        )
        # One of the two scores.
        self._function: CustomFunction | None = None
        self._engine: plaudit.Engine | None = None
        self._columns: dict[str, None] = {}
        options = {
            "max_workers": max_workers,
            "timeout": timeout,
            "use_group_reward": use_group_reward,
            "return_details": return_details,
            "return_statistics": return_statistics,
        }
        given = {name: value for name, value in options.items() if value is not None}
        if not is_whole(self.max_workers, 1):
            raise ValueError(
                f"max_workers is how many groups are scored at a time, 1 or more, not {max_workers!r}"
            )
        if not is_seconds(self.timeout):
            raise ValueError(f"timeout is a number of seconds above 0, not {timeout!r}")
        if self.compute_score is None:
            if reward_kwargs:
                raise ValueError(_unknown(reward_kwargs))
            for module in modules(imports):
                load_module(module)
            self._engine = make_engine(recipe, overrides, state, given)
        elif recipe or overrides or state or imports:
            raise ValueError(
                "both a recipe, or what belongs to one, and a compute_score are given: give one of them, "
                "or make the function a reward of the recipe with @plaudit.register"
            )
        else:
            self._function = CustomFunction(self.compute_score, given, reward_kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._engine is not None:
            self._engine = shared_engine(self._engine)

    @property
    def judge_usage(self) -> list[dict[str, Any]]:
        """The calls, tokens and costs of the recipe's judges so far; empty for a custom function."""
        return [] if self._engine is None else self._engine.judge_usage

    def score_batch(
        self,
        prompts: Sequence[Any],
        responses: Sequence[str | list[dict[str, Any]]],
        references: Sequence[Any] | None = None,
        groups: Sequence[Any] | None = None,
        tokens: Sequence[int] | None = None,
        extras: Sequence[Mapping[str, Any]] | None = None,
        *,
        validate: bool | None = None,
        texts: Sequence[str] | None = None,
        others: Sequence[Mapping[str, Any]] = (),
    ) -> Rewards:
        """The rewards of a batch, whose rollouts may come in any order.

        `groups` names the group of each rollout; without it, equal prompts make a group. With `validate`, the reference of a
        group is compared with its responses, which gives `win`, `win_and`, `comparison_score` and `acc`. `texts`
        are the prompts as a custom function gets them, where they are messages. `others` are the fields of
        `plaudit.rollout.Others` of each rollout.
        """
        validate = bool(self.is_val_mode) if validate is None else validate
        if texts is None:
            texts = [prompt if isinstance(prompt, str) else json.dumps(plain(prompt)) for prompt in prompts]
        names = [str(name) for name in (texts if groups is None else groups)]
        by_name: dict[str, list[int]] = collections.defaultdict(list)
        for at, name in enumerate(names):
            by_name[name].append(at)
        if self.same_size and not validate:
            _check_same_size(by_name, texts)
        listed: list[Any] = list(references) if references is not None else [None] * len(names)
        notes = [dict(extra) for extra in extras] if extras is not None else [{} for _ in names]
        members = list(by_name.values())
        if self._function is not None:
            inputs = [
                GroupInput(
                    texts[rows[0]],
                    [own_words(responses[row]) for row in rows],
                    [notes[row] for row in rows],
                    text_of(listed[rows[0]]) if validate else None,
                )
                for rows in members
            ]
            scored = self._score_by_function(self._function, inputs, members)
            step = (any(value is not None for value in scored.values), _failures(scored.reasons))
        else:
            assert self._engine is not None
            notes = plain([{**note, **self.meta_info} for note in notes])
            columns = {
                **of_rollouts(others),
                "prompt": prompts,
                "response": responses,
                "reference": listed,
                "group": names,
                "tokens": tokens,
                "extra": notes,
            }
            report = self._engine._score(columns, validate or None)
            has_references = any(reference is not None for reference in listed)
            scored = self._scores_of_report(self._engine, report, validate, has_references)
            step = tally(report)
        ending = None if validate else self.abort.observe(step)
        if ending is not None:
            names = sorted({name for note in notes for name in note})
            raise NothingScored(f"plaudit: {ending.advise(names, *ABORT_WORDS)}")
        return self._fill_missing(scored, members, validate)

    def _scores_of_report(
        self, engine: plaudit.Engine, report: plaudit.Report, validate: bool, has_references: bool
    ) -> _Scores:
        names_of = Columns(engine.rewards, aliases=True)
        missing = [None] * len(report)
        columns: dict[str, list[Any]] = {}
        for key, (component, fact) in names_of.sources.items():
            facts = report.components[component] if fact is None else report.info.get(f"{component}.{fact}")
            columns[key] = missing if facts is None else list(facts)
        compared = {key: find_fact(report.info, names_of.components, key) for key in AGAINST_REFERENCE}
        if validate or compared["win"] is not None:
            columns.update(
                {key: missing if values is None else list(values) for key, values in compared.items()}
            )
        # What `acc` means depends on what is asked, not on what the judge answered this time.
        if validate and engine.judges and has_references:
            columns["acc"] = columns["win"]
        elif names_of.correctness is not None or any(right is not None for right in report.correct):
            columns["acc"] = list(report.correct)
        reasons = [_reason_text(reason) for reason in report.reasons]
        details = [json.dumps(row, ensure_ascii=False) for row in report.rows] if self.return_details else []
        return _Scores([number(value) for value in report.totals], columns, reasons, details)

    def _score_by_function(
        self, function: CustomFunction, inputs: list[GroupInput], members: list[list[int]]
    ) -> _Scores:
        answers = function.score(
            inputs, workers=self.max_workers, timeout=self.timeout, feedback=self.meta_info
        )
        count = sum(map(len, members))
        # verl wants the same keys in every batch, and a group that failed has none.
        self._columns.update(dict.fromkeys(key for answer in answers for key in answer.info))
        columns: dict[str, list[Any]] = {key: [None] * count for key in self._columns}
        scored = _Scores([None] * count, columns, [None] * count, [""] * count)
        for rows, answer in zip(members, answers, strict=True):
            for at, row in enumerate(rows):
                scored.values[row] = answer.scores[at]
                if answer.scores[at] is None:
                    scored.reasons[row] = answer.reason or "the function has no score for it"
                for key, values in answer.info.items():
                    columns[key][row] = values[at]
                if answer.details is not None and at < len(answer.details):
                    scored.details[row] = json.dumps(plain(answer.details[at]), ensure_ascii=False)
        return scored

    def _fill_missing(self, scored: _Scores, members: list[list[int]], validate: bool) -> Rewards:
        """Puts a finite number wherever a trainer wants one."""
        invalid = [value is None for value in scored.values]
        rewards = fill(scored.values, members, across=validate)
        if self.stand_in is not None:
            rewards = [self.stand_in if value is None else value for value in scored.values]
        info = {key: column(values, members) for key, values in scored.columns.items()}
        wins = scored.columns.get("win")
        if wins is not None:
            info["plaudit/compared"] = [float(win is not None) for win in wins]
        info.setdefault("acc", list(info["win"] if self._function is not None and "win" in info else rewards))
        info["score"] = list(rewards)
        info["plaudit/invalid"] = [float(flag) for flag in invalid]
        if self.return_statistics:
            info["reward_mean"], info["reward_std"] = spread(scored.values, members)
        if self.return_details:
            info["details"] = list(scored.details)
        return Rewards(rewards, info, invalid, scored.reasons)

    def __call__(self, data: Any, return_dict: bool = False) -> Any:
        """The rewards of a `DataProto`: a tensor with each one at the last token of its response."""
        import torch

        if "rm_scores" in data.batch.keys():
            scores = data.batch["rm_scores"]
            logged = {key: data.non_tensor_batch[key] for key in data.meta_info.get("reward_extra_keys", [])}
            return {"reward_tensor": scores, "reward_extra_info": logged} if return_dict else scores

        feedback = (data.meta_info.get("last_reward_info") or {}).get("reward_std")
        if feedback is not None and len(feedback):
            self.meta_info["last_mean_std"] = statistics.fmean(float(value) for value in feedback)
        rows = read_batch(data, self.tokenizer, self.reward_fn_key, self.reference)
        # Versions that do not say whether they validate do so by a manager with `num_examine=1`, and train by
        # one with 0.
        default = bool(data.meta_info.get("validate", self.num_examine == 1))
        validate = default if self.is_val_mode is None else self.is_val_mode
        given = (rows.prompts, rows.responses, rows.references, rows.groups, rows.tokens, rows.extras)
        scored = self.score_batch(*given, validate=validate, texts=rows.texts, others=rows.others)
        responses = data.batch["responses"]
        rewards = torch.tensor(scored.rewards, dtype=torch.float32, device=responses.device)
        reward_tensor = torch.zeros_like(responses, dtype=torch.float32)
        reward_tensor[torch.arange(len(rewards)), torch.tensor(rows.last)] = rewards
        self._log(rows, scored)
        data.batch["acc"] = rewards
        if not validate and self.return_statistics:
            self.meta_info["last_mean_std"] = statistics.fmean(scored.info["reward_std"])
        if not return_dict:
            return reward_tensor
        return {"reward_tensor": reward_tensor, "reward_extra_info": scored.info}

    def _log(self, rows: RolloutBatch, scored: Rewards) -> None:
        """Prints the first rollouts of a batch, as the tutorial does, and logs what could not be scored."""
        for at in range(min(self.num_examine, len(scored.rewards))):
            print(f"[Sample {at}] Prompt: {rows.texts[at]}")
            print(f"[Sample {at}] Response: {rows.responses[at]}")
            if rows.references[at] is not None:
                print(f"[Sample {at}] Reference: {rows.references[at]}")
            print(f"[Sample {at}] Score: {scored.rewards[at]}")
            shown = [f"{key}={values[at]}" for key, values in scored.info.items() if key != "details"]
            print(f"[Sample {at}] {', '.join(shown)}")
        if any(scored.invalid):
            each = zip(scored.reasons, scored.invalid, strict=True)
            counts = collections.Counter(reason or "not scored" for reason, invalid in each if invalid)
            most = "; ".join(f"{count} x {reason}" for reason, count in counts.most_common(3))
            instead = "the mean of their valid siblings where they have any"
            if self.stand_in is not None or all(scored.invalid):
                instead = f"{self.stand_in or 0.0:g}"
            share = f"{sum(scored.invalid)} of {len(rows.texts)} rollouts"
            log.warning("plaudit: %s are invalid and get %s: %s", share, instead, most)


class RMGalleryRewardManager(PlauditBatchRewardManager):
    """The manager under the name, and with the arguments, that the tutorial gives it."""

    def __init__(
        self,
        tokenizer: Any = None,
        num_examine: int = 3,
        is_val_mode: bool | None = None,
        compute_score: Callable[..., Any] | None = None,
        reward_fn_key: str = "data_source",
        **reward_kwargs: Any,
    ):
        super().__init__(
            tokenizer, num_examine, compute_score, reward_fn_key, is_val_mode=is_val_mode, **reward_kwargs
        )

    def _fill_missing(self, scored: _Scores, members: list[list[int]], validate: bool) -> Rewards:
        rewards = super()._fill_missing(scored, members, validate)
        # Later versions of the tutorial call the principles rubrics.
        if "reward_principle" in rewards.info:
            rewards.info["reward_rubric"] = list(rewards.info["reward_principle"])
        return rewards


class DGRRewardManager(PlauditBatchRewardManager):
    """The manager under the name that RM-Gallery's example for training gives it."""


# The names under which `register` adds the managers.
NAMES: dict[str, type[PlauditBatchRewardManager]] = {
    "plaudit": PlauditBatchRewardManager,
    "rm_gallery": RMGalleryRewardManager,
    "RMGalleryRewardManager": RMGalleryRewardManager,
    "dgr": DGRRewardManager,
}


def register() -> None:
    """Adds the managers to verl's registry of whole-batch managers, in this process.

    For Ray's workers, give `plaudit.verl.register` to `ray.init` as `worker_process_setup_hook`. A name that
    is taken already stays with whoever has it, except `plaudit`, about which verl complains.
    """
    from verl.workers.reward_manager import register as add
    from verl.workers.reward_manager import registry

    for name, manager in NAMES.items():
        if name == "plaudit" or name not in registry.REWARD_MANAGER_REGISTRY:
            add(name)(manager)


def number(value: Any) -> float | None:
    """A finite float, or None where there is none."""
    if value is None or isinstance(value, str):
        return None
    found = float(value)
    return found if math.isfinite(found) else None


def fill(values: Sequence[float | None], groups: Sequence[Sequence[int]], *, across: bool) -> list[float]:
    """The values, with the group's mean where one is missing, or the batch's if `across`, or 0.

    Trainers average whatever they get and know no "invalid". A rollout that could not be scored gets the mean of its valid
    siblings: its advantage is 0, and theirs are what they would be without it. In a group without a valid rollout all get 0,
    which teaches nothing. Columns that are only logged, and rewards of validation, get the mean of the whole batch instead of
    that 0, so that a judge that is down for a moment does not look like answers that got worse.
    """
    valid = [value for value in values if value is not None]
    fallback = statistics.fmean(valid) if across and valid else 0.0
    return [fallback if value is None else value for value in fill_with_group_means(values, groups)]


def column(values: Sequence[Any], groups: Sequence[Sequence[int]]) -> list[Any]:
    """A column as a trainer logs it: finite floats, or texts where any value is one."""
    if not any(isinstance(value, str) for value in values):
        with contextlib.suppress(TypeError, ValueError):
            return fill([number(value) for value in values], groups, across=True)
    return ["" if value is None else str(value) for value in values]


def spread(
    values: Sequence[float | None], groups: Sequence[Sequence[int]]
) -> tuple[list[float], list[float]]:
    """The mean and the standard deviation of each rollout's group, over its valid rollouts."""
    means, deviations = [0.0] * len(values), [0.0] * len(values)
    for rows in groups:
        known = [value for value in (values[row] for row in rows) if value is not None]
        for row in rows if known else ():
            means[row], deviations[row] = statistics.fmean(known), statistics.pstdev(known)
    return means, deviations


def _failures(reasons: Sequence[str | None]) -> dict[tuple[str, str], int]:
    """What a custom function did not score: nobody knows whether that heals."""
    return dict(collections.Counter(("function", reason) for reason in reasons if reason is not None))


def _reason_text(reason: Mapping[str, Any] | None) -> str | None:
    return None if reason is None else f"{reason['code']} ({reason['component']}): {reason['message']}"


def _check_same_size(members: Mapping[str, list[int]], texts: Sequence[str]) -> None:
    sizes = collections.Counter(len(rows) for rows in members.values())
    if len(sizes) < 2:
        return
    usual = sizes.most_common(1)[0][0]
    odd = [(name, rows) for name, rows in members.items() if len(rows) != usual]
    named = "; ".join(f"{name!r:.60} has {len(rows)} ({texts[rows[0]]!r:.60})" for name, rows in odd[:5])
    rest = f"; and {len(odd) - 5} more" if len(odd) > 5 else ""
    raise ValueError(
        f"groups must have the same size: most have {usual} rollouts, but {named}{rest}. "
        "Set same_size to false where groups may differ."
    )


def _stand_in(invalid: str | float) -> float | None:
    """The number that an invalid rollout gets, or None for the mean of its siblings."""
    if invalid == "mean":
        return None
    try:
        chosen = number(float(str(invalid).removeprefix("value:")))
    except ValueError:
        chosen = None
    if chosen is None:
        raise ValueError(f"invalid is 'mean' or a number such as {INVALID:g}, not {invalid!r}")
    return chosen


def _is_verls_default(function: Callable[..., Any]) -> bool:
    """Whether it is what verl passes when no function is configured."""
    behind = unwrap(function)
    module = getattr(behind, "__module__", None) or ""
    return module.startswith("verl.") and "default_compute_score" in getattr(behind, "__name__", "")


def _unknown(given: Mapping[str, Any]) -> str:
    known = [
        name for name in inspect.signature(PlauditBatchRewardManager.__init__).parameters if name != "self"
    ]
    described = []
    for name in given:
        near = difflib.get_close_matches(name, known, n=1)
        described.append(f"{name!r} (did you mean {near[0]!r}?)" if near else f"{name!r}")
    return f"reward_kwargs has {', '.join(described)}, which a recipe does not take"
