"""The test and the program in one interpreter, as HumanEval's own harness has them. A program in here can forge its verdict."""

import json
import os


class Invalid(BaseException):
    """The test cannot be run."""


class Broken(BaseException):
    """It was skipped."""


class State:
    calls = 1


def invalid(message):
    raise Invalid(message)


def broken(message):
    raise Broken(message)


def may_patch(target, name):
    return True


def find(space, name):
    first, *rest = name.split(".")
    found = space[first] if first in space or "Solution" not in space else getattr(space["Solution"](), first)
    for part in rest:
        found = getattr(found, part)
    return found


def run(request):
    solution = sys.modules["solution"] = types.ModuleType("solution")
    taken_for_granted = {}
    if request["nodes"]:
        taken_for_granted = {name: globals()[name] for name in (*Nodes.fields, *Nodes.functions)}
        Nodes.spaces = [vars(solution), dict(taken_for_granted)]
    exec(request["prelude"], taken_for_granted)
    for name in taken_for_granted.keys() - vars(builtins).keys():
        setattr(builtins, name, taken_for_granted[name])
    with open("solution.py", encoding="utf-8") as file:
        exec(compile(file.read(), "solution.py", "exec"), solution.__dict__)
    for name, text in request["libraries"].items():
        sys.modules[name] = types.ModuleType(name)
        exec(compile(text, f"{name}.py", "exec"), sys.modules[name].__dict__)
    space = {}
    try:
        exec(compile(request["prompt"], "prompt.py", "exec"), space)
    except BaseException:
        # Prose, or something that only the program needs.
        space = {}
    space.update(solution.__dict__)
    space["__name__"] = "test_solution"
    if request["candidate"]:
        space["candidate"] = find(space, request["candidate"])
    exec(compile(request["setup"], "setup.py", "exec"), space)
    exec(compile(request["source"], "test.py", "exec"), space)
    if request["function"]:
        run_function(space, request["function"])


def main():
    target = os.dup(1)
    os.dup2(2, 1)
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    try:
        run(request)
        verdict, message = "passed", ""
    except Invalid as error:
        verdict, message = "invalid", str(error)
    except BaseException as error:
        verdict = "wrong" if isinstance(error, AssertionError) else "memory" if isinstance(error, MemoryError) else "error"
        message = f"{type(error).__name__}: {error}"
    told = {"nonce": request["nonce"], "verdict": verdict, "message": message[:2000]}
    os.write(target, (json.dumps(told) + "\n").encode())
    os._exit(0)


main()
