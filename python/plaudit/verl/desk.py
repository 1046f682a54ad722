"""What does verl get for one rollout? A finite number and the same columns for all, by way of the shared engine."""

from __future__ import annotations

import logging
import math
import time
from typing import Any

import plaudit
from plaudit.ray.actor import Answer, Rollout
from plaudit.ray.connection import Connection
from plaudit.verl import guard
from plaudit.verl.keys import Keys
from plaudit.verl.options import Options
from plaudit.verl.rollouts import Finished, Reader

log = logging.getLogger("plaudit")

# What a call may take beyond waiting for the group and scoring it, before it is answered without the shared engine.
SLACK_S = 30.0
# The same complaint is made once in this time.
QUIET_S = 60.0


class Desk:
    """One process's place where finished rollouts are handed in. The reward manager and the agent loop have one each."""

    def __init__(
        self, config: Any, tokenizer: Any, *, waits_in_ray: bool, router_address: str | None = None
    ) -> None:
        """`waits_in_ray`: each rollout that waits occupies a call of a Ray actor, of which there are not many."""
        self.options = Options.read(config)
        model = config.reward.reward_model.get("model_path")
        terms = self.options.terms(router_address, model)
        # The recipe is read here too, so that a mistake in it is told before the first rollout, and by name.
        engine = terms.engine(state=False)
        size = self.options.size if self.options.size is not None else int(config.actor_rollout_ref.rollout.n)
        guard.check(
            config, self.options, compares=engine.compares_groups, size=size, waits_in_ray=waits_in_ray
        )
        if isinstance(size, int):
            engine.check_group_size(size)
        self.keys = Keys(engine.rewards, aliases=self.options.aliases)
        self.invalid = self.options.invalid_value()
        self.compares = engine.compares_groups
        # Without comparisons, only an invalid rollout that gets the mean of its siblings has to know them.
        self.reader = Reader(tokenizer, self.options, size if self.compares or self.invalid == "mean" else 1)
        self.connection = Connection(
            terms,
            deadline=self.deadline(engine, terms.timeout),
            shards=self.options.shards,
            prepare=self.reader.read,
        )
        self.said: dict[str, float] = {}

    @staticmethod
    def deadline(engine: plaudit.Engine, timeout: float | None) -> float:
        """The longest that a rollout may take: its group's wait, its group's scoring, and some slack."""
        scoring = engine.timeout
        waiting = timeout if timeout is not None else scoring
        return waiting + scoring + SLACK_S

    async def score(self, finished: Finished) -> dict[str, Any]:
        """`reward_score` and `reward_extra_info` of one rollout."""
        if self.compares and not self.reader.tells(finished.fields):
            self.say(
                "split",
                f"rollouts without `{self.reader.field}` are taken for training: a validation rollout among them waits "
                "for siblings until its group's time is up. Give the data that field, or name another by "
                "+reward.reward_kwargs.validation.field",
            )
        answer = await self.connection.score(finished)
        validate = self.reader.validates(finished.fields)
        if validate:
            answer = self.without_rival(answer, finished)
        score, invalid = self.settle(answer, validate)
        columns = self.keys.fill(answer, score, invalid)
        if answer.examine:
            show(self.reader.read(finished), columns)
        return {"reward_score": score, "reward_extra_info": columns}

    def without_rival(self, answer: Answer, finished: Finished) -> Answer:
        """The answer to a validation rollout, which says where its reference should be if only that was missing."""
        alone = answer.reason is not None and answer.reason.get("code") == "group.too_small"
        if not alone or self.reader.reference(finished.fields) is not None:
            return answer
        message = (
            "a validation rollout is compared with its reference, and this row has none in "
            f"{' or '.join(self.reader.references)}; name its place by +reward.reward_kwargs.reference"
        )
        return answer._replace(
            reason={"code": "input.missing_reference", "component": None, "message": message}
        )

    def leave(self, finished: Finished) -> None:
        """Tells the siblings of a rollout that failed not to wait for it."""
        rollout = self.reader.read(finished)
        if not rollout.validate:
            self.connection.leave(rollout.group, rollout.member, rollout.size)

    def settle(self, answer: Answer, validate: bool) -> tuple[float, bool]:
        """The number for the trainer, and whether it stands for a rollout that could not be scored."""
        if answer.total is not None and math.isfinite(answer.total):
            return float(answer.total), False
        reason = answer.reason or {"code": answer.outcome, "message": "no component applies"}
        told = f"{reason.get('code')}: {reason.get('message')}"
        if self.invalid == "drop":
            raise InvalidRollout(f"plaudit could not score this rollout ({told})")
        if isinstance(self.invalid, float):
            self.say(str(reason.get("code")), f"a rollout is invalid and gets {self.invalid} ({told})")
            return self.invalid, True
        if validate:
            self.say(str(reason.get("code")), f"a validation rollout is invalid and counts as 0.0 ({told})")
            return 0.0, True
        mean = answer.siblings_mean
        if mean is None or not math.isfinite(mean):
            if answer.siblings_known:
                self.say(
                    "group",
                    f"no rollout of a group is valid: all of it gets 0.0, and teaches nothing ({told})",
                )
            else:
                self.say(
                    "siblings",
                    f"a rollout is invalid and gets 0.0, since nothing is known of its siblings ({told})",
                )
            return 0.0, True
        self.say(str(reason.get("code")), f"a rollout is invalid and gets the mean of its siblings ({told})")
        return float(mean), True

    def say(self, about: str, message: str) -> None:
        """An error in the log, at most once a minute about the same thing."""
        now = time.monotonic()
        if now - self.said.get(about, -math.inf) > QUIET_S:
            self.said[about] = now
            log.error("plaudit: %s", message)


class InvalidRollout(RuntimeError):
    """Raised where invalid rollouts are to be dropped: verl's V1 trainer goes on with the siblings."""


def show(rollout: Rollout, columns: dict[str, float]) -> None:
    """Prints one sample, as people know it from verl's managers."""
    lines = [
        ("prompt", rollout.prompt),
        ("response", rollout.response),
        ("reference", rollout.reference),
        *columns.items(),
    ]
    print("\n".join(f"[{name}] {value}" for name, value in lines), flush=True)
