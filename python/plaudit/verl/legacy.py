"""How does verl 0.6 know the manager `plaudit`? By VERL_USE_EXTERNAL_MODULES=plaudit.verl.legacy.

verl imports the modules that this variable names in every process, so that importing this one must register
the managers. In 0.4 and 0.5, which do not know the variable, `plaudit.verl.register` as Ray's
`worker_process_setup_hook` does the same.
"""

from plaudit.verl.batch import register

register()
