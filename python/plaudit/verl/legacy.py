"""Registers the whole-batch managers on import, for verl 0.6: VERL_USE_EXTERNAL_MODULES=plaudit.verl.legacy.

verl imports the modules that this variable names in every process. In 0.4 and 0.5, which do not know the variable, `plaudit.verl.register` as Ray's
`worker_process_setup_hook` does the same.
"""

from plaudit.verl.batch import register

register()
