"""The extension. It is private to this package; use `plaudit` instead."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "ABORT_AFTER",
    "REFERENCE_FIELDS",
    "RUBRIC_FIELDS",
    "VERSION",
    "AbortCounter",
    "ArgumentError",
    "Call",
    "CompletionQueue",
    "Engine",
    "Join",
    "Judges",
    "PlauditError",
    "RecipeError",
    "Report",
    "Reward",
    "RunError",
    "Sandbox",
    "abort_advice",
    "aggregate",
    "check_state",
    "fill_with_group_means",
    "instructions_check_many",
    "instructions_constraints",
    "instructions_explain",
    "instructions_register",
    "main",
    "math_explain",
    "math_extract",
    "math_verify_many",
    "misfit",
    "read_columns",
    "read_rollout",
    "recipes",
    "register",
    "replay",
    "response_of",
    "reward_traits",
    "rewards",
    "sandbox_program",
    "sandbox_report",
    "strip_end_of_turn",
]
VERSION: str
ABORT_AFTER: int
REFERENCE_FIELDS: tuple[str, ...]
RUBRIC_FIELDS: tuple[str, ...]

# Takes columns by group, parameters, a timeout and the judges.
_Call = Callable[[list[list[list[Any]]], dict[str, Any], float, "Judges | None"], list[Any]]
# Name, page, schema of the parameters, whether it compares a group, and the callable.
_Function = tuple[str, str, dict[str, Any], bool, _Call]
# The values of one rollout, or the columns of a batch, by the names of `plaudit.rollout.FIELDS`.
_Fields = dict[str, Any]
# Total, outcome, reason, components, the evidence by component and fact, whether it is right, and the rewards of its turns.
_Result = tuple[
    float | None,
    str,
    dict[str, Any] | None,
    dict[str, float | None],
    dict[tuple[str, str], Any],
    bool | None,
    list[float | None] | None,
]
# Value, outcome, reason, evidence, and whether the answer is right.
_Scored = tuple[float | None, str, dict[str, Any] | None, dict[str, Any], bool | None]

@final
class AbortCounter:
    def __new__(cls, after: str) -> AbortCounter: ...
    def observe(
        self, any_scored: bool, failures: Sequence[tuple[str, str, int]]
    ) -> tuple[str, str] | None: ...

class PlauditError(Exception):
    """The base of all exceptions of plaudit."""

class ArgumentError(PlauditError, TypeError, ValueError):
    """An argument that cannot be used. The message names it and its place."""

class RecipeError(PlauditError):
    """A recipe that cannot be loaded. `errors` lists everything that is wrong with it."""

    errors: list[dict[str, Any]]

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
        dry: bool,
        unsafe_no_sandbox: bool,
    ) -> Engine: ...
    @property
    def warnings(self) -> list[str]: ...
    def properties(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
    def judge_usage(self) -> list[dict[str, Any]]: ...
    def stop(self) -> None: ...
    def cost_estimates(self) -> list[dict[str, Any]]: ...
    def score(self, columns: _Fields, validate: bool | None) -> Report: ...
    def start(
        self,
        done: Callable[[Report | None, BaseException | None], None],
        columns: _Fields,
        validate: bool | None,
    ) -> Call: ...
    def explain(self, columns: _Fields, validate: bool | None, full: bool) -> list[dict[str, Any]]: ...

@final
class Report:
    def __len__(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    def totals(self) -> npt.NDArray[np.float64]: ...
    def totals_or_invalid_value(self) -> npt.NDArray[np.float32]: ...
    def totals_or_group_mean(self) -> npt.NDArray[np.float64]: ...
    def outcomes(self) -> list[str]: ...
    def correct(self) -> list[bool | None]: ...
    def turn_rewards(self) -> list[list[float | None] | None]: ...
    def columns(self) -> list[str]: ...
    def component(self, name: str) -> npt.NDArray[np.float32]: ...
    def component_outcomes(self, name: str) -> list[str]: ...
    def info(self) -> dict[tuple[str, str], list[Any]]: ...
    def reasons(self) -> list[dict[str, Any] | None]: ...
    def groups(self) -> list[list[int]]: ...
    def names(self) -> list[tuple[str, str | None]]: ...
    def reference_remark(self) -> str | None: ...
    def statistics(self) -> str: ...
    def row(self, at: int) -> str: ...
    def result(
        self, at: int, members: Sequence[int]
    ) -> tuple[_Result, int, float | None, list[float | None]]: ...

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
        group: str | int,
        size: int,
        member: str | int | None,
        timeout: float | None,
        validate: bool | None,
        fields: _Fields,
    ) -> None: ...
    def completion_queue(self, wake: Callable[[], object]) -> CompletionQueue: ...
    def leave(self, group: str | int, member: str | int | None) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...

@final
class CompletionQueue:
    def submit(self, number: int, group: str, size: int, member: str | None, fields: _Fields) -> None: ...
    def take(self) -> list[tuple[int, Any]]: ...

@final
class Judges:
    def names(self) -> list[str]: ...
    def ask(
        self,
        judge: str,
        questions: Sequence[Sequence[tuple[str, str]]],
        choices: Sequence[str] | None,
        schema: dict[str, Any] | None,
        timeout: float,
        done: Callable[[list[tuple[str | None, tuple[str, str] | None]] | None], object],
    ) -> bool: ...

@final
class Reward:
    def __new__(cls, name: str, params: dict[str, Any], functions: Sequence[_Function]) -> Reward: ...
    def score(self, fields: _Fields) -> _Scored: ...
    def score_many(self, columns: _Fields) -> list[_Scored]: ...

@final
class Sandbox:
    def __new__(cls, unsafe_no_sandbox: bool) -> Sandbox: ...
    @property
    def isolation(self) -> str: ...
    def run(
        self, programs: Sequence[str], inputs: Sequence[str], params: dict[str, Any]
    ) -> list[tuple[str, str, str, int | None, int | None, float, float, str]]: ...
    def test(
        self,
        programs: Sequence[str],
        tests: Sequence[Any],
        prompts: Sequence[str | None],
        params: dict[str, Any],
    ) -> list[tuple[tuple[list[tuple[str, float, str]], int, float | None] | None, str | None]]: ...

def abort_advice(code: str, names: Sequence[str], rename: str) -> str | None: ...
def aggregate(
    name: str, n: int, comparisons: Sequence[tuple[int, int, int | None]], params: dict[str, Any]
) -> tuple[list[float], list[float] | None, dict[str, Any]]: ...
def check_state(place: str) -> None: ...
def fill_with_group_means(
    values: Sequence[float | None], groups: Sequence[Sequence[int]]
) -> list[float | None]: ...
def instructions_check_many(
    responses: Any, given: Any, prompts: Any, options: dict[str, Any]
) -> list[list[bool | None]]: ...
def instructions_constraints() -> list[tuple[str, str, str, str, str, list[tuple[str, str, bool]]]]: ...
def instructions_explain(
    response: Any, given: Any, prompt: str | None, options: dict[str, Any]
) -> tuple[bool, list[tuple[str, bool | None, str, str | None]]]: ...
def instructions_register(
    id: str, checks: str, required: Sequence[str], optional: Sequence[str], function: Any
) -> None: ...
def main(arguments: Sequence[str], import_module: Callable[[str], str | None]) -> int: ...
def math_explain(
    gold: Any, answer: Any, given: dict[str, Any], unreadable_is_false: bool
) -> (
    tuple[
        tuple[str, str | None],
        tuple[str, str | None],
        tuple[str | None, str | None, str | None, str | None, tuple[int, int] | None, str | None],
    ]
    | None
): ...
def math_extract(
    text: Any, given: dict[str, Any]
) -> tuple[str | None, tuple[str, str | None, str, tuple[int, int]] | None]: ...
def math_verify_many(
    golds: Any, answers: Any, given: dict[str, Any], unreadable_is_false: bool
) -> npt.NDArray[np.bool_]: ...
def misfit(field: str, value: Any) -> str | None: ...
def read_columns(columns: _Fields) -> list[dict[str, Any]]: ...
def read_rollout(fields: _Fields) -> dict[str, Any]: ...
def recipes() -> list[str]: ...
def register(
    name: str,
    page: str,
    schema: dict[str, Any],
    compares: bool,
    call: _Call,
) -> None: ...
def replay(state: str) -> list[str]: ...
def response_of(transcript: str, prompt: str) -> str | None: ...
def reward_traits(name: str) -> tuple[bool, list[str]]: ...
def rewards() -> list[str]: ...
def sandbox_program(response: str, language: str) -> str | None: ...
def sandbox_report() -> tuple[
    str | None,
    list[tuple[str, str, bool, str, str | None]],
    list[tuple[str, str | None, str | None]],
]: ...
def strip_end_of_turn(text: str, more: Sequence[str]) -> str: ...
