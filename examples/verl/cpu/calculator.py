"""Calculator tool of the CPU run, for actor_rollout_ref.rollout.multi_turn.function_tool_path."""

from verl.tools.function_tool import function_tool


@function_tool
def add(a: int, b: int) -> str:
    """Adds two numbers.

    Args:
        a: The first number.
        b: The second number.

    Returns:
        Their sum.
    """
    return str(a + b)
