"""Scores finished rollouts of verl through the shared engine: a finite number, and the same columns for every rollout."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import plaudit
from plaudit.abort import NothingScored
from plaudit.ray.actor import ENDING, Rollout
from plaudit.ray.client import EngineClient
from plaudit.ray.steps import SAMPLED
from plaudit.result import Result
from plaudit.verl import config_checks
from plaudit.verl.columns import Columns
from plaudit.verl.options import Options
from plaudit.verl.rollout_reader import RolloutReader

log = logging.getLogger("plaudit")

# Added to the time of waiting for the group and of scoring it, before a rollout is invalid without an answer.
SLACK_S = 30.0
# The same message is logged once in this time.
LOG_INTERVAL_S = 60.0


class RolloutScorer:
    """Scores the rollouts of one process. The reward manager and the agent loop have one each."""

    def __init__(
        self, config: Any, tokenizer: Any, *, waits_in_ray: bool, router_address: str | None = None
    ) -> None:
        """`waits_in_ray`: each rollout that waits occupies a call of a Ray actor, of which there are not many."""
        self.options = Options.read(config)
        model = config.reward.reward_model.get("model_path")
        rollout_n = int(config.actor_rollout_ref.rollout.n)
        actor_config = self.options.actor_config(
            router_address, model, int(config.data.train_batch_size) * rollout_n
        )
        # The recipe is read here too, so that an error in it is raised before the first rollout, and by name.
        engine = actor_config.engine(state=False)
        size = self.options.size if self.options.size is not None else rollout_n
        config_checks.check(
            config, self.options, compares=engine.compares_groups, size=size, waits_in_ray=waits_in_ray
        )
        if isinstance(size, int):
            engine.check_group_size(size)
        self.columns = Columns(engine.rewards, aliases=self.options.aliases)
        self.invalid = self.options.invalid_value()
        self.compares = engine.compares_groups
        # Without comparisons, only an invalid rollout that gets the mean of its siblings has to know them.
        self.reader = RolloutReader(
            tokenizer, self.options, size if self.compares or self.invalid == "mean" else 1
        )
        self.decoding = ThreadPoolExecutor(1, thread_name_prefix="plaudit-decode")
        self.client = EngineClient(
            actor_config, deadline=deadline(engine, actor_config.timeout), shards=self.options.shards
        )
        self.logged: dict[str, float] = {}

    async def score(
        self, fields: Mapping[str, Any], prompt_ids: Any, response_ids: Any, mask: Any = None
    ) -> dict[str, Any]:
        """`reward_score` and `reward_extra_info` of one rollout; `turn_rewards` where the recipe asks for them."""
        if self.compares and not self.reader.has_split(fields):
            self.log_error(
                "split",
                f"rollouts without `{self.reader.field}` are taken for training: a validation rollout among them waits "
                "for siblings until its group's time is up. Give the data that field, or name another by "
                "+reward.reward_kwargs.validation.field",
            )
        rollout = await asyncio.get_running_loop().run_in_executor(
            self.decoding, self.reader.read, fields, prompt_ids, response_ids, mask
        )
        result = await self.client.score(rollout)
        if ENDING in result.info:
            self.log_error("ending", result.info[ENDING])
            raise NothingScored(f"plaudit: {result.info[ENDING]}")
        if rollout.validate:
            result = self.name_missing_reference(result, rollout)
        score, invalid = self.reward_of(result, rollout.validate)
        columns = self.columns.fill(result, score, invalid)
        if SAMPLED in result.info:
            print_sample(rollout, columns)
        scored = {"reward_score": score, "reward_extra_info": columns}
        return scored if result.turn_rewards is None else {**scored, "turn_rewards": result.turn_rewards}

    def withdraw(self, fields: Mapping[str, Any]) -> None:
        """Tells the siblings of a rollout that failed not to wait for it."""
        rollout = self.reader.read(fields, [], [])
        if not rollout.validate:
            self.client.withdraw(rollout.group, rollout.member, rollout.size)

    def name_missing_reference(self, result: Result, rollout: Rollout) -> Result:
        """The result of a validation rollout. If only its reference was missing, the reason says where it was looked for."""
        alone = result.reason is not None and result.reason.get("code") == "group.too_small"
        if not alone or rollout.reference is not None:
            return result
        message = (
            "a validation rollout is compared with its reference, and this row has none in "
            f"{' or '.join(self.reader.references)}; name its place by +reward.reward_kwargs.reference"
        )
        reason = {"code": "input.missing_reference", "component": None, "message": message}
        return replace(result, reason=reason)

    def reward_of(self, result: Result, validate: bool) -> tuple[float, bool]:
        """The number for the trainer, and whether it stands for a rollout that could not be scored."""
        if result.total is not None and math.isfinite(result.total):
            return float(result.total), False
        reason = result.reason or {"code": result.outcome, "message": "no component applies"}
        code = str(reason.get("code"))
        detail = f"{code}: {reason.get('message')}"
        if self.invalid == "drop":
            raise InvalidRollout(f"plaudit could not score this rollout ({detail})")
        number, topic, mean = 0.0, code, result.siblings_mean
        if isinstance(self.invalid, float):
            number, message = self.invalid, f"a rollout is invalid and gets {self.invalid}"
        elif validate:
            message = "a validation rollout is invalid and counts as 0.0"
        elif mean is not None and math.isfinite(mean):
            number, message = float(mean), "a rollout is invalid and gets the mean of its siblings"
        elif result.group_size:
            topic, message = (
                "group",
                "no rollout of a group is valid: all of it gets 0.0, and teaches nothing",
            )
        else:
            topic, message = (
                "siblings",
                "a rollout is invalid and gets 0.0, since nothing is known of its siblings",
            )
        self.log_error(topic, f"{message} ({detail})")
        return number, True

    def log_error(self, topic: str, message: str) -> None:
        """Logs an error, at most once a minute about the same topic."""
        now = time.monotonic()
        if now - self.logged.get(topic, -math.inf) > LOG_INTERVAL_S:
            self.logged[topic] = now
            log.error("plaudit: %s", message)


class InvalidRollout(RuntimeError):
    """Raised where invalid rollouts are to be dropped: verl's V1 trainer goes on with the siblings."""


def deadline(engine: plaudit.Engine, timeout: float | None) -> float:
    """The longest that a rollout may take: its group's wait, its group's scoring, and some slack."""
    waiting = timeout if timeout is not None else engine.timeout
    return waiting + engine.timeout + SLACK_S


def print_sample(rollout: Rollout, columns: dict[str, float]) -> None:
    """Prints one sample in the format of verl's own managers."""
    lines = [
        ("prompt", rollout.prompt),
        ("response", rollout.response),
        ("reference", rollout.reference),
        *columns.items(),
    ]
    print("\n".join(f"[{name}] {value}" for name, value in lines), flush=True)
