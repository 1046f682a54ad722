"""Entry point of verl 0.9: registers the manager, so that `reward.reward_manager.name=plaudit` works without a path.

verl swallows exceptions of an entry point, so this module logs them.
"""

import logging

try:
    from verl.experimental.reward_loop.reward_manager import register

    from plaudit.verl.manager import PlauditRewardManager

    register("plaudit")(PlauditRewardManager)
except Exception:
    logging.getLogger("plaudit").exception(
        "plaudit: the reward manager `plaudit` could not be registered with verl"
    )
    raise
