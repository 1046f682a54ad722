"""Which small functions are to be written in Python, with which tests, and how do attempts at them go wrong?"""

from .core import Attempt, Task

# signature, what it does, inputs, outputs, (thought, right code), (thought, wrong code)
FUNCTIONS = (
    ("longest_run(items)", "returns the length of the longest run of equal neighbours in a list (0 for an empty list)",
     [[[1, 1, 2, 2, 2, 3]], [[]], [["a"]], [[5, 5, 5, 5]]], [3, 0, 1, 4],
     (("Walk through the list once and count how long the current run is; whenever the value changes the count starts again at one. The best count seen so far is the result. An empty list never enters the loop, so it has to start at 0.",
       "def longest_run(items):\n    best = current = 0\n    previous = object()\n    for item in items:\n        current = current + 1 if item == previous else 1\n        previous = item\n        best = max(best, current)\n    return best"),
      ("itertools.groupby does exactly this: it yields a group for each stretch of equal neighbours. I need the longest group, with default=0 for the empty list.",
       "from itertools import groupby\n\n\ndef longest_run(items):\n    return max((sum(1 for _ in run) for _, run in groupby(items)), default=0)")),
     (("The longest run of a value is how often it occurs, so I count occurrences.", "def longest_run(items):\n    return max(items.count(item) for item in items)"),
      ("Compare each item with the next one and count how often they are equal.", "def longest_run(items):\n    count = 0\n    for i in range(len(items)):\n        if items[i] == items[i + 1]:\n            count += 1\n    return count"))),
    ("is_balanced(text)", "says whether the brackets (), [] and {} in a text are balanced and properly nested",
     [["(a[b]{c})"], ["([)]"], [""], ["(("], ["no brackets"]], [True, False, True, False, True],
     (("A stack: push each opening bracket, and at a closing one the top of the stack has to be its partner. At the end nothing may be left. Other characters are ignored.",
       "def is_balanced(text):\n    partner = {')': '(', ']': '[', '}': '{'}\n    stack = []\n    for char in text:\n        if char in '([{':\n            stack.append(char)\n        elif char in partner:\n            if not stack or stack.pop() != partner[char]:\n                return False\n    return not stack"),
      ("Another idea is to strip everything but brackets and delete innermost pairs until nothing changes. If the string is empty in the end it was balanced. It's quadratic, but short and easy to see through.",
       "def is_balanced(text):\n    left = ''.join(char for char in text if char in '()[]{}')\n    while True:\n        shorter = left.replace('()', '').replace('[]', '').replace('{}', '')\n        if shorter == left:\n            return not left\n        left = shorter")),
     (("Balanced means as many opening brackets as closing ones of each type.", "def is_balanced(text):\n    return all(text.count(a) == text.count(b) for a, b in ('()', '[]'))"),
      ("Stack approach. Push openings, pop at closings.", "def is_balanced(text):\n    stack = []\n    for char in text\n        if char in '([{':\n            stack.append(char)\n        else:\n            stack.pop()\n    return stack == []"))),
    ("digits_sum(n)", "returns the sum of the decimal digits of an integer, which may be negative",
     [[1234], [0], [-57], [9999]], [10, 0, 12, 36],
     (("The sign must not get in the way: abs first. Then either the string of digits or divmod by ten. The string is shortest.", "def digits_sum(n):\n    return sum(int(digit) for digit in str(abs(n)))"),
      ("With arithmetic instead of strings: take n % 10 off repeatedly. In Python -57 % 10 is 3, so abs is needed before.", "def digits_sum(n):\n    n = abs(n)\n    total = 0\n    while n:\n        n, digit = divmod(n, 10)\n        total += digit\n    return total")),
     (("Turn it into a string and add up.", "def digits_sum(n):\n    return sum(int(d) for d in str(n))"),
      ("Loop while n > 0.", "def digits_sum(n):\n    total = 0\n    while n > 0:\n        total += n % 10\n        n = n / 10\n    return total"))),
    ("merge_intervals(intervals)", "merges overlapping or touching [start, end] intervals and returns them sorted",
     [[[[1, 3], [2, 6], [8, 9]]], [[]], [[[4, 5], [1, 4]]]], [[[1, 6], [8, 9]], [], [[1, 5]]],
     (("Sort by start. Then keep a list of merged ones: if the next interval starts no later than the last one ends, extend the end with max, else append a new one. Touching counts, so <= and not <.",
       "def merge_intervals(intervals):\n    merged = []\n    for start, end in sorted(intervals):\n        if merged and start <= merged[-1][1]:\n            merged[-1][1] = max(merged[-1][1], end)\n        else:\n            merged.append([start, end])\n    return merged"),
      ("A sweep over the end points works too: +1 at a start, -1 at an end, and starts before ends at the same place so that touching ones join. An interval opens when the depth leaves 0 and closes when it is back.",
       "def merge_intervals(intervals):\n    events = sorted([(s, 0) for s, _ in intervals] + [(e, 1) for _, e in intervals])\n    depth, result = 0, []\n    for place, kind in events:\n        if kind == 0:\n            if depth == 0:\n                opened = place\n            depth += 1\n        else:\n            depth -= 1\n            if depth == 0:\n                result.append([opened, place])\n    return result")),
     (("Go through neighbours in the given order and join them if they overlap.", "def merge_intervals(intervals):\n    merged = [intervals[0]]\n    for start, end in intervals[1:]:\n        if start < merged[-1][1]:\n            merged[-1][1] = end\n        else:\n            merged.append([start, end])\n    return merged"),
      ("All intervals are merged into one from the smallest start to the largest end.", "def merge_intervals(intervals):\n    return [[min(i[0] for i in intervals), max(i[1] for i in intervals)]]"))),
    ("caesar(text, shift)", "shifts the letters a-z and A-Z by a number of places, wrapping round, and leaves all else as it is",
     [["abc", 1], ["Xyz!", 3], ["Hello, World", -1], ["", 5]], ["bcd", "Abc!", "Gdkkn, Vnqkc", ""],
     (("For each letter: position in its alphabet plus shift, modulo 26. Python's % gives a non-negative result for negative shifts too, so wrapping works both ways. Upper and lower case have different bases.",
       "def caesar(text, shift):\n    out = []\n    for char in text:\n        if 'a' <= char <= 'z':\n            base = ord('a')\n        elif 'A' <= char <= 'Z':\n            base = ord('A')\n        else:\n            out.append(char)\n            continue\n        out.append(chr((ord(char) - base + shift) % 26 + base))\n    return ''.join(out)"),
      ("str.translate with a table is the compact way. The table maps the alphabet to the rotated alphabet, in lower and upper case; characters that aren't in it stay as they are.",
       "from string import ascii_lowercase as low\n\n\ndef caesar(text, shift):\n    turn = shift % 26\n    moved = low[turn:] + low[:turn]\n    return text.translate(str.maketrans(low + low.upper(), moved + moved.upper()))")),
     (("Add the shift to the code of each character.", "def caesar(text, shift):\n    return ''.join(chr(ord(c) + shift) for c in text)"),
      ("Only letters, modulo 26, lower case is enough since we can lower the text first.", "def caesar(text, shift):\n    text = text.lower()\n    return ''.join(chr((ord(c) - 97 + shift) % 26 + 97) if c.isalpha() else c for c in text)"))),
    ("transpose(rows)", "transposes a rectangular list of lists",
     [[[[1, 2, 3], [4, 5, 6]]], [[]], [[["x"]]]], [[[1, 4], [2, 5], [3, 6]], [], [["x"]]],
     (("zip(*rows) gives the columns as tuples; lists are wanted, so convert. For an empty list zip yields nothing, and the result is [].", "def transpose(rows):\n    return [list(column) for column in zip(*rows)]"),
      ("By index: the element at row i, column j goes to row j, column i. The width is that of the first row, if there is one.", "def transpose(rows):\n    if not rows:\n        return []\n    return [[row[j] for row in rows] for j in range(len(rows[0]))]")),
     (("Reverse the order of the rows and of their elements.", "def transpose(rows):\n    return [row[::-1] for row in rows[::-1]]"),
      ("Use numpy, it has .T for it.", "import numpy as np\n\n\ndef transpose(rows):\n    return np.array(rows).T"))),
)

REMARKS = (
    "Edge cases first: what does the function give for the smallest input?",
    "[Let me|I'll] trace it by hand with the first example before I write it down.",
    "No imports are [needed|required] beyond the standard library, and the input [must not|should not] be changed [where avoidable|if I can help it].",
    "I'll keep the name of the function exactly as [given|asked for], otherwise the tests can't find it.",
    "The running time is [not critical|no issue] for inputs of this size, clarity is.",
)


def tasks(rng):
    """All the functions; the answers are fenced code."""
    made = []
    for signature, what, inputs, outputs, good, poor in FUNCTIONS:
        right = [Attempt(f"{rng.choice(REMARKS)} {thought}", f"```python\n{code}\n```") for thought, code in good * 2]
        wrong = [Attempt(thought, f"```python\n{code}\n```") for thought, code in poor]
        prompt = f"Write a Python function `{signature}` that {what}. [Answer with one code block.|Only the function, please.]"
        extra = {"tests": {"fn_name": signature.split("(")[0], "inputs": inputs, "outputs": outputs}}
        made.append(Task("python", "code", prompt, good[0][1], right, wrong, extra=extra))
    return made
