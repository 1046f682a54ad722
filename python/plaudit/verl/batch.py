"""How does a trainer that hands over a whole batch get group-aware rewards?

The reward manager of RM-Gallery's VERL tutorial, for verl 0.4 to 0.7.0, whose trainers call `manager(data,
return_dict)` once a step. Later versions ask for one rollout at a time: `PlauditRewardManager` is for them.
`score_batch` does the same for plain lists, and needs neither verl nor torch.
"""

from __future__ import annotations

import collections
import difflib
import importlib
import inspect
import json
import logging
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plaudit
from plaudit.verl.fill import column, fill, number, spread
from plaudit.verl.keys import AGAINST_REFERENCE, Keys, found
from plaudit.verl.options import modules, seconds, whole
from plaudit.verl.own import INVALID, Group, OwnFunction, inner
from plaudit.verl.rows import REFERENCE, Rows, plain, read_rows
from plaudit.verl.shared import shared_engine, source_of

log = logging.getLogger("plaudit")

#: What the tutorial does unless it is told otherwise: groups at a time, and seconds for each of them.
WORKERS, TIMEOUT = 8, 300.0


@dataclass
class Rewards:
    """What the rollouts of a batch get: finite numbers, in the order of the batch."""

    rewards: list[float]
    info: dict[str, list[Any]]  # By key, one value a rollout: what a trainer logs.
    invalid: list[bool]  # Whose reward is a stand-in, because there is none of its own.
    reasons: list[str | None]


@dataclass
class _Scored:
    """What was found out about a batch, with None where nothing was."""

    values: list[float | None]
    columns: dict[str, list[Any]]
    reasons: list[str | None]
    details: list[str]


class PlauditBatchRewardManager:
    """Scores a whole batch by one call of the engine, or by a function of your own on all groups at once.

    Every option can be set under verl's `reward_model.reward_kwargs`. `recipe` (with `overrides` and `state`)
    is what scores, `tutorial` where nothing is said; `imports` are modules that register rewards of your own
    for it. `compute_score` is a function of your own instead; what verl passes when none is configured does
    not count as one. `max_workers` groups are scored at a time, each for at most `timeout` seconds; a recipe
    has its own `groups.parallel` and `groups.timeout`, and these are used where the two are not given.
    `reference` says where in a row the reference is.

    A rollout that could not be scored gets the mean of its valid siblings, and 0 where there is none
    (`invalid="mean"`), or a fixed number (`invalid=-999.0`). Either way `plaudit/invalid` is 1 for it.
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
        reference: str | Sequence[str] = REFERENCE,
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
        self.same_size = same_size
        self.reference = (reference,) if isinstance(reference, str) else tuple(reference)
        #: What is fed back from step to step. It reaches functions of one's own as keyword arguments, and
        #: rewards in `extras`.
        self.meta_info: dict[str, Any] = {}
        self.compute_score = None if compute_score is None or _is_default(compute_score) else compute_score
        # One of the two scores.
        self._own: OwnFunction | None = None
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
        if not whole(self.max_workers, 1):
            raise ValueError(
                f"max_workers is how many groups are scored at a time, 1 or more, not {max_workers!r}"
            )
        if not seconds(self.timeout):
            raise ValueError(f"timeout is a number of seconds above 0, not {timeout!r}")
        if self.compute_score is None:
            if reward_kwargs:
                raise ValueError(_unknown(reward_kwargs))
            for module in modules(imports):
                importlib.import_module(module)
            self._source = source_of(recipe, overrides, state, given)
            self._engine = shared_engine(*self._source)
        elif recipe or overrides or state or imports:
            raise ValueError(
                "both a recipe, or what belongs to one, and a compute_score are given: give one of them, "
                "or make the function a reward of the recipe with @plaudit.register"
            )
        else:
            self._own = OwnFunction(self.compute_score, given, reward_kwargs)

    def __getstate__(self) -> dict[str, Any]:
        # The engine knows how to be made again, the functions of its rewards included.
        engine = self._engine
        return {**self.__dict__, "_engine": None if engine is None else engine.__reduce__()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if state["_engine"] is not None:
            rebuild, arguments = state["_engine"]
            make, functions = lambda: rebuild(*arguments), arguments[-1]
            self._engine = shared_engine(*self._source, make=make, functions=functions)

    @property
    def tallies(self) -> list[dict[str, Any]]:
        """What the recipe's judges have been asked so far; a function of one's own keeps no account."""
        return [] if self._engine is None else self._engine.tallies

    def score_batch(
        self,
        prompts: Sequence[Any],
        responses: Sequence[str],
        references: Sequence[str | None] | None = None,
        groups: Sequence[Any] | None = None,
        tokens: Sequence[int] | None = None,
        extras: Sequence[Mapping[str, Any]] | None = None,
        *,
        validate: bool | None = None,
        texts: Sequence[str] | None = None,
    ) -> Rewards:
        """The rewards of a batch, whose rollouts may come in any order.

        `groups` says who belongs together; without it, equal prompts do. With `validate`, the reference of a
        group is a rival, and `win`, `win_and`, `comparison_score` and `acc` are told. `texts` are the prompts
        as a function of one's own sees them, where they are messages.
        """
        validate = bool(self.is_val_mode) if validate is None else validate
        if texts is None:
            texts = [prompt if isinstance(prompt, str) else json.dumps(plain(prompt)) for prompt in prompts]
        names = [str(name) for name in (texts if groups is None else groups)]
        members: dict[str, list[int]] = collections.defaultdict(list)
        for at, name in enumerate(names):
            members[name].append(at)
        if self.same_size and not validate:
            _same_size(members, texts)
        rivals: list[str | None] = list(references) if references is not None else [None] * len(names)
        notes = [dict(extra) for extra in extras] if extras is not None else [{} for _ in names]
        together = list(members.values())
        if self._own is not None:
            shown = [
                Group(
                    texts[rows[0]],
                    [responses[row] for row in rows],
                    [notes[row] for row in rows],
                    rivals[rows[0]] if validate else None,
                )
                for rows in together
            ]
            scored = self._by_function(self._own, shown, together)
        else:
            notes = [{**note, **self.meta_info} for note in notes]
            scored = self._by_recipe(prompts, responses, rivals, names, tokens, notes, validate)
        return self._settle(scored, together, validate)

    def _by_recipe(
        self,
        prompts: Sequence[Any],
        responses: Sequence[str],
        references: list[str | None],
        names: list[str],
        tokens: Sequence[int] | None,
        extras: list[dict[str, Any]],
        validate: bool,
    ) -> _Scored:
        assert self._engine is not None
        report = self._engine.score(
            list(prompts),
            list(responses),
            references,
            names,
            None if tokens is None else list(tokens),
            plain(extras),
            validate=True if validate else None,
        )
        keys = Keys(self._engine.rewards, aliases=True)
        missing = [None] * len(names)
        columns: dict[str, list[Any]] = {}
        for key, (component, fact) in keys.sources.items():
            facts = report.components[component] if fact is None else report.info.get(f"{component}.{fact}")
            columns[key] = missing if facts is None else list(facts)
        compared = {key: found(report.info, keys.components, key) for key in AGAINST_REFERENCE}
        if validate or compared["win"] is not None:
            columns.update({key: missing if held is None else list(held) for key, held in compared.items()})
        # What `acc` means depends on what is asked, not on what the judge answered this time.
        if validate and self._engine.judges and any(reference is not None for reference in references):
            columns["acc"] = columns["win"]
        elif keys.correctness is not None:
            columns["acc"] = list(report.components[keys.correctness])
        reasons = [_said(reason) for reason in report.reasons]
        details = [json.dumps(row, ensure_ascii=False) for row in report.rows] if self.return_details else []
        return _Scored([number(value) for value in report.totals], columns, reasons, details)

    def _by_function(self, own: OwnFunction, shown: list[Group], together: list[list[int]]) -> _Scored:
        answers = own.score(shown, workers=self.max_workers, timeout=self.timeout, fed_back=self.meta_info)
        count = sum(map(len, together))
        # verl wants the same keys in every batch, and a group that failed has none.
        self._columns.update(dict.fromkeys(key for answer in answers for key in answer.info))
        columns: dict[str, list[Any]] = {key: [None] * count for key in self._columns}
        scored = _Scored([None] * count, columns, [None] * count, [""] * count)
        for rows, answer in zip(together, answers, strict=True):
            for at, row in enumerate(rows):
                scored.values[row] = answer.scores[at]
                if answer.scores[at] is None:
                    scored.reasons[row] = answer.reason or "the function has no score for it"
                for key, held in answer.info.items():
                    columns[key][row] = held[at]
                if answer.details is not None and at < len(answer.details):
                    scored.details[row] = json.dumps(plain(answer.details[at]), ensure_ascii=False)
        return scored

    def _settle(self, scored: _Scored, together: list[list[int]], validate: bool) -> Rewards:
        """Puts a finite number wherever a trainer wants one."""
        invalid = [value is None for value in scored.values]
        rewards = fill(scored.values, together, across=validate)
        if self.stand_in is not None:
            rewards = [
                self.stand_in if flag else reward for reward, flag in zip(rewards, invalid, strict=True)
            ]
        info = {key: column(values, together) for key, values in scored.columns.items()}
        wins = scored.columns.get("win")
        if wins is not None:
            info["plaudit/compared"] = [float(win is not None) for win in wins]
        info.setdefault("acc", list(info["win"] if self._own is not None and "win" in info else rewards))
        info["score"] = list(rewards)
        info["plaudit/invalid"] = [float(flag) for flag in invalid]
        if self.return_statistics:
            info["reward_mean"], info["reward_std"] = spread(scored.values, together)
        if self.return_details:
            info["details"] = list(scored.details)
        return Rewards(rewards, info, invalid, scored.reasons)

    def __call__(self, data: Any, return_dict: bool = False) -> Any:
        """The rewards of a `DataProto`: a tensor with each one at the last token of its response."""
        import torch

        if "rm_scores" in data.batch.keys():
            scores = data.batch["rm_scores"]
            told = {key: data.non_tensor_batch[key] for key in data.meta_info.get("reward_extra_keys", [])}
            return {"reward_tensor": scores, "reward_extra_info": told} if return_dict else scores

        fed_back = (data.meta_info.get("last_reward_info") or {}).get("reward_std")
        if fed_back is not None and len(fed_back):
            self.meta_info["last_mean_std"] = statistics.fmean(float(value) for value in fed_back)
        rows = read_rows(data, self.tokenizer, self.reward_fn_key, self.reference)
        # Versions that do not say whether they validate do so by a manager with `num_examine=1`, and train by
        # one with 0.
        says = bool(data.meta_info.get("validate", self.num_examine == 1))
        validate = says if self.is_val_mode is None else self.is_val_mode
        given = (rows.prompts, rows.responses, rows.references, rows.groups, rows.tokens, rows.extras)
        scored = self.score_batch(*given, validate=validate, texts=rows.texts)
        responses = data.batch["responses"]
        rewards = torch.tensor(scored.rewards, dtype=torch.float32, device=responses.device)
        reward_tensor = torch.zeros_like(responses, dtype=torch.float32)
        reward_tensor[torch.arange(len(rewards)), torch.tensor(rows.last)] = rewards
        self._tell(rows, scored)
        data.batch["acc"] = rewards
        if not validate and self.return_statistics:
            self.meta_info["last_mean_std"] = statistics.fmean(scored.info["reward_std"])
        if not return_dict:
            return reward_tensor
        return {"reward_tensor": reward_tensor, "reward_extra_info": scored.info}

    def _tell(self, rows: Rows, scored: Rewards) -> None:
        """Prints the first rollouts of a batch, as the tutorial does, and logs what could not be scored."""
        for at in range(min(self.num_examine, len(scored.rewards))):
            print(f"[Sample {at}] Prompt: {rows.texts[at]}")
            print(f"[Sample {at}] Response: {rows.responses[at]}")
            if rows.references[at] is not None:
                print(f"[Sample {at}] Reference: {rows.references[at]}")
            print(f"[Sample {at}] Score: {scored.rewards[at]}")
            told = [f"{key}={held[at]}" for key, held in scored.info.items() if key != "details"]
            print(f"[Sample {at}] {', '.join(told)}")
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

    def _settle(self, scored: _Scored, together: list[list[int]], validate: bool) -> Rewards:
        rewards = super()._settle(scored, together, validate)
        # Later versions of the tutorial call the principles rubrics.
        if "reward_principle" in rewards.info:
            rewards.info["reward_rubric"] = list(rewards.info["reward_principle"])
        return rewards


class DGRRewardManager(PlauditBatchRewardManager):
    """The manager under the name that RM-Gallery's example for training gives it."""


#: The names under which `register` makes the managers known.
NAMES: dict[str, type[PlauditBatchRewardManager]] = {
    "plaudit": PlauditBatchRewardManager,
    "rm_gallery": RMGalleryRewardManager,
    "RMGalleryRewardManager": RMGalleryRewardManager,
    "dgr": DGRRewardManager,
}


def register() -> None:
    """Makes the managers known to verl's registry of whole-batch managers, in this process.

    For Ray's workers, give `plaudit.verl.register` to `ray.init` as `worker_process_setup_hook`. A name that
    is taken already stays with whoever has it, except `plaudit`, about which verl complains.
    """
    from verl.workers.reward_manager import register as add
    from verl.workers.reward_manager import registry

    for name, manager in NAMES.items():
        if name == "plaudit" or name not in registry.REWARD_MANAGER_REGISTRY:
            add(name)(manager)


def _said(reason: Mapping[str, Any] | None) -> str | None:
    return None if reason is None else f"{reason['code']} ({reason['component']}): {reason['message']}"


def _same_size(members: Mapping[str, list[int]], texts: Sequence[str]) -> None:
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


def _is_default(function: Callable[..., Any]) -> bool:
    """Whether it is what verl passes when no function is configured."""
    behind = inner(function)
    module = getattr(behind, "__module__", None) or ""
    return module.startswith("verl.") and "default_compute_score" in getattr(behind, "__name__", "")


def _unknown(given: Mapping[str, Any]) -> str:
    known = [
        name for name in inspect.signature(PlauditBatchRewardManager.__init__).parameters if name != "self"
    ]
    said = []
    for name in given:
        near = difflib.get_close_matches(name, known, n=1)
        said.append(f"{name!r} (did you mean {near[0]!r}?)" if near else f"{name!r}")
    return f"reward_kwargs has {', '.join(said)}, which a recipe does not take"
