"""The program's side: calls one function of solution.py, evaluates one expression, or answers the calls of a test.

The program's own output goes to standard error. What a test expects is not known in here, and nothing that happens in here
decides about a test: results leave as typed data.
"""

import builtins

# What the test has made of classes of the program, and functions that it got as results.
OBJECTS = []


def other(value):
    """A function is kept, so that the test can call it; all else is an object of which nothing is known outside."""
    if type(value).__name__ in ("function", "builtin_function_or_method", "method", "partial"):
        OBJECTS.append(value)
        return ["h", len(OBJECTS) - 1]
    return ["o"]


def known(data):
    if data[0] == "h":
        return OBJECTS[data[1]]
    raise ValueError("no typed data")


def keys_as_numbers(value):
    """JSON has no numbers for keys; tests that come as JSON mean them."""
    if type(value) is dict and value and all(key.lstrip("-").isdigit() for key in value):
        return {int(key): item for key, item in value.items()}
    return value


def find(space, name):
    """A function or a class of the program, or a method of `Solution`."""
    first, *rest = name.split(".")
    if first not in space and "Solution" in space:
        found = getattr(space["Solution"](), first)
    else:
        found = space[first]
    for part in rest:
        found = getattr(found, part)
    return found


def answer(space, request):
    """Does what the test asks for."""
    name, on = request["name"], request["on"]
    try:
        target = find(space, name) if on is None else getattr(OBJECTS[on], name)
    except (KeyError, AttributeError):
        return {"missing": name}
    if request["do"] == "get":
        return {"method": True} if callable(target) else {"result": plain(target)}
    arguments = [value_of(data) for data in request["arguments"]]
    keywords = {key: value_of(data) for key, data in request["keywords"].items()}
    result = target(*arguments, **keywords)
    if request["do"] == "new":
        OBJECTS.append(result)
        return {"object": len(OBJECTS) - 1}
    message = {"result": plain(result)}
    # A function that changes its arguments returns nothing.
    if result is None:
        message["after"] = [plain(value) for value in arguments]
        if message["after"] == request["arguments"]:
            del message["after"]
    return message


def serve(space, source, target):
    """Answers until the test has ended."""
    with open(source, "rb") as lines:
        for line in lines:
            try:
                message = answer(space, json.loads(line))
            except BaseException as error:
                text = error.args[0] if len(error.args) == 1 and type(error.args[0]) is str else str(error)
                names = [kind.__name__ for kind in type(error).__mro__]
                message = {"raised": names, "message": text[:10_000]}
            send(target, message)


def main():
    source, target = redirect()
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    module = type(sys)("solution")
    sys.modules["solution"] = module
    space = module.__dict__
    # Where the program finds them, and a test does not: they are not the functions that it asks for.
    taken_for_granted = {}
    exec(request["prelude"], taken_for_granted)
    for name in taken_for_granted.keys() - vars(builtins).keys():
        setattr(builtins, name, taken_for_granted[name])
    with open("solution.py", encoding="utf-8") as file:
        exec(compile(file.read(), "solution.py", "exec"), space)
    if "function" in request:
        function = find(space, request["function"])
        result = function(*[keys_as_numbers(value) for value in request["arguments"]])
        send(target, plain(result))
    elif "expression" in request:
        if request["candidate"]:
            space["candidate"] = find(space, request["candidate"])
        exec(request["setup"], space)
        name = request["expression"].split("(")[0].strip()
        if name not in space:
            raise NameError(f"the program has no {name}")
        send(target, plain(eval(request["expression"], space)))
    else:
        serve(space, source, target)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


main()
