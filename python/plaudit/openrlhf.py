"""How does OpenRLHF get its rewards from a recipe?

OpenRLHF loads a Python file by its path, and `python -m plaudit.openrlhf` prints the path of this one. It serves both ways:

- `--reward.remote_url PATH` calls `reward_func`, one sample at a time, in threads.
- `--train.agent_func_path PATH` takes `AgentExecutor`, which generates as OpenRLHF does by itself and hands each group to the
  engine whole. It knows the size of every group and the tokens of every response, so prefer it where a recipe compares.

Everything else is said by environment variables, because OpenRLHF passes no arguments on:

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
import functools
import itertools
import logging
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plaudit
from plaudit.openrlhf_settings import Settings, unknown

if TYPE_CHECKING:
    from plaudit.ray.sync_client import SyncClient

_log = logging.getLogger("plaudit.openrlhf")

_THREADS = 4096
"""How many samples of one process may wait for their siblings in `reward_func`."""

_GATHERING = 65_536
"""How many groups may be waited for. Those whose samples never came are forgotten first."""


class _Cohort:
    """The samples of one prompt that are made together: one group."""

    def __init__(self) -> None:
        self.key = uuid.uuid4().hex
        self.members = 0
        self.begun = asyncio.Event()
        self._totals: list[float | None] = []
        self._settled = threading.Condition()

    def settle(self, total: float | None) -> None:
        """Notes what became of one member; None where nothing did."""
        with self._settled:
            self._totals.append(total)
            self._settled.notify_all()

    def mean(self, size: int, timeout: float) -> float | None:
        """The mean of the members that have a total, once all are settled or the time is up."""
        with self._settled:
            self._settled.wait_for(lambda: len(self._totals) >= size, timeout)
            values = [total for total in self._totals if total is not None]
        return sum(values) / len(values) if values else None


class Rewards:
    """What scores all samples of this process: its own engine, or the one that a Ray cluster shares."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.shared: SyncClient | None = None
        if settings.join == "ray":
            from plaudit.ray.actor import ActorConfig
            from plaudit.ray.sync_client import SyncClient

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
        self._uncounted = uncounted(self.engine)
        self._lock = threading.Lock()
        self._gathering: dict[tuple[str | None, str], _Cohort] = {}
        self._beginning: dict[tuple[str | None, str], _Cohort] = {}

    def tell_uncounted(self) -> None:
        """Says once which components `reward_func` leaves out, because it does not see the tokens of a response."""
        skipped, self._uncounted = self._uncounted, []
        if skipped:
            _log.warning(
                "plaudit: %s count tokens, which OpenRLHF does not tell a reward function, and are skipped for every sample: "
                "give this file as --train.agent_func_path, or the component a tokenizer_type",
                ", ".join(skipped),
            )

    def size(self) -> int:
        """How many samples of a prompt `reward_func` brings together; raises where it must be said and is not."""
        if self.settings.size is None and self.engine.compares_groups:
            raise plaudit.ArgumentError(
                "the recipe compares the responses of a prompt: set PLAUDIT_GROUP_SIZE to --rollout.n_samples_per_prompt, or "
                "give this file as --train.agent_func_path"
            )
        return self.settings.size or 1

    def score(self, query: str, prompt: str, label: Any) -> dict[str, Any]:
        """What OpenRLHF reads for one sample; waits for its siblings where the recipe compares."""
        size = self.size()
        # All samples of a prompt are made by one Ray task, which tells two groups with equal prompts apart.
        key = (_ray_task(), prompt)
        cohort = self._arrive(key, size)
        result: Any = None
        try:
            rollout = {
                "prompt": prompt,
                "response": self.clean(response_of(query, prompt)),
                **_said_of(label),
            }
            if self.shared is not None:
                result = self.shared.submit(cohort.key, size, **rollout).result(self.settings.timeout)
            else:
                result = self.join.score(cohort.key, size, **rollout)
        finally:
            cohort.settle(result.total if result is not None else None)
            self._answered(key, cohort)
        assert result is not None
        return self._answer(result, cohort, size)

    async def ascore(
        self, cohort: _Cohort, response: str, prompt: str, label: Any, tokens: int
    ) -> dict[str, Any]:
        """The same for a sample whose generation began with `begin`."""
        await cohort.begun.wait()
        size = cohort.members
        rollout = {"prompt": prompt, "response": response, "tokens": tokens, **_said_of(label)}
        result: Any = None
        try:
            if self.shared is not None:
                asked = asyncio.wrap_future(self.shared.submit(cohort.key, size, **rollout))
                result = await asyncio.wait_for(asked, self.settings.timeout)
            else:
                result = await self.join.ascore(cohort.key, size, **rollout)
        finally:
            cohort.settle(result.total if result is not None else None)
        assert result is not None
        if result.total is not None:
            return self._answer(result, cohort, size)
        return await asyncio.to_thread(self._answer, result, cohort, size)

    def begin(self, prompt: str) -> _Cohort:
        """The group of a sample whose generation begins now.

        OpenRLHF begins all samples of a prompt in one turn of the event loop, so the group is known when the turn is over,
        whatever its size: training and evaluation may differ.
        """
        key = (_ray_task(), prompt)
        cohort = self._beginning.get(key)
        if cohort is None:
            cohort = self._beginning[key] = _Cohort()
            asyncio.get_running_loop().call_soon(self._all_begun, key)
        cohort.members += 1
        return cohort

    def leave(self, cohort: _Cohort) -> None:
        """Lets the siblings of a sample go on whose generation failed."""
        cohort.settle(None)
        if self.shared is not None:
            self.shared.withdraw(cohort.key, cohort.members)
        else:
            self.join.leave(cohort.key)

    def clean(self, text: str, ends: Sequence[str] = ()) -> str:
        """The response without the tokens that end it."""
        found = True
        while found:
            text = text.rstrip()
            found = next((end for end in (*self.settings.ends, *ends) if end and text.endswith(end)), "")
            text = text.removesuffix(found)
        return text

    def _all_begun(self, key: tuple[str | None, str]) -> None:
        self._beginning.pop(key).begun.set()

    def _arrive(self, key: tuple[str | None, str], size: int) -> _Cohort:
        """The group that is being gathered for a prompt, in which a sample takes the next place."""
        with self._lock:
            cohort = self._gathering.setdefault(key, _Cohort())
            if len(self._gathering) > _GATHERING:
                del self._gathering[next(iter(self._gathering))]
            cohort.members += 1
            if cohort.members == size:
                del self._gathering[key]
            return cohort

    def _answered(self, key: tuple[str | None, str], cohort: _Cohort) -> None:
        """A group that has been answered gathers nobody any more, even if it never became complete."""
        with self._lock:
            if self._gathering.get(key) is cohort and self.engine.compares_groups:
                del self._gathering[key]

    def _answer(self, result: plaudit.Result, cohort: _Cohort, size: int) -> dict[str, Any]:
        """A result as OpenRLHF reads it: the same keys for every sample, and finite numbers alone."""
        reward = self._mean_of_siblings(result, cohort, size) if result.total is None else result.total
        score = reward
        if self.settings.score is not None and result.total is not None:
            chosen = result.components[self.settings.score]
            score = reward if chosen is None else chosen
        logs = {
            "plaudit/invalid": float(result.total is None),
            "plaudit/partial": float(result.partial),
            "plaudit/group_size": float(result.group_size),
        }
        for component in self.engine.components:
            value = result.components.get(component)
            logs[f"plaudit/{component}"] = 0.0 if value is None else value
            logs[f"plaudit/{component}_missing"] = float(value is None)
        return {"rewards": reward, "scores": score, "extra_logs": logs}

    def _mean_of_siblings(self, result: plaudit.Result, cohort: _Cohort, size: int) -> float:
        """The number for a sample without one. OpenRLHF must be given a number, and this one gives no advantage."""
        mean = None
        if self.settings.invalid == "mean":
            # Where nothing is compared, nobody has waited for the siblings yet.
            waits = result.siblings_mean is None and not self.engine.compares_groups
            mean = (
                cohort.mean(size, min(self.settings.timeout, self.join.timeout))
                if waits
                else result.siblings_mean
            )
        if mean is None:
            reason = result.reason or {"code": result.outcome, "message": "the recipe does not apply to it"}
            siblings = (
                "nor could any of its siblings"
                if self.settings.invalid == "mean"
                else "and PLAUDIT_INVALID is `raise`"
            )
            message = f"a sample could not be scored, {siblings}: {reason['code']}: {reason['message']}"
            # OpenRLHF logs an exception of a reward function at level INFO alone, and stops later for another reason.
            _log.error(message)
            raise RuntimeError(message)
        return mean


def response_of(query: str, prompt: str) -> str:
    """What the model wrote: the query without the prompt.

    A tokenizer may put a token before the prompt, and OpenRLHF cuts the beginning off a prompt that is too long.
    """
    if query.startswith(prompt):
        return query[len(prompt) :]
    at = query.find(prompt)
    if prompt and 0 <= at <= 64:
        return query[at + len(prompt) :]
    kept = _overlap(prompt, query)
    if kept >= 16:
        return query[kept:]
    raise plaudit.ArgumentError(
        "the query does not begin with its prompt, so the response cannot be told from it; give this file as "
        "--train.agent_func_path instead, which sees the tokens"
    )


def _overlap(prompt: str, query: str) -> int:
    """The length of the longest end of the prompt that the query begins with, in linear time (Knuth, Morris and Pratt)."""
    pattern = query[: len(prompt)]
    fallback = [0] * len(pattern)
    length = 0
    for at in range(1, len(pattern)):
        while length and pattern[at] != pattern[length]:
            length = fallback[length - 1]
        length += pattern[at] == pattern[length]
        fallback[at] = length
    length = 0
    for letter in prompt:
        while length and (length == len(pattern) or letter != pattern[length]):
            length = fallback[length - 1]
        length += bool(pattern) and letter == pattern[length]
    return length


def _said_of(label: Any) -> dict[str, Any]:
    """The reference and further fields that a label holds: a text is the reference, an object's fields are `extra`."""
    if isinstance(label, Mapping):
        fields = {str(name): value for name, value in label.items()}
        reference = fields.pop("reference", None)
        return {"reference": None if reference is None else str(reference), "extra": fields}
    return {"reference": None if label is None or label == "" else str(label)}


_COUNTING = ("total_length", "dapo.overlong", "open_r1.cosine_length")
"""Rewards that take the number of tokens from the trainer, and skip a rollout without one."""


def uncounted(engine: plaudit.Engine) -> list[str]:
    """The components that give nothing where the trainer does not count tokens."""
    found = []
    for name, written in (engine.recipe.get("components") or {}).items():
        counts = engine.rewards.get(name) in _COUNTING and written.get("unit", "token") == "token"
        if counts and written.get("tokenizer_type") is None:
            found.append(f"`{name}`")
    return found


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


_made: list[Rewards] = []
_making = threading.Lock()


def rewards(*, by_function: bool = False) -> Rewards:
    """What scores the samples of this process, made when it is first asked for; `by_function` where `reward_func` hands in.

    What is wrong with the settings is logged and raised: OpenRLHF logs what a reward function raises at level INFO alone.
    """
    with _making:
        try:
            if not _made:
                for told in unknown():
                    _log.warning("plaudit: %s", told)
                _made.append(Rewards(Settings.read()))
            if by_function:
                _made[0].size()
                _made[0].tell_uncounted()
        except Exception as error:
            _log.error("plaudit: %s", error)
            raise
        return _made[0]


def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any]) -> dict[str, Any]:
    """What OpenRLHF calls for `--reward.remote_url`: one sample a call, in a thread that may wait for its siblings."""
    desk = rewards(by_function=True)
    answers = [
        desk.score(query, prompt, label)
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
            desk = rewards()
            cohort = desk.begin(prompt)
            try:
                output = await super().execute(
                    prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine, images
                )
            except BaseException:
                desk.leave(cohort)
                raise
            ((start, end),) = output["action_ranges"]
            written = output["observation_tokens"][start:end]
            ends = [hf_tokenizer.eos_token or "", hf_tokenizer.pad_token or ""]
            response = desk.clean(hf_tokenizer.decode(written, skip_special_tokens=False), ends)
            answer = await desk.ascore(cohort, response, prompt, label, len(written))
            output.update(reward=answer["rewards"], scores=answer["scores"], extra_logs=answer["extra_logs"])
            return output

    return AgentExecutor


def _widen_threads() -> None:
    """Lets many samples wait at once. Each holds a thread of the loop that OpenRLHF makes this module in, whose pool has too
    few of them by default: once they were all taken by samples that wait, the siblings they wait for could not come in."""
    asyncio.get_running_loop().set_default_executor(
        ThreadPoolExecutor(_THREADS, thread_name_prefix="plaudit")
    )


if __name__ == "reward_func":
    # The name under which OpenRLHF loads the file of `--reward.remote_url`, in the constructor of its rollout actor.
    try:
        _widen_threads()
    except RuntimeError:
        _log.warning(
            "no event loop runs where this file is loaded: as many samples can wait as the caller has threads"
        )
    # What is wrong with the settings ends the run here, and not with the first sample.
    rewards(by_function=True)
elif __name__ == "__main__":
    print(Path(__file__).resolve())
