"""Nodes of linked lists and of binary trees, with what makes and compares them, as rows of LeetCode take them for granted."""


class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next


class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right


def list_node(values):
    """The first node of a list."""
    first = None
    for value in reversed(list(values)):
        first = make_node("ListNode", value, first)
    return first


def tree_node(values):
    """The root of a tree whose values come level by level, with `None` where a node is not there."""
    values = list(values)
    root = make_node("TreeNode", values[0], None, None) if values and values[0] is not None else None
    nodes, at = [root], 1
    for parent in nodes:
        for side in ("left", "right"):
            if parent is not None and at < len(values):
                if values[at] is not None:
                    setattr(parent, side, make_node("TreeNode", values[at], None, None))
                    nodes.append(getattr(parent, side))
                at += 1
    return root


def is_same_list(one, other):
    return is_same(one, other, ("next",))


def is_same_tree(one, other):
    return is_same(one, other, ("left", "right"))


def is_same(one, other, ways):
    """Whether two nodes hold equal values, and so do those that they lead to. A pair that was met before is not looked at again, so that
    one that leads back to itself has an end.
    """
    pairs, met = [(one, other)], set()
    for one, other in pairs:
        if one is None or other is None:
            if one is not other:
                return False
        elif (id(one), id(other)) not in met:
            met.add((id(one), id(other)))
            if one.val != other.val:
                return False
            pairs += [(getattr(one, way), getattr(other, way)) for way in ways]
    return True


class Nodes:
    """The nodes of one message. They cross by what is in them, each once, so that one that is met twice is one on the other side too."""

    fields = {"ListNode": ("val", "next"), "TreeNode": ("val", "left", "right")}
    functions = ("list_node", "tree_node", "is_same_list", "is_same_tree")
    # Where classes of these names count, the first that has one; none where the test has nothing to do with nodes.
    spaces = []
    places, met, made = {}, [], []

    @classmethod
    def start(cls, nodes=()):
        """Begins a message with nodes that both sides know."""
        cls.met = list(nodes)
        cls.places = {id(node): at for at, node in enumerate(cls.met)}

    @classmethod
    def state(cls):
        return cls.places, cls.met, cls.made

    @classmethod
    def restore(cls, state):
        cls.places, cls.met, cls.made = state

    @classmethod
    def place(cls, node):
        at = cls.places.setdefault(id(node), len(cls.met))
        if at == len(cls.met):
            cls.met.append(node)
        return ["N", at]

    @classmethod
    def add(cls, message, plain):
        """Adds what is in the nodes of a message, those included that they lead to."""
        for node in cls.met:
            name = type(node).__name__
            found = [name, *(plain(getattr(node, field, None)) for field in cls.fields[name])]
            message.setdefault("nodes", []).append(found)

    @classmethod
    def take(cls, data, value_of, known=()):
        """Makes the nodes of a message that was read; the known ones, which come first, become what it says."""
        cls.made = made = [*known, *(new_node(name) for name, *_ in data[len(known) :])]
        for node, (name, *values) in zip(made, data):
            if len(values) != len(cls.fields[name]):
                raise ValueError("no node")
            for field, value in zip(cls.fields[name], values):
                setattr(node, field, value_of(value))

    @classmethod
    def get(cls, at):
        if type(at) is not int or not 0 <= at < len(cls.made):
            raise ValueError("no node")
        return cls.made[at]


def is_node(kind):
    name = kind.__name__
    return type(kind) is type and name in Nodes.fields and any(space.get(name) is kind for space in Nodes.spaces)


def node_class(name):
    if name not in Nodes.fields:
        raise ValueError("no node")
    return next(space[name] for space in Nodes.spaces if type(space.get(name)) is type)


def new_node(name):
    kind = node_class(name)
    try:
        return kind(0)
    except Exception:
        return kind.__new__(kind)


def make_node(name, *values):
    node = new_node(name)
    for field, value in zip(Nodes.fields[name], values):
        setattr(node, field, value)
    return node
