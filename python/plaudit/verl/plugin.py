"""How does `reward.reward_manager.name=plaudit` work without a path? verl 0.9 loads this module by its entry point.

verl swallows what an entry point raises, so this says it aloud.
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
