"""The extension. What it holds is for this package alone; use `plaudit` instead."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "VERSION",
    "Call",
    "Engine",
    "CompletionQueue",
    "Join",
    "PlauditError",
    "RecipeError",
    "RunError",
    "Report",
    "Reward",
    "aggregate",
    "check_state",
    "fill_with_group_means",
    "main",
    "recipes",
    "register",
    "rewards",
]
VERSION: str

# Name, page, schema of the parameters, whether it compares a group, and what is called.
_Function = tuple[
    str, str, dict[str, Any], bool, Callable[[list[list[list[Any]]], dict[str, Any], float], list[Any]]
]

# Total, outcome, reason, components, and the evidence by component and fact.
_Fields = tuple[float | None, str, dict[str, Any] | None, dict[str, float | None], dict[tuple[str, str], Any]]

class PlauditError(Exception):
    """What plaudit raises; the base of the others."""

class RecipeError(PlauditError):
    """A recipe that cannot be loaded. `mistakes` lists everything that is wrong with it."""

    mistakes: list[dict[str, Any]]

class RunError(PlauditError):
    """A run that could not be done. `code` is stable."""

    code: str

@final
class Call:
    def cancel(self) -> None: ...

@final
class Engine:
    def __new__(
        cls,
        name: str,
        text: str | None,
        overrides: Sequence[tuple[str, str]],
        state: str | None,
        share: int,
        functions: Sequence[_Function],
    ) -> Engine: ...
    @property
    def recipe(self) -> dict[str, Any]: ...
    @property
    def custom_rewards(self) -> list[str]: ...
    def close(self) -> None: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def parts(self) -> list[tuple[str, str, float]]: ...
    @property
    def compares_groups(self) -> bool: ...
    @property
    def group_limit(self) -> tuple[str, str, int] | None: ...
    @property
    def indivisible(self) -> str | None: ...
    @property
    def validates(self) -> bool: ...
    @property
    def invalid_value(self) -> float | None: ...
    @property
    def timeout(self) -> float: ...
    @property
    def judges(self) -> dict[str, dict[str, Any]]: ...
    def tallies(self) -> list[dict[str, Any]]: ...
    def stop(self) -> None: ...
    def score(
        self,
        prompts: Any,
        responses: Any,
        references: Any,
        groups: Any,
        tokens: Any,
        extras: Any,
        ids: Any,
        validate: bool | None,
    ) -> Report: ...
    def start(
        self,
        done: Callable[[Report | None, BaseException | None], None],
        prompts: Any,
        responses: Any,
        references: Any,
        groups: Any,
        tokens: Any,
        extras: Any,
        ids: Any,
        validate: bool | None,
    ) -> Call: ...

@final
class Report:
    def __len__(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    def totals(self) -> npt.NDArray[np.float64]: ...
    def totals_or_invalid_value(self) -> npt.NDArray[np.float32]: ...
    def totals_or_group_mean(self) -> npt.NDArray[np.float64]: ...
    def outcomes(self) -> list[str]: ...
    def columns(self) -> list[str]: ...
    def component(self, name: str) -> npt.NDArray[np.float32]: ...
    def component_outcomes(self, name: str) -> list[str]: ...
    def info(self) -> dict[tuple[str, str], list[Any]]: ...
    def reasons(self) -> list[dict[str, Any] | None]: ...
    def groups(self) -> list[list[int]]: ...
    def names(self) -> list[tuple[str, str | None]]: ...
    def statistics(self) -> str: ...
    def row(self, at: int) -> str: ...
    def result(
        self, at: int, members: Sequence[int]
    ) -> tuple[_Fields, int, float | None, list[float | None]]: ...

@final
class Join:
    def __new__(
        cls, engine: Engine, timeout: float | None, quiet: float | None, remember: int | None
    ) -> Join: ...
    @property
    def timeout(self) -> float: ...
    @property
    def quiet(self) -> float | None: ...
    def status(self) -> dict[str, Any]: ...
    def statistics(self) -> str: ...
    def take_step(self, step: int) -> str: ...
    def last_step(self) -> str | None: ...
    def submit(
        self,
        done: Callable[[Any, BaseException | None], None],
        group: str,
        size: int,
        member: str | None,
        timeout: float | None,
        validate: bool | None,
        prompt: Any,
        response: str,
        reference: str | None,
        tokens: int | None,
        extra: Mapping[str, Any] | None,
    ) -> None: ...
    def completion_queue(self, wake: Callable[[], object]) -> CompletionQueue: ...
    def leave(self, group: str, member: str | None) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...

@final
class CompletionQueue:
    def submit(
        self,
        number: int,
        group: str,
        size: int,
        member: str | None,
        prompt: Any,
        response: str,
        reference: str | None,
        tokens: int | None,
        extra: Mapping[str, Any] | None,
    ) -> None: ...
    def take(self) -> list[tuple[int, Any]]: ...

@final
class Reward:
    def __new__(cls, name: str, params: dict[str, Any], functions: Sequence[_Function]) -> Reward: ...
    def score(
        self,
        response: str,
        prompt: Any,
        reference: str | float | None,
        tokens: int | None,
        extra: Mapping[str, Any] | None,
    ) -> tuple[str, float | None, dict[str, Any] | None, dict[str, Any]]: ...

def aggregate(
    name: str, n: int, comparisons: Sequence[tuple[int, int, int | None]], params: dict[str, Any]
) -> tuple[list[float], list[float] | None, dict[str, Any]]: ...
def check_state(place: str) -> None: ...
def fill_with_group_means(
    values: Sequence[float | None], groups: Sequence[Sequence[int]]
) -> list[float | None]: ...
def main(arguments: Sequence[str]) -> int: ...
def recipes() -> list[str]: ...
def register(
    name: str,
    page: str,
    schema: dict[str, Any],
    compares: bool,
    ask: Callable[[list[list[list[Any]]], dict[str, Any], float], list[Any]],
) -> None: ...
def rewards() -> list[tuple[str, str]]: ...
