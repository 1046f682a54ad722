"""`Result`: what one rollout got, from whichever front: a report, a join, a single reward, a service or a Ray actor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from plaudit import _plaudit


@dataclass(frozen=True)
class Result:
    """What one rollout got.

    A failure is never a number: `total` is None where the rollout is invalid or skipped, and `reason` says why.

    Example:
        >>> for result in engine.score(prompts, responses):
        ...     print(result.total, result.outcome, result.components)
    """

    total: float | None
    """The one number; None where the rollout is invalid or skipped."""
    outcome: str
    """`scored`, `floored`, `skipped` or `invalid`."""
    reason: dict[str, Any] | None = None
    """Why there is no plain number: `code`, `component` and `message`."""
    components: dict[str, float | None] = field(default_factory=dict)
    """The value of each component, None where it gave none."""
    info: dict[str, Any] = field(default_factory=dict)
    """The evidence, as `component.fact`, and as `fact` alone where only one component has it."""
    correct: bool | None = None
    """Whether the answer is right, None where no component says so. Filters of groups must use this, not the total."""
    turn_rewards: list[float | None] | None = None
    """The total spread over the model's turns, None for a turn that gets nothing; where the recipe asks for it."""
    group_size: int = 1
    """How many rollouts were scored together; 0 where the rollout was refused and nothing is known of its siblings."""
    partial: bool = False
    """Whether the group was scored without some of its members."""
    late: bool = False
    """Whether the rollout came after its group had been scored."""
    duplicate: bool = False
    """Whether the rollout had been handed in before."""
    waited: float = 0.0
    """The seconds from its arrival until its group was closed."""
    siblings_mean: float | None = None
    """The mean total of the other members that have one; None where none has."""
    group_totals: list[float | None] = field(default_factory=list)
    """The totals of the group: the rollout's own first, then those of the others."""

    @classmethod
    def invalid(cls, code: str, message: str, *, waited: float = 0.0) -> Result:
        """Makes the result of a rollout that could not be scored, and of whose siblings nothing is known.

        Args:
            code: The stable code of the reason, such as `group.deadline`.
            message: The reason in words.
            waited: The seconds that the caller waited.

        Returns:
            A result without a total.

        Example:
            >>> Result.invalid("group.deadline", "no answer in time").total is None
            True
        """
        reason = {"code": code, "component": None, "message": message}
        return cls(None, "invalid", reason, group_size=0, waited=waited)

    @property
    def value(self) -> float | None:
        """The total, under the name that the number of a single reward has."""
        return self.total

    @property
    def total_or_siblings_mean(self) -> float | None:
        """The total; where there is none, the mean of the siblings, which gives the rollout an advantage of 0.

        None where no member of the group has a total.
        """
        return self.siblings_mean if self.total is None else self.total

    def __reduce__(self) -> tuple[Any, ...]:
        # By position: half the size and a third of the time of a pickled __dict__, for actors that send many.
        return Result, tuple(getattr(self, name) for name in _FIELDS)


_FIELDS = tuple(each.name for each in fields(Result))


def fill_with_group_means(
    values: Sequence[float | None], groups: Sequence[Sequence[int]]
) -> list[float | None]:
    """Gives each place without a value the mean of its group, which gives the rollout an advantage of 0.

    Args:
        values: One value a rollout; None or NaN where it has none.
        groups: The places of each group's members.

    Returns:
        The values; None is left where no member of the group has one.

    Example:
        >>> fill_with_group_means([1.0, None, 3.0, None], [[0, 1, 2], [3]])
        [1.0, 2.0, 3.0, None]
    """
    return _plaudit.fill_with_group_means(values, groups)
