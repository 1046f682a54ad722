"""How are rollouts scored where they are made? By an agent loop around yours, which waits for the group itself.

Waiting here costs no call of a Ray actor, so that any number of rollouts may wait; and a rollout that fails is known at
once, so that its siblings are scored without it instead of waiting for the group's time to run out.
"""

from __future__ import annotations

import asyncio
import importlib
import weakref
from typing import Any

from plaudit.verl.desk import Desk
from plaudit.verl.rollouts import Finished

SINGLE_TURN = "verl.experimental.agent_loop.single_turn_agent_loop.SingleTurnAgentLoop"

# verl makes an agent loop for every rollout; the way to the shared engine is one a process and event loop.
_desks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Desk] = weakref.WeakKeyDictionary()


class PlauditAgentLoop:
    """An agent loop that runs `loop`, hands its output to the shared engine, and sets the reward."""

    def __init__(self, trainer_config: Any, tokenizer: Any, loop: str = SINGLE_TURN, **kwargs: Any) -> None:
        """`loop` is the full name of the agent loop to run; further settings of the entry are handed on to it."""
        module, _, name = loop.rpartition(".")
        inner = getattr(importlib.import_module(module), name)
        self.inner = inner(trainer_config=trainer_config, tokenizer=tokenizer, **kwargs)
        self.desk = desk(trainer_config.config, tokenizer)

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Any:
        """The inner loop's output with its reward."""
        try:
            output = await self.inner.run(sampling_params, **kwargs)
        except BaseException:
            if "uid" in kwargs:
                self.desk.leave(Finished(kwargs, [], []))
            raise
        final = output[-1] if isinstance(output, list) else output
        if final.reward_score is None:
            fields = {**kwargs, "tool_extra_fields": dict(final.extra_fields), "num_turns": final.num_turns}
            scored = await self.desk.score(Finished(fields, final.prompt_ids, final.response_ids))
            final.reward_score = scored["reward_score"]
            final.extra_fields["reward_extra_info"] = scored["reward_extra_info"]
        return output


def desk(config: Any, tokenizer: Any) -> Desk:
    """This event loop's desk."""
    loop = asyncio.get_running_loop()
    found = _desks.get(loop)
    if found is None:
        found = _desks[loop] = Desk(config, tokenizer, waits_in_ray=False)
    return found
