"""How does one recipe become a reward function of TRL?

`Reward` reads what the trainer hands over, brings cut groups together, asks the engine once for all rows, and answers with one
number a completion. Whatever could not be scored is None, which TRL keeps out of the group's mean.
"""

from __future__ import annotations

import asyncio
import collections
import difflib
import logging
import math
import os
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plaudit
from plaudit._plaudit import ArgumentError, check_state

from .call import Call, Row, Score, read
from .cluster import Cluster
from .ranks import Alone, Ranks, world
from .service import Remote

if TYPE_CHECKING:
    from concurrent.futures import Future

    from plaudit.result import Result

    from .columns import AsyncColumn, Column

GRAIN = 2.0**-16
"""Rewards are multiples of this. TRL takes the mean of a group in single precision, where the mean of equal numbers such as 0.7
can differ from them in the last bit, and then a group without any difference gets advantages. The sum of a group of multiples
of 2^-16 is exact up to an absolute sum of 256, so their advantage is exactly zero."""

QUIET_S = 60.0
"""Why completions have no reward is said once in so many seconds."""

_log = logging.getLogger("plaudit.trl")

_AGAINST_REFERENCE = ("win", "win_and", "comparison_score")


class Reward:
    """A recipe as a reward function: `GRPOTrainer(reward_funcs=Reward("math"), ...)`.

    - `recipe`, `overrides`, `state`: as for `plaudit.Engine`. Mistakes in the recipe are told here, not in mid-training.
    - `name`: how TRL's metrics call the reward; the recipe's name by default.
    - `group`: `"prompt"`, or the column of the data set that says which rows are of one group.
    - `size`: how many completions a group has, where the trainer does not show it (TRL's GRPO and RLOO trainers do).
    - `join`: what is done about groups that the border between two ranks cuts. `"ranks"` passes their rows round between
      the ranks, `"ray"` sends all rows to the plaudit actor of the Ray cluster; None scores the local part and says so.
    - `timeout`: how many seconds a call waits for other ranks, for the actor, or for another column.
    - `columns`: what a column of the data set is: `{"gold": "reference", "source": "data_source", "image": None}` makes `gold`
      the reference, `source` the field `data_source` of `extra`, and leaves `image` out. Every other column reaches the
      rewards in `extra` under its own name; the reference is in `answer`, `solution`, `reference` or `ground_truth`.
    - `round`: whether rewards are rounded to multiples of 2^-16, which gives a group of equal rewards no advantage at all.
    - `url`: the address of a running `plaudit serve` that scores in place of an engine here. `recipe` is then the name of one
      of its recipes, `token` or `token_env` is what it asks for, and `run` the name under which it keeps the figures. Groups
      that the border between two ranks cuts are joined there. A service that does not answer within `timeout` makes the
      completions None, `engine.unreachable`.
    - `abort_after`: after so many calls in a row in which most completions could not be scored, the training ends with an
      error. None goes on for ever, without rewards.

    In an evaluation of the trainer, completions are compared with the references as well, where the recipe compares.
    """

    __name__: str

    def __init__(
        self,
        recipe: str | os.PathLike[str] | Mapping[str, Any],
        *,
        overrides: Mapping[str, object] | None = None,
        state: str | os.PathLike[str] | None = None,
        name: str | None = None,
        group: str = "prompt",
        size: int | None = None,
        join: str | None = None,
        timeout: float = 1800.0,
        columns: Mapping[str, str | None] | None = None,
        round: bool = True,
        url: str | None = None,
        token: str | None = None,
        token_env: str | None = None,
        run: str | None = None,
        abort_after: int | None = None,
    ) -> None:
        if join not in (None, "ranks", "ray"):
            raise ArgumentError(f"join is 'ranks', 'ray' or None, not {join!r}")
        if url is None and not (token is token_env is run is None):
            raise ArgumentError("token=, token_env= and run= are for a service: give its address as url=")
        if url is not None and not (overrides is None and state is None and join in (None, "ranks")):
            raise ArgumentError(
                "with url= the service has the recipe, its overrides and its state, and joins cut groups"
            )
        if abort_after is not None and abort_after < 1:
            raise ArgumentError(f"abort_after is a number of calls from 1, not {abort_after}")
        if size is not None and size < 1:
            raise ArgumentError(f"size is the number of completions of a group, not {size}")
        self._recipe = recipe
        self._overrides = overrides
        self._state = None if state is None else os.fspath(state)
        if self._state is not None:
            check_state(self._state)
        self._group = group
        self._size = size
        self._join = join
        self._columns = dict(columns or {})
        for column, role in self._columns.items():
            if role != "reference" and difflib.get_close_matches(str(role), ["reference"], cutoff=0.8):
                warnings.warn(
                    f"columns= makes `{column}` the field {role!r} of extra; did you mean 'reference'?",
                    stacklevel=2,
                )
        self._rounds = round
        self._ranks = Ranks(timeout)
        self._alone = Alone()
        self.timeout = timeout
        self._cluster = self._reach_cluster(timeout) if join == "ray" else None
        self._remote = None if url is None else self._reach_service(url, token, token_env, run)
        self._plan = self._remote.plan if self._remote else plaudit.Engine(recipe, overrides=overrides)
        self._engine: plaudit.Engine | None = None
        self._lock = threading.Lock()
        self._told = False
        self._said = -math.inf
        self._abort_after = abort_after
        self._lost = 0
        self.indivisible = self._plan.indivisible
        self.components = tuple(self._plan.components)
        self.weights = [float(self._plan.weights[component]) for component in self.components]
        self.__name__ = name or self._plan.name

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        """One reward a completion, None where it could not be scored."""
        return [
            score.total for score in self.evaluate(self.read(prompts, completions, completion_ids, kwargs))
        ]

    def as_async(self) -> AsyncReward:
        """The twin that TRL awaits, side by side with other asynchronous rewards."""
        return AsyncReward(self)

    def as_columns(self) -> list[Column]:
        """One reward function a component, evaluated together: `GRPOConfig(reward_weights=reward.weights)` weighs them."""
        from .columns import Evaluations

        return Evaluations(self).columns()

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "_engine": None,
            "_lock": None,
            "_told": False,
            "_said": -math.inf,
            "_lost": 0,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    @property
    def engine(self) -> plaudit.Engine:
        """The engine of this process, made when it is first needed: only then is it known which rank this is.

        All ranks together keep to the recipe's limits of calls and money. A state folder belongs to one process, so each rank
        has its own below `state`.
        """
        with self._lock:
            if self._engine is None:
                rank, ranks = world()
                state = self._state
                if state is not None and ranks > 1 and "://" not in state:
                    state = str(Path(state) / f"rank-{rank}")
                # Of the functions that were registered where the reward was made, also in another process.
                assert isinstance(self._plan, plaudit.Engine)
                self._engine = self._plan._again(state=state, share=ranks)
            return self._engine

    def read(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None,
        others: Mapping[str, Any],
    ) -> Call:
        """What a trainer handed over, as rows in groups."""
        log_metric, log_extra = others.get("log_metric"), others.get("log_extra")
        # TRL shows the size of a group to nobody but its own methods, of which `log_metric` is one.
        trainer = getattr(log_metric, "__self__", None)
        evaluates = trainer is not None and not getattr(getattr(trainer, "model", None), "training", True)
        shown = getattr(trainer, "num_generations_eval" if evaluates else "num_generations", None)
        size = shown if isinstance(shown, int) else self._size
        rank, _ = world()
        try:
            rows, keys = read(prompts, completions, completion_ids, others, self._columns, self._group)
            if size is not None:
                self._plan.check_group_size(size)
        except Exception as error:
            way = self._way()
            way.open()
            way.fail(error)
            raise
        step = getattr(others.get("trainer_state"), "global_step", None)
        return Call(rows, keys, size, rank * len(rows), evaluates, log_metric, log_extra, step)

    def evaluate(self, call: Call) -> list[Score]:
        """The scores of a call's rows."""
        way = self._open()
        here = way.pass_rows(call)
        try:
            if self._cluster is not None:
                scores = self._of_answers(self._cluster.wait(self._hand_in(call, here)))
            elif self._remote is not None:
                scores = self._of_answers(self._remote.score(call, here, self._validates(call, here)))
            elif here:
                scores = self._of_report(here, self.engine.score(**self._question(call, here)))
            else:
                scores = {}
        except Exception as error:
            way.fail(error)
            self._explain(error)
            raise
        return self._finish(call, scores, way.pass_scores(call, scores))

    async def aevaluate(self, call: Call) -> list[Score]:
        """The same, without blocking the loop."""
        way = self._open()
        passes = way is not self._alone
        here = await asyncio.to_thread(way.pass_rows, call) if passes else way.pass_rows(call)
        try:
            if self._cluster is not None:
                scores = self._of_answers(
                    await asyncio.to_thread(self._cluster.wait, self._hand_in(call, here))
                )
            elif self._remote is not None:
                validates = self._validates(call, here)
                scores = self._of_answers(await asyncio.to_thread(self._remote.score, call, here, validates))
            elif here:
                scores = self._of_report(here, await self.engine.ascore(**self._question(call, here)))
            else:
                scores = {}
        except Exception as error:
            if passes:
                await asyncio.to_thread(way.fail, error)
            self._explain(error)
            raise
        own = await asyncio.to_thread(way.pass_scores, call, scores) if passes else scores
        return self._finish(call, scores, own)

    def _open(self) -> Alone | Ranks:
        """The way on which rows of cut groups find one another, opened before anything waits, in the same order everywhere."""
        way = self._way()
        way.open()
        if self._cluster is not None:
            self._cluster.open()
        if self._remote is not None:
            self._remote.open()
        return way

    def _way(self) -> Alone | Ranks:
        """A recipe that compares nothing needs no whole groups."""
        joins = self._join == "ranks" and self._plan.compares_groups and world()[1] > 1
        return self._ranks if joins else self._alone

    def _reach_cluster(self, timeout: float) -> Cluster:
        from plaudit.ray.actor import ActorConfig

        recipe = os.fspath(self._recipe) if isinstance(self._recipe, os.PathLike) else self._recipe
        overrides = dict(self._overrides) if self._overrides else None
        return Cluster(ActorConfig(recipe, overrides, self._state), self._ranks, timeout)

    def _reach_service(self, url: str, token: str | None, token_env: str | None, run: str | None) -> Remote:
        from plaudit.remote import Service

        if not isinstance(self._recipe, str):
            raise ArgumentError("with url= the recipe is the name of one that the service has")
        service = Service(url, token=token, token_env=token_env, timeout=self.timeout)
        return Remote(service, self._recipe, run, self._ranks, joins=self._join is None)

    def _question(self, call: Call, here: Mapping[int, Row]) -> dict[str, Any]:
        """The arguments of the engine for the rows that are scored here."""
        rows = list(here.values())
        return {
            "prompts": [row.prompt for row in rows],
            "responses": [row.response for row in rows],
            "references": [row.reference for row in rows],
            "groups": [str(group) for group in call.groups_of(here)],
            "tokens": [row.tokens for row in rows],
            "extras": [row.extra for row in rows],
            "validate": True if self._validates(call, here) else None,
        }

    def _hand_in(self, call: Call, here: Mapping[int, Row]) -> dict[int, Future[Result]]:
        assert self._cluster is not None
        return self._cluster.hand_in(call, here, self._validates(call, here))

    def _validates(self, call: Call, here: Mapping[int, Row]) -> bool:
        """Whether the references take part: in an evaluation of the trainer, where the recipe compares."""
        return (
            call.evaluates
            and self._plan.compares_groups
            and any(row.reference is not None for row in here.values())
        )

    def _of_report(self, here: Mapping[int, Row], report: plaudit.Report) -> dict[int, Score]:
        """What the engine says of each row."""
        values = report.totals.tolist()
        columns = {component: report.components[component].tolist() for component in self.components}
        against = {name: report.info[name] for name in _AGAINST_REFERENCE if name in report.info}
        return {
            place: self._score(
                values[at],
                report.outcomes[at],
                report.reasons[at],
                {component: column[at] for component, column in columns.items()},
                {name: column[at] for name, column in against.items()},
            )
            for at, place in enumerate(here)
        }

    def _of_answers(self, answers: Mapping[int, Result]) -> dict[int, Score]:
        """What the shared engine says of each row."""
        return {
            place: self._score(
                answer.total, answer.outcome, answer.reason, answer.components, answer.info, answer.partial
            )
            for place, answer in answers.items()
        }

    def _score(
        self,
        total: float | None,
        outcome: str,
        reason: Mapping[str, Any] | None,
        components: Mapping[str, float | None],
        info: Mapping[str, Any],
        partial: bool = False,
    ) -> Score:
        return Score(
            total=self._number(total),
            outcome=outcome,
            reason=reason["code"] if reason else None,
            message=reason.get("message") if reason else None,
            components={component: self._number(components.get(component)) for component in self.components},
            against_reference={
                name: float(info[name]) for name in _AGAINST_REFERENCE if info.get(name) is not None
            },
            partial=partial,
        )

    def _number(self, value: float | None) -> float | None:
        if value is None or not math.isfinite(value):
            return None
        return round(value / GRAIN) * GRAIN if self._rounds else value

    def _finish(
        self,
        call: Call,
        scores: Mapping[int, Score],
        own: Mapping[int, Score],
    ) -> list[Score]:
        """Logs what was scored here, says what was cut, and gives this rank's rows their scores."""
        groups: dict[int, list[Score]] = {}
        for group, score in zip(call.groups_of(scores), scores.values(), strict=True):
            groups.setdefault(group, []).append(score)
        cut = [members for members in groups.values() if self._is_cut(members, call.size)]
        if cut and self._plan.compares_groups and not self._told:
            self._told = True
            warnings.warn(self._advice(len(cut), call), RuntimeWarning, stacklevel=2)
        self._tell(list(scores.values()))
        mine = [own[at] for at in call.positions]
        if call.log_metric is not None:
            metrics = {**self._means(mine), **self._group_metrics(groups, len(cut))}
            for name, value in metrics.items():
                call.log_metric(f"{self.__name__}/{name}", value)
        if call.log_extra is not None:
            call.log_extra(f"{self.__name__}/outcome", [score.outcome for score in mine])
            call.log_extra(f"{self.__name__}/reason", [score.reason or "" for score in mine])
            for component in self.components:
                call.log_extra(
                    f"{self.__name__}/{component}", [score.components[component] for score in mine]
                )
        self._abort(mine)
        return mine

    def _abort(self, mine: Sequence[Score]) -> None:
        """Ends the training where most completions could not be scored for `abort_after` calls in a row."""
        invalid = [score for score in mine if score.outcome == "invalid"]
        self._lost = self._lost + 1 if 2 * len(invalid) > len(mine) else 0
        if self._abort_after is not None and self._lost >= self._abort_after:
            raise RuntimeError(
                f"the reward `{self.__name__}` could not score most completions of {self._lost} calls in a row: "
                f"{invalid[0].reason} ({invalid[0].message})"
            )

    def _tell(self, scores: Sequence[Score]) -> None:
        """Says why completions have no reward, since a trainer goes on without them; at most once a minute."""
        invalid = [score for score in scores if score.outcome == "invalid"]
        now = time.monotonic()
        if not invalid or now - self._said < QUIET_S:
            return
        self._said = now
        counts = collections.Counter(f"{score.reason} ({score.message})" for score in invalid)
        most = "; ".join(f"{count} x {reason}" for reason, count in counts.most_common(3))
        _log.error(
            "plaudit: %d of %d completions have no reward from `%s`: %s",
            len(invalid),
            len(scores),
            self.__name__,
            most,
        )

    def _explain(self, error: Exception) -> None:
        """Says what can be done, where a recipe with `same_size` refuses what the border of a rank left of a group."""
        uneven = isinstance(error, plaudit.RunError) and error.code == "group.uneven"
        if uneven and self._join is None and self._remote is None and world()[1] > 1:
            raise ArgumentError(
                f"{error}; the border between two ranks cuts groups: give join='ranks'"
            ) from error

    def _is_cut(self, members: list[Score], size: int | None) -> bool:
        """Whether a group was scored without some of its members."""
        if self._cluster is not None or self._remote is not None:
            return any(score.partial for score in members)
        return size is not None and len(members) < size

    def _means(self, scores: Sequence[Score]) -> dict[str, float]:
        """The scalars of this rank's own rows, since TRL takes the mean over the ranks. A mean is over the rows that have a
        value."""
        if not scores:
            return {}
        metrics = {"invalid": sum(score.outcome == "invalid" for score in scores) / len(scores)}
        for component in self.components:
            if values := [value for score in scores if (value := score.components[component]) is not None]:
                metrics[component] = sum(values) / len(values)
        for name in _AGAINST_REFERENCE:
            if values := [
                score.against_reference[name] for score in scores if name in score.against_reference
            ]:
                metrics[name] = sum(values) / len(values)
        return metrics

    def _group_metrics(self, groups: Mapping[int, list[Score]], cut: int) -> dict[str, float]:
        """The scalars of the groups that were scored here."""
        if not groups:
            return {}
        metrics = {"cut_groups": cut / len(groups)}
        totals = [
            [score.total for score in members if score.total is not None] for members in groups.values()
        ]
        if several := [values for values in totals if len(values) > 1]:
            metrics["zero_variance"] = sum(min(values) == max(values) for values in several) / len(several)
        return metrics

    def _advice(self, cut: int, call: Call) -> str:
        """What to do about groups of which only a part was here."""
        told = f"the reward `{self.__name__}` compares the completions of a group, but of {cut} groups only a part was here"
        if world()[1] > 1 and self._join is None and self._remote is None:
            return f"{told}: the border between two ranks cuts them. Give join='ranks' to have them scored whole."
        return f"{told}, fewer than {call.size}. What was here was scored."


class AsyncReward:
    """A `Reward` whose call is awaited; TRL runs all such rewards of a step at once."""

    __name__: str

    def __init__(self, reward: Reward) -> None:
        self.reward = reward
        self.weights = reward.weights
        self.__name__ = reward.__name__

    async def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        """One reward a completion, None where it could not be scored."""
        call = self.reward.read(prompts, completions, completion_ids, kwargs)
        return [score.total for score in await self.reward.aevaluate(call)]

    def as_columns(self) -> list[AsyncColumn]:
        """One awaited reward function a component, evaluated together."""
        from .columns import Evaluations

        return Evaluations(self.reward).async_columns()
