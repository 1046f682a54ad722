"""Rewards for OpenRLHF: the file that it loads, as a reward function and as an agent.

OpenRLHF loads a Python file by its path, and `python -m plaudit.openrlhf` prints the path of this one. It serves both ways:

- `--reward.remote_url PATH` calls `reward_func`, one sample at a time, in threads.
- `--train.agent_func_path PATH` takes `AgentExecutor`, which generates as OpenRLHF does by itself and knows the size of every
  group and the tokens of every response. Prefer it where a recipe compares responses.

OpenRLHF passes no arguments on, so environment variables are the settings:

| Variable | Meaning |
|---|---|
| `PLAUDIT_RECIPE` | the recipe: a name or a file |
| `PLAUDIT_SET` | overrides, as on the command line: `judges.main.base_url=http://host:8000/v1 groups.timeout=60s` |
| `PLAUDIT_STATE` | where judgments are kept: a folder (each process takes one below it), or `redis://...` |
| `PLAUDIT_GROUP_SIZE` | `--rollout.n_samples_per_prompt`; only `reward_func` needs it, and only where the recipe compares |
| `PLAUDIT_SHARE` | `--vllm.num_engines`: so many processes keep to the recipe's limits of calls and money together |
| `PLAUDIT_JOIN` | `ray`: all rollout actors share one engine, with one limit for each judge and one state; else each has its own |
| `PLAUDIT_TIMEOUT` | how many seconds a sample waits at most, 1800 by default; the recipe's `groups.timeout` ends a group before |
| `PLAUDIT_INVALID` | `mean` (the default): a sample that could not be scored gets the mean of its siblings; `raise`: it stops the run |
| `PLAUDIT_SCORE` | the component that OpenRLHF's dynamic filter looks at; the total by default |
| `PLAUDIT_STOP` | further texts to cut off the end of a response, beside the usual end-of-turn tokens |
"""

from __future__ import annotations

import asyncio
import difflib
import functools
import itertools
import json
import logging
import os
import shlex
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import plaudit
from plaudit import _plaudit
from plaudit.tables import others

if TYPE_CHECKING:
    from plaudit.ray.client import SyncClient

_log = logging.getLogger("plaudit.openrlhf")

SETTINGS = (
    "RECIPE",
    "SET",
    "STATE",
    "GROUP_SIZE",
    "SHARE",
    "JOIN",
    "TIMEOUT",
    "INVALID",
    "SCORE",
    "STOP",
)
"""The names of the settings, each after `PLAUDIT_`."""

_OTHER_VARIABLES = ("PLAUDIT_BIN", "PLAUDIT_TOKEN")
"""Variables of other parts of plaudit."""

_MAX_THREADS = 4096
"""How many samples of one process may wait for their siblings in `reward_func`."""

_MAX_OPEN_GROUPS = 65_536
"""How many groups may be incomplete. Those whose samples never came are forgotten first."""


class Settings(NamedTuple):
    """The settings, read from the environment."""

    recipe: str
    overrides: dict[str, object]
    state: str | None
    size: int | None
    share: int
    join: str | None
    timeout: float
    invalid: str
    score: str | None
    stop: tuple[str, ...]

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Reads the variables; raises `ArgumentError` with the name of one that is wrong."""
        given = {name: environment.get(f"PLAUDIT_{name}") or None for name in SETTINGS}
        recipe, join, timeout, invalid = (given[name] for name in ("RECIPE", "JOIN", "TIMEOUT", "INVALID"))
        if recipe is None:
            raise plaudit.ArgumentError(
                "PLAUDIT_RECIPE must name a recipe, such as `math` or the path of a file"
            )
        for name in ("GROUP_SIZE", "SHARE"):
            number = given[name]
            if number is not None and not (number.isdecimal() and int(number) > 0):
                raise plaudit.ArgumentError(f"PLAUDIT_{name} must be a whole number above 0, not `{number}`")
        if join not in (None, "ray"):
            raise plaudit.ArgumentError(f"PLAUDIT_JOIN is `ray` or not set, not `{join}`")
        try:
            seconds = float(timeout or 1800.0)
        except ValueError:
            raise plaudit.ArgumentError(f"PLAUDIT_TIMEOUT is a number of seconds, not `{timeout}`") from None
        if invalid not in (None, "mean", "raise"):
            raise plaudit.ArgumentError(f"PLAUDIT_INVALID is `mean` or `raise`, not `{invalid}`")
        return cls(
            recipe=recipe,
            overrides=dict(_override(word) for word in shlex.split(given["SET"] or "")),
            state=given["STATE"],
            size=int(given["GROUP_SIZE"]) if given["GROUP_SIZE"] else None,
            share=int(given["SHARE"] or 1),
            join=join,
            timeout=seconds,
            invalid=invalid or "mean",
            score=given["SCORE"],
            stop=tuple(shlex.split(given["STOP"] or "")),
        )


def _override(word: str) -> tuple[str, object]:
    key, equals, value = word.partition("=")
    if not equals:
        raise plaudit.ArgumentError(f"PLAUDIT_SET takes KEY=VALUE, not `{word}`")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Warnings about variables that look like settings and are none."""
    known = [f"PLAUDIT_{name}" for name in SETTINGS]
    found = []
    for name in sorted(environment):
        if name.startswith("PLAUDIT_") and name not in (*known, *_OTHER_VARIABLES):
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            found.append(f"{name} is no setting of plaudit.openrlhf{hint}")
    return found


class _Group:
    """The samples of one prompt that are generated together."""

    def __init__(self) -> None:
        self.key = uuid.uuid4().hex
        self.members = 0
        self.started = asyncio.Event()


_Prompt = tuple[str | None, str]
"""The Ray task that generates a prompt's samples, and the prompt. The task tells two groups with equal prompts apart."""


class Rewards:
    """Scores all samples of this process, with its own engine or the one that a Ray cluster shares.

    OpenRLHF does not name groups. `reward_func` assigns a sample to the incomplete group of its prompt, which the service's
    implicit groups do as well for clients that may ask again; samples of this process come once, so a dict is enough here.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.shared: SyncClient | None = None
        if settings.join == "ray":
            from plaudit.ray.actor import ActorConfig
            from plaudit.ray.client import SyncClient

            config = ActorConfig(settings.recipe, settings.overrides or None, settings.state)
            self.engine = config.engine(state=False)
            self.shared = SyncClient(config, deadline=settings.timeout)
        else:
            self.engine = _open_engine(settings)
        if settings.size is not None:
            self.engine.check_group_size(settings.size)
        if settings.score is not None and settings.score not in self.engine.components:
            raise plaudit.ArgumentError(
                f"PLAUDIT_SCORE names `{settings.score}`, but the recipe has {list(self.engine.components)}"
            )
        self.join = self.engine.join()
        self._skipped = [f"`{name}`" for name in self.engine._properties["needs_tokens"]]
        self._lock = threading.Lock()
        self._incomplete: dict[_Prompt, _Group] = {}
        self._starting: dict[_Prompt, _Group] = {}

    def warn_of_skipped_components(self) -> None:
        """Logs once which components `reward_func` leaves out, because it does not see the tokens of a response."""
        skipped, self._skipped = self._skipped, []
        if skipped:
            _log.warning(
                "plaudit: %s count tokens, which OpenRLHF does not tell a reward function, and are skipped for every sample: "
                "give this file as --train.agent_func_path, or the component a tokenizer_type",
                ", ".join(skipped),
            )

    def size(self) -> int:
        """The group size of `reward_func`; raises where the recipe needs one and none is set."""
        if self.settings.size is None and self.engine.compares_groups:
            raise plaudit.ArgumentError(
                "the recipe compares the responses of a prompt: set PLAUDIT_GROUP_SIZE to --rollout.n_samples_per_prompt, or "
                "give this file as --train.agent_func_path"
            )
        return self.settings.size or 1

    def score(self, query: str, prompt: str, label: Any) -> dict[str, Any]:
        """What OpenRLHF reads for one sample. Waits for the siblings where the recipe compares, or the sample is invalid."""
        size = self.size()
        key = (_ray_task(), prompt)
        group = self._assign(key, size)
        try:
            response = self.clean(response_of(query, prompt))
            rollout = {"prompt": prompt, "response": response, **_label_fields(label)}
            if self.shared is not None:
                result = self.shared.submit(group.key, size, **rollout).result(self.settings.timeout)
            else:
                result = self.join.score(group.key, size, timeout=self.settings.timeout, **rollout)
        except plaudit.ArgumentError:
            self.leave(group, size)
            raise
        finally:
            self._close_group(key, group)
        return self._answer(result)

    async def ascore(
        self,
        group: _Group,
        response: str,
        prompt: str,
        label: Any,
        tokens: int,
        truncated: bool | None = None,
    ) -> dict[str, Any]:
        """The same for a sample whose generation began with `start`."""
        await group.started.wait()
        size, seconds = group.members, self.settings.timeout
        known = {"prompt": prompt, "response": response, "tokens": tokens, "truncated": truncated}
        rollout = {**known, **_label_fields(label)}
        if self.shared is not None:
            submitted = asyncio.wrap_future(self.shared.submit(group.key, size, **rollout))
            return self._answer(await asyncio.wait_for(submitted, seconds))
        return self._answer(await self.join.ascore(group.key, size, timeout=seconds, **rollout))

    def start(self, prompt: str) -> _Group:
        """The group of a sample whose generation starts now.

        OpenRLHF starts all samples of a prompt in one turn of the event loop, so the group is known when the turn is over,
        whatever its size: training and evaluation may differ.
        """
        key = (_ray_task(), prompt)
        group = self._starting.get(key)
        if group is None:
            group = self._starting[key] = _Group()
            asyncio.get_running_loop().call_soon(self._all_started, key)
        group.members += 1
        return group

    def _all_started(self, key: _Prompt) -> None:
        self._starting.pop(key).started.set()

    def leave(self, group: _Group, size: int) -> None:
        """Lets the siblings of a sample go on that failed before it was handed in."""
        if self.shared is not None:
            self.shared.withdraw(group.key, size)
        else:
            self.join.leave(group.key)

    def clean(self, text: str, stop: Sequence[str] = ()) -> str:
        """The response without the tokens that end it."""
        return _plaudit.strip_end_of_turn(text, [*self.settings.stop, *stop])

    def _assign(self, key: _Prompt, size: int) -> _Group:
        """The incomplete group of a prompt, in which a sample takes the next place."""
        with self._lock:
            group = self._incomplete.setdefault(key, _Group())
            if len(self._incomplete) > _MAX_OPEN_GROUPS:
                del self._incomplete[next(iter(self._incomplete))]
            group.members += 1
            if group.members == size:
                del self._incomplete[key]
            return group

    def _close_group(self, key: _Prompt, group: _Group) -> None:
        """Takes no further samples into a group that was compared, even if it never became complete."""
        with self._lock:
            if self._incomplete.get(key) is group and self.engine.compares_groups:
                del self._incomplete[key]

    def _answer(self, result: plaudit.Result) -> dict[str, Any]:
        """A result as OpenRLHF reads it: the same keys for every sample, and finite numbers alone."""
        reward = score = self._reward(result)
        if self.settings.score is not None and result.total is not None:
            chosen = result.components[self.settings.score]
            score = reward if chosen is None else chosen
        logs = {
            "plaudit/invalid": float(result.total is None),
            "plaudit/partial": float(result.partial),
            "plaudit/group_size": float(result.group_size),
            "plaudit/correct": float(result.correct is True),
            "plaudit/correct_missing": float(result.correct is None),
        }
        for component in self.engine.components:
            value = result.components.get(component)
            logs[f"plaudit/{component}"] = 0.0 if value is None else value
            logs[f"plaudit/{component}_missing"] = float(value is None)
        return {"rewards": reward, "scores": score, "extra_logs": logs}

    def _reward(self, result: plaudit.Result) -> float:
        """The total, or the mean of the siblings: OpenRLHF must have a number, and this one gives no advantage."""
        raises = self.settings.invalid == "raise"
        reward = result.total if raises else result.total_or_siblings_mean
        if reward is not None:
            return reward
        reason = result.reason or {"code": result.outcome, "message": "the recipe does not apply to it"}
        siblings = "and PLAUDIT_INVALID is `raise`" if raises else "nor could any of its siblings"
        message = f"a sample could not be scored, {siblings}: {reason['code']}: {reason['message']}"
        if reason["code"] in ("input.missing_reference", "input.empty_reference"):
            message += " The label of a sample is its reference: --data.label_key names its column."
        # OpenRLHF logs an exception of a reward function at level INFO alone, and stops later for another reason.
        _log.error(message)
        raise RuntimeError(message)


def response_of(query: str, prompt: str) -> str:
    """The response: the query without the prompt, also where OpenRLHF cut off the beginning of a long prompt."""
    response = _plaudit.response_of(query, prompt)
    if response is None:
        raise plaudit.ArgumentError(
            "the query does not begin with its prompt, so the response cannot be told from it; give this file as "
            "--train.agent_func_path instead, which sees the tokens"
        )
    return response


def _label_fields(label: Any) -> dict[str, Any]:
    """The reference and `extra` of a label: text is the reference, the fields of an object are `extra`."""
    if isinstance(label, Mapping):
        fields = {str(name): value for name, value in label.items()}
        reference = fields.pop("reference", None)
        named = {"reference": None if reference is None else str(reference), "extra": fields}
        return {**named, **others(fields)}
    return {"reference": None if label is None or label == "" else str(label)}


def _ray_task() -> str | None:
    """The id of the Ray task that this runs in, in its threads as well; None outside of Ray."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    return ray.get_runtime_context().get_task_id()


def _open_engine(settings: Settings) -> plaudit.Engine:
    """The engine of this process. A state folder belongs to one process, so each takes the first free one below it."""
    shared = settings.state is None or "://" in settings.state
    for number in itertools.count():
        state = settings.state if shared else str(Path(settings.state or "") / f"process-{number}")
        try:
            return plaudit.Engine(
                settings.recipe, overrides=settings.overrides, state=state, share=settings.share
            )
        except plaudit.RunError as error:
            if shared or error.code != "journal.in_use" or number == 1023:
                raise
    raise AssertionError("the numbers never end")


_rewards: list[Rewards] = []
_rewards_lock = threading.Lock()


def rewards(*, by_function: bool = False) -> Rewards:
    """The rewards of this process, made at the first call; `by_function` where `reward_func` hands samples in.

    A mistake in the settings is logged and raised: OpenRLHF logs what a reward function raises at level INFO alone.
    """
    with _rewards_lock:
        try:
            if not _rewards:
                for warning in unknown_variables():
                    _log.warning("plaudit: %s", warning)
                _rewards.append(Rewards(Settings.read()))
            if by_function:
                _rewards[0].size()
                _rewards[0].warn_of_skipped_components()
        except Exception as error:
            _log.error("plaudit: %s", error)
            raise
        return _rewards[0]


def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any]) -> dict[str, Any]:
    """What OpenRLHF calls for `--reward.remote_url`: one sample a call, in a thread that may wait for its siblings."""
    scorer = rewards(by_function=True)
    answers = [
        scorer.score(query, prompt, label)
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]
    if len(answers) == 1:
        return answers[0]
    columns = {name: [answer[name] for answer in answers] for name in ("rewards", "scores")}
    logs = {name: [answer["extra_logs"][name] for answer in answers] for name in answers[0]["extra_logs"]}
    return {**columns, "extra_logs": logs}


def __getattr__(name: str) -> Any:
    if name == "AgentExecutor":
        return _agent_executor()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def _agent_executor() -> type:
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    class AgentExecutor(SingleTurnAgentExecutor):
        """Generates one response a sample, as OpenRLHF's own executor does, and scores it with its group."""

        async def execute(
            self,
            prompt: str,
            label: Any,
            sampling_params: Any,
            max_length: int,
            hf_tokenizer: Any,
            llm_engine: Any,
            images: Any = None,
        ) -> dict[str, Any]:
            scorer = rewards()
            group = scorer.start(prompt)
            try:
                output = await super().execute(
                    prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine, images
                )
            except BaseException:
                scorer.leave(group, group.members)
                raise
            ((start, end),) = output["action_ranges"]
            tokens = output["observation_tokens"][start:end]
            stop = [hf_tokenizer.eos_token or "", hf_tokenizer.pad_token or ""]
            response = scorer.clean(hf_tokenizer.decode(tokens, skip_special_tokens=False), stop)
            # Whether the limit on its length ended it; versions before 0.9 do not tell.
            truncated = output.get("truncated")
            answer = await scorer.ascore(group, response, prompt, label, len(tokens), truncated)
            output.update(reward=answer["rewards"], scores=answer["scores"], extra_logs=answer["extra_logs"])
            return output

    return AgentExecutor


def _widen_threads() -> None:
    """Gives the event loop a large thread pool, since every waiting sample holds a thread.

    With the default pool, waiting samples would take all threads, and the siblings they wait for could not come in.
    """
    asyncio.get_running_loop().set_default_executor(
        ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="plaudit")
    )


if __name__ == "reward_func":
    # The name under which OpenRLHF loads the file of `--reward.remote_url`, in the constructor of its rollout actor.
    try:
        _widen_threads()
    except RuntimeError:
        _log.warning(
            "no event loop runs where this file is loaded: as many samples can wait as the caller has threads"
        )
    # A mistake in the settings ends the run here, and not with the first sample.
    rewards(by_function=True)
elif __name__ == "__main__":
    print(Path(__file__).resolve())
