"""Which hand-written prompts, thoughts and answers do the example rollouts consist of?"""
