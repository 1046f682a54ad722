"""What the source of a test shows of what it means: which names are classes to it, which errors it expects, and whether it looks at
an argument that the program has changed.

It is part of the test's side, and reads the text of the test; nothing here asks the program.
"""


def is_looked_at(value, function):
    """Whether the test compares an argument, after the call, with something else than the call's result: so it means the change."""
    frame = next(test_frames(), None)
    if frame is None or frame.f_code.co_filename != "test.py":
        return False

    def holds(found):
        return found is value or type(found) in (list, tuple) and any(item is value for item in found)

    ours = {name for name, found in frame.f_locals.items() if holds(found)}
    import ast

    scope, line = ast.parse(State.request["source"]), frame.f_lineno
    for node in ast.walk(scope):
        if isinstance(node, ast.FunctionDef) and node.name == frame.f_code.co_name:
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            scope = node if first == frame.f_code.co_firstlineno else scope
    names = {function.split(".")[-1], "candidate"}

    def calls(node):
        found = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
        return any(getattr(part, "id", getattr(part, "attr", None)) in names for part in found)

    def uses(node, wanted, beside=False):
        """Whether a name is used; beside what an item is found by, which says nothing of the item."""
        if beside and isinstance(node, ast.Subscript):
            return uses(node.value, wanted, beside)
        return any(isinstance(part, ast.Name) and part.id in wanted for part in ast.walk(node))

    def bound(target):
        return {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}

    results = set()
    nodes = [node for node in ast.walk(scope) if getattr(node, "lineno", getattr(getattr(node, "target", None), "lineno", 0)) >= line]
    for _ in range(5):
        for node in nodes:
            if isinstance(node, ast.Assign):
                targets, content = set().union(*map(bound, node.targets)), node.value
            elif isinstance(node, (ast.For, ast.comprehension)):
                targets, content = bound(node.target), node.iter
            else:
                continue
            if calls(content) or uses(content, results):
                results |= targets - ours
            elif uses(content, ours):
                ours |= targets
    looked_at = False
    for node in nodes:
        if isinstance(node, ast.Compare):
            if any(isinstance(operator, (ast.Is, ast.IsNot)) for operator in node.ops):
                continue
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "").startswith("assert") and len(node.args) > 1:
            sides = node.args[:2]
        else:
            continue
        with_ours = [side for side in sides if uses(side, ours) and not calls(side)]
        others = [side for side in sides if side not in with_ours]
        if len(with_ours) > 1 or with_ours and any(calls(side) or uses(side, results, True) for side in others):
            return False
        looked_at |= bool(with_ours) and bool(others)
    return looked_at


def fails(node):
    """Whether a part of a test says that it has failed."""
    import ast

    for part in ast.walk(node):
        if isinstance(part, ast.Raise) or isinstance(part, ast.Call) and "fail" in ast.dump(part.func):
            return True
        if isinstance(part, ast.Assert) and isinstance(part.test, ast.Constant) and not part.test.value:
            return True
    return False


def is_of_failures(name):
    """Whether a name that nobody defines is needed only where the test has failed: in what an assert says then, in a handler that raises
    again, or in what is raised.
    """
    import ast

    frame = next(test_frames(), None)
    if frame is None or frame.f_code.co_filename != "test.py":
        return False

    def names(node):
        return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))

    for node in ast.walk(ast.parse(State.request["source"])):
        if not node_holds(node, frame.f_lineno):
            continue
        if isinstance(node, ast.Assert) and node.msg is not None and names(node.msg) and not names(node.test):
            return True
        if isinstance(node, ast.Raise) and names(node):
            return True
        if isinstance(node, ast.ExceptHandler) and any(map(fails, node.body)) and any(map(names, node.body)):
            return True
    return False


def node_holds(node, line):
    return getattr(node, "lineno", line + 1) <= line <= getattr(node, "end_lineno", line)


def skips_errors(source):
    """Whether a test has a handler for all errors that does nothing, where nothing asks for an error."""
    import ast

    def nothing(node):
        return isinstance(node, (ast.Pass, ast.Continue, ast.Break, ast.Return)) or isinstance(node, ast.Expr)

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.With) and any("'suppress'" in ast.dump(item) for item in node.items):
            return True
        if not isinstance(node, ast.Try) or any(map(fails, [*node.body, *node.orelse])):
            continue
        for handler in node.handlers:
            general = handler.type is None or getattr(handler.type, "id", "") in ("Exception", "BaseException")
            if general and not any(map(fails, handler.body)) and all(map(nothing, handler.body)):
                return True
    return False


def is_used_as_class(name):
    """Whether the test's own text shows that a name is a class to it, and no function with a capital letter."""
    key = ("class", name)
    if key not in Seen:
        Seen[key] = False
        import ast

        try:
            Seen[key] = shows_class(ast, list(ast.walk(ast.parse(State.request["setup"] + "\n" + State.request["source"]))), name)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    return Seen[key]


def shows_class(ast, nodes, name):
    # Variables that hold what the name makes, and those that hold several such.
    ones, many = set(), set()

    def is_name(node):
        return getattr(node, "id", getattr(node, "attr", None)) == name

    def is_made(node):
        if isinstance(node, ast.Call):
            return is_name(node.func)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return ast.unparse(node) in ones
        if isinstance(node, ast.Subscript):
            return is_several(node.value)
        inner = {ast.BinOp: ("left", "right"), ast.UnaryOp: ("operand",), ast.IfExp: ("body", "orelse"), ast.NamedExpr: ("value",)}
        return any(is_made(getattr(node, field)) for field in inner.get(type(node), ()))

    def is_several(node):
        """What makes several: elements beside each other, or one for each item."""
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return any(map(is_made, node.elts))
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return is_made(node.elt)
        return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in many

    for _ in range(3):
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
                targets, value = getattr(node, "targets", None) or [node.target], node.value
            elif isinstance(node, (ast.For, ast.comprehension)) and is_several(node.iter):
                ones |= {part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)}
                continue
            else:
                continue
            for target in targets:
                pairs = [(target, value)]
                if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
                    pairs = [*zip(target.elts, value.elts)]
                for one, made in pairs:
                    if isinstance(one, (ast.Name, ast.Attribute)):
                        (ones if is_made(made) else many if is_several(made) else set()).add(ast.unparse(one))
    data = set().union(*map(dir, (str, list, dict, set, int, float, tuple, bytes)))
    others = {name, "candidate", *dir(builtins), *(word for words in NAMES.values() for word in words.split())}
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            others.add(node.name)
        elif isinstance(node, ast.ImportFrom) and node.module != "solution":
            others |= {part.asname or part.name for part in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            others.add(node.id)
    asks = {"isinstance": 1, "assertIsInstance": 1, "issubclass": 0, "raises": 0, "assertRaises": 0, "assertRaisesRegex": 0}
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr not in data and (is_name(node.value) or is_made(node.value)):
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and is_made(node.value):
            return True
        if isinstance(node, (ast.With, ast.AsyncWith)) and any(is_made(item.context_expr) for item in node.items):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            # It is changed, and not only put in order to be compared.
            if is_made(node.value.func.value) and node.value.func.attr not in ("sort", "reverse"):
                return True
        if isinstance(node, ast.Call):
            if is_name(node.func) and not node.args and not node.keywords or is_made(node.func):
                return True
            # Another function of the program takes what it makes.
            if getattr(node.func, "id", name) not in others and any(is_made(part) or is_several(part) for part in node.args):
                return True
            first = asks.get(getattr(node.func, "id", getattr(node.func, "attr", None)))
            kinds = [] if first is None else node.args[first:]
            if any(is_name(part) for kind in kinds for part in ([kind, *kind.elts] if isinstance(kind, ast.Tuple) else [kind])):
                return True
    return False


def skips_asserts(trace):
    """Whether the block of a `with` that an error has ended has an assert at that line or after it."""
    while trace is not None and trace.tb_frame.f_code.co_filename != "test.py":
        trace = trace.tb_next
    if trace is None:
        return False
    import ast

    line, of_with = trace.tb_lineno, trace.tb_frame.f_lineno
    nodes = list(ast.walk(ast.parse(State.request["source"])))

    def holds(node, line):
        return node.lineno <= line <= node.end_lineno

    blocks = [node for node in nodes if isinstance(node, (ast.With, ast.AsyncWith)) and holds(node, line)]
    exact = [node for node in blocks if any(holds(item.context_expr, of_with) for item in node.items)]
    functions = {}

    def asserts(part):
        if isinstance(part, ast.Assert):
            return not isinstance(part.test, ast.Constant)
        called = getattr(part.func, "attr", getattr(part.func, "id", "")) if isinstance(part, ast.Call) else ""
        return called.startswith("assert") or called == "raises" or functions.get(called, False)

    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions[node.name] = any(map(asserts, ast.walk(node)))
    for block in exact[-1:] or blocks[-1:]:
        parts = [part for statement in block.body for part in ast.walk(statement)]
        # What stands before it in a loop would have come again.
        loops = [part for part in parts if isinstance(part, (ast.For, ast.AsyncFor, ast.While)) and holds(part, line)]
        first = min([line, *(part.lineno for part in loops)])
        return any(getattr(part, "end_lineno", 0) >= first and asserts(part) for part in parts)
    return False


def is_used_as_kind(name):
    """Whether a test asks what is of a class of that name, or catches it."""
    import ast

    asks = ("isinstance", "issubclass", "assertIsInstance", "raises", "assertRaises", "assertRaisesRegex", "suppress")

    def names(node):
        return any(name == getattr(part, "id", getattr(part, "attr", None)) for part in ast.walk(node))

    for node in ast.walk(ast.parse(State.request["source"])):
        if isinstance(node, ast.ExceptHandler) and node.type is not None and names(node.type):
            return True
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", None)) in asks:
            # Not one that is called in there: `isinstance(f(1), int)`.
            called = {id(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
            kinds = [part for argument in node.args for part in ast.walk(argument) if id(part) not in called]
            if any(name == getattr(part, "id", getattr(part, "attr", None)) for part in kinds):
                return True
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            if any(name == getattr(side, "id", getattr(side, "attr", None)) for side in (node.left, *node.comparators)):
                return True
    return False


def takes_for_value(error):
    """Whether a test has failed because the program has made a function or a class of what the test takes for a value."""
    if isinstance(error, TypeError):
        said = ("Function", "Maker", "arg 1 must be a", "arg 2 must be a", "can only join an iterable")
        return any(part in str(error) for part in said)
    trace, last = error.__traceback__, None
    while trace is not None:
        last = trace if trace.tb_frame.f_code.co_filename == "test.py" else last
        trace = trace.tb_next
    if last is None or not isinstance(error, AssertionError):
        return False
    import ast

    frame = last.tb_frame
    held = [node for node in ast.walk(ast.parse(State.request["source"])) if isinstance(node, ast.stmt) and node_holds(node, last.tb_lineno)]
    parts = list(ast.walk(held[-1])) if held else []
    called = {id(part.func) for part in parts if isinstance(part, ast.Call)}

    def is_stand_in(part):
        if isinstance(part, ast.Attribute):
            return isinstance(Seen.get(part.attr), (Function, Maker))
        found = frame.f_locals.get(part.id, frame.f_globals.get(part.id)) if isinstance(part, ast.Name) else None
        return isinstance(found, (Function, Maker))

    return any(id(part) not in called and is_stand_in(part) for part in parts)
