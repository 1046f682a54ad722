#!/usr/bin/env python3
"""Writes the rollouts that the benchmarks score. Standard library only; the same seed gives the same bytes.

    python3 bench/corpus.py                               # bench/data/responses{,_short,_tools}.jsonl and math.jsonl
    python3 bench/corpus.py --size-gb 10 --out big.jsonl  # one large file in the same style, for streaming

Each file holds 2,000 rollouts in groups of 8. `responses` has a text of like size as reference (f1_score, rouge),
`responses_short` the same responses with the short answer as reference (accuracy, number_accuracy), and
`responses_tools` responses that call tools. `math` has responses of about 1.2 KB with an answer in a box, in the mix of kinds that
public references have, three of four right and some of these written in another form. Responses are 1 to 4 KB, about 2 KB in the mean. About one sentence in
ten is Chinese; about 5 % of the responses hold personal data, 5 % have broken tags, 8 % are caught in a loop.
"""

import argparse
import json
import pathlib
import random

ROLLOUTS = 2000
GROUP = 8

NOUNS = (
    "triangle sequence function matrix polynomial integer remainder vector probability variance interval boundary "
    "derivative integral series limit graph vertex edge cycle path circle radius angle perimeter diagonal lattice "
    "inverse determinant kernel residue divisor multiple quotient exponent logarithm ratio average median sample "
    "estimate hypothesis constraint variable constant coefficient identity inequality bound constraint invariant "
    "recurrence induction case subset permutation combination partition bijection parity modulus prime factor root"
).split()
ADJECTIVES = (
    "positive negative nonzero symmetric linear quadratic monotone continuous bounded distinct consecutive even odd "
    "rational irrational smallest largest remaining previous original equivalent careful obvious unexpected simple"
).split()
VERBS = (
    "gives implies equals exceeds divides contains satisfies determines bounds replaces cancels simplifies "
    "contradicts confirms matches dominates approaches intersects preserves doubles halves suggests requires"
).split()
LEADS = (
    "So", "Now", "Hence", "Therefore", "Wait", "Next", "First", "Second", "Finally", "Alternatively", "In fact",
    "Let me check", "On the other hand", "It follows that", "Recall that", "Suppose", "Note that", "By symmetry",
)
CODE = (
    "`for i in range({a}): total += i`", "`def solve(n): return n * {a} + {b}`", "`assert f({a}) == {b}`",
    "`np.linalg.solve(A, b)`", "`heapq.heappush(queue, ({a}, {b}))`", "`x = (x * {a} + {b}) % {c}`", "`dp[i][j] = dp[i-1][j-{a}]`",
)
LATEX = (
    r"$\frac{{{a}}}{{{b}}}$", r"$x^2 + {a}x - {b} = 0$", r"$\sqrt{{{a}}}$", r"$\sum_{{k=1}}^{{{a}}} k^2$",
    r"$\binom{{{a}}}{{{b}}}$", r"\[ \int_0^{{{a}}} t^{b}\,dt \]", r"$f({a}) = {b}$", r"$a_{{n+1}} = {a}a_n - {b}$", r"$\pi \approx 3.14159$",
)
CHINESE = (
    "首先我们把{a}代入方程，得到{b}。", "由于这个数列是单调的，所以极限存在，并且等于{a}。", "接下来需要检查边界条件是否成立。",
    "设未知数为x，根据题意可以列出方程x加{a}等于{b}。", "让我们重新验算一遍，确认没有计算错误。", "因此概率等于{a}分之{b}，这与前面的结果一致。",
    "这道题的关键在于找到合适的辅助线，然后利用相似三角形。", "综上所述，满足条件的整数一共有{a}个。", "如果{a}能整除{b}，那么余数为零。",
)
PERSONAL = (
    "Contact {w}{a}@example.com for the data.", "Call +1 (415) 555-{d} after noon.", "The log came from 203.0.113.{o}.",
    "Write to {w}.{v}@mail.example.org, or ring 212-555-{d}.", "Card 4111 1111 1111 {d} was used.", "身份证号 11010519{y}0307{h}X 已登记。",
)
TOOLS = ("search", "calculator", "python", "read_file", "weather", "unit_convert")


def number(rng):
    shape = rng.random()
    if shape < 0.6:
        return str(rng.randint(2, 99))
    if shape < 0.8:
        return str(rng.randint(100, 99999))
    if shape < 0.9:
        return f"{rng.uniform(0, 100):.{rng.randint(1, 4)}f}"
    return f"-{rng.randint(1, 500)}"


def fill(rng, template):
    return template.format(
        a=rng.randint(2, 99), b=rng.randint(2, 99), c=rng.randint(101, 997), d=rng.randint(1000, 9999), o=rng.randint(1, 254),
        h=rng.randint(10, 99), y=rng.randint(60, 99), w=rng.choice(NOUNS), v=rng.choice(NOUNS),
    )


def sentence(rng):
    if rng.random() < 0.10:
        return fill(rng, rng.choice(CHINESE))
    subject = f"the {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}"
    subject = f"{rng.choice(LEADS)}, {subject}" if rng.random() < 0.6 else subject[0].upper() + subject[1:]
    obj = rng.choice((
        lambda: number(rng),
        lambda: f"{number(rng)} and {number(rng)}",
        lambda: f"the {rng.choice(NOUNS)} of the {rng.choice(NOUNS)}",
        lambda: f"{number(rng)} + {number(rng)} = {number(rng)}",
        lambda: fill(rng, rng.choice(LATEX)),
        lambda: fill(rng, rng.choice(CODE)),
    ))()
    tail = f" because the {rng.choice(NOUNS)} {rng.choice(VERBS)} {number(rng)}" if rng.random() < 0.35 else ""
    return f"{subject} {rng.choice(VERBS)} {obj}{tail}."


def prose(rng, size, loop=False, personal=False):
    """About `size` bytes of reasoning, in paragraphs and lists."""
    pieces, written = [], 0
    loop_at = rng.uniform(0.2, 0.8) * size if loop else None
    personal_at = rng.uniform(0.1, 0.9) * size if personal else None
    while written < size:
        text = sentence(rng)
        if personal_at is not None and written >= personal_at:
            text, personal_at = fill(rng, rng.choice(PERSONAL)), None
        elif loop_at is not None and written >= loop_at:
            text, loop_at = " ".join([text] * rng.randint(4, 8)), None
        pieces.append(text)
        pieces.append(rng.choice((" ", " ", " ", " ", "\n", "\n\n", "\n- ", f"\n{rng.randint(1, 9)}. ")))
        written += len(text.encode()) + 1
    return "".join(pieces[:-1])


def size_of(rng):
    return int(rng.triangular(1040, 3800, 1100))


def broken(rng, text):
    return rng.choice((
        lambda: text.replace("</think>", "", 1),
        lambda: text.replace("<answer>", "", 1),
        lambda: text.replace("</answer>", "", 1),
        lambda: text.replace("<think>", "<think><think>", 1),
        lambda: text.replace("<think>", "<Think>", 1),
        lambda: text + "\n<answer>again</answer>",
    ))()


def response(rng, answer):
    size = size_of(rng)
    closing = prose(rng, rng.randint(40, 200))
    thought = prose(rng, max(size - len(closing.encode()) - 60, 700), loop=rng.random() < 0.08, personal=rng.random() < 0.05)
    text = f"<think>\n{thought}\n</think>\n<answer>\n{closing}\nThe answer is {answer}.\n</answer>"
    return broken(rng, text) if rng.random() < 0.05 else text


def tool_response(rng):
    calls = []
    for _ in range(rng.randint(1, 4)):
        call = {"name": rng.choice(TOOLS), "arguments": {"query": sentence(rng), "limit": rng.randint(1, 20), "exact": rng.random() < 0.5}}
        calls.append(f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>")
    size = size_of(rng) - sum(len(call.encode()) for call in calls)
    text = f"<think>\n{prose(rng, max(size, 500), loop=rng.random() < 0.08, personal=rng.random() < 0.05)}\n</think>\n" + "\n".join(calls)
    if rng.random() < 0.05:
        text = rng.choice((
            lambda: text.replace('"name"', '"nam"', 1), lambda: text.replace("}\n</tool_call>", "\n</tool_call>", 1),
            lambda: text.replace("</tool_call>", "", 1), lambda: text + " done",
        ))()
    return text


def rows(seed=7):
    """Yields, for each rollout, its three lines: long reference, short reference, tool calls."""
    rng = random.Random(seed)
    for index in range(ROLLOUTS):
        if index % GROUP == 0:
            group = f"g{index // GROUP}"
            prompt = f"{sentence(rng)} {sentence(rng)} What is the {rng.choice(NOUNS)}?"
            answer = number(rng)
        text = response(rng, answer if rng.random() < 0.5 else number(rng))
        reference = response(rng, answer)
        tools = tool_response(rng)
        head = {"id": f"r{index}", "group": group, "prompt": prompt}
        yield (
            {**head, "response": text, "reference": reference, "tokens": len(text) // 4},
            {**head, "response": text, "reference": answer, "tokens": len(text) // 4},
            {**head, "response": tools, "reference": answer, "tokens": len(tools) // 4},
        )


def math_answer(rng):
    """A reference, the same in another form, and a wrong one near by."""
    a, b, c = rng.randint(2, 60), rng.randint(2, 30), rng.randint(2, 9)
    kinds = (
        (45, lambda: (f"{a * b}", f"{a * b}", f"{a * b + 1}")),
        (4, lambda: (f"{a * b * 37},000".replace(",", "{,}"), f"{a * b * 37}000", f"{a * b * 37}00")),
        (14, lambda: (rf"\frac{{{a}}}{{{a + b}}}", rf"\frac{{{a * c}}}{{{(a + b) * c}}}", rf"\frac{{{a + 1}}}{{{a + b}}}")),
        (5, lambda: (f"{a}.{b:02d}", rf"{a}.{b:02d}0", f"{a}.{b + 1:02d}")),
        (8, lambda: (rf"{c}\sqrt{{{b}}}", rf"\sqrt{{{c * c * b}}}", rf"{c}\sqrt{{{b + 1}}}")),
        (5, lambda: (rf"\frac{{{a}\pi}}{{{c}}}", rf"\frac{{{a}}}{{{c}}}\pi", rf"\frac{{{a}}}{{{c}\pi}}")),
        (6, lambda: (f"x^2-{c * c}", f"(x-{c})(x+{c})", f"(x-{c})^2")),
        (3, lambda: (f"{c}n+{b}", f"a_n={b}+{c}n", f"{c}n-{b}")),
        (4, lambda: (f"-{c}, {a}", f"{a},-{c}", f"{c}, -{a}")),
        (2, lambda: (f"({a},{b})", f"({a}, {b})", f"({b + 1},{a})")),
        (2, lambda: (f"[{c},{c + b}]", rf"{c}\le x\le {c + b}", f"({c},{c + b}]")),
        (1, lambda: (f"{c}+{b}i", f"{b}i+{c}", f"{c}-{b}i")),
        (1, lambda: (rf"\text{{{rng.choice(NOUNS)}}}",) * 2 + (r"\text{nothing}",)),
    )
    (kind,) = rng.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])
    return kind()


def math_rows(seed=11):
    """Responses with formulas and an answer in a box, in groups of 8."""
    rng = random.Random(seed)
    for index in range(ROLLOUTS):
        if index % GROUP == 0:
            reference, other, wrong = math_answer(rng)
        answer = rng.choices((reference, other, wrong), (2, 1, 1))[0]
        text = f"{prose(rng, 1140)}\n\nTherefore, the final answer is $\\boxed{{{answer}}}$."
        yield {"id": f"m{index}", "group": f"g{index // GROUP}", "prompt": "?", "response": text, "reference": reference}


def code_block(rng, size):
    """About `size` bytes of a Python module, in functions."""
    pieces, written = ["import math\nfrom collections import defaultdict\n"], 0
    while written < size:
        name, noun, verb = rng.choice(NOUNS), rng.choice(NOUNS), rng.choice(("find", "count", "merge", "check", "update"))
        a, b = rng.randint(2, 99), rng.randint(2, 99)
        text = rng.choice((
            f"""
def {verb}_{name}(values, limit={a}):
    result = defaultdict(list)
    for index, value in enumerate(sorted(values)):
        if value % {b} == 0 and index < limit:
            result[value // {b}].append((index, value))
        elif not value:
            continue
    return {{key: max(items) for key, items in result.items() if len(items) > 1}}
""",
            f"""
class {name.capitalize()}{noun.capitalize()}:
    def __init__(self, {noun}, size={a}):
        self.{noun} = {noun}
        self.items = [None] * size

    def {verb}(self, key):
        try:
            return self.items[hash(key) % len(self.items)]
        except (TypeError, IndexError) as error:
            raise ValueError(f"no {name}: {{key!r}} of {{self.{noun}:>{a}}}") from error
""",
            f"""
def {verb}_{noun}(left, right):
    # The {name} of both, with the smaller one first.
    low, high = min(left, right), max(left, right)
    while low:
        low, high = high % low, low
    total = math.sqrt(high ** 2 + {a}) * {b} - sum(x * y for x, y in zip(range({a}), [1, 2, {b}]))
    return round(total, {rng.randint(1, 9)}) if total > {a} else -high
""",
        ))
        pieces.append(text)
        written += len(text)
    return "".join(pieces)


def code_rows(seed=13):
    """Responses with one block of about 2 KB of Python, every eighth with a mistake; the reference has a few lines changed."""
    rng = random.Random(seed)
    for index in range(ROLLOUTS):
        code = code_block(rng, 1900)
        lines = code.splitlines()
        for _ in range(5):
            lines[rng.randrange(len(lines))] = f"    {rng.choice(NOUNS)} = {number(rng)}"
        if rng.random() < 0.125:
            code = code.replace(rng.choice((":", ")", "=")), "", 1)
        text = f"{sentence(rng)}\n\n```python\n{code}```\n\n{sentence(rng)}"
        yield {"id": f"c{index}", "group": f"g{index // GROUP}", "prompt": "?", "response": text, "reference": "\n".join(lines)}


def encode(row):
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def write_corpus(folder):
    folder.mkdir(parents=True, exist_ok=True)
    names = ("responses.jsonl", "responses_short.jsonl", "responses_tools.jsonl", "math.jsonl", "responses_code.jsonl")
    columns = [*zip(*rows()), list(math_rows()), list(code_rows())]
    for name, column in zip(names, columns):
        partial = folder / (name + ".part")
        partial.write_bytes(b"".join(map(encode, column)))
        partial.replace(folder / name)
        sizes = [len(row["response"].encode()) for row in column]
        print(f"{folder / name}: {len(column)} rollouts, response bytes mean {sum(sizes) // len(sizes)}, min {min(sizes)}, max {max(sizes)}")


def write_large(path, size):
    """Repeats the 2,000 lines with new ids and groups until `size` bytes are written."""
    bodies = []
    for long, _, _ in rows():
        body = {key: long[key] for key in ("prompt", "response", "reference", "tokens")}
        bodies.append(encode(body)[1:])
    written = index = 0
    with open(path, "wb", buffering=1 << 20) as out:
        while written < size:
            for body in bodies:
                written += out.write(b'{"id": "r%d", "group": "g%d", ' % (index, index // GROUP) + body)
                index += 1
                if written >= size and index % GROUP == 0:
                    break
    print(f"{path}: {index} rollouts, {written} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size-gb", type=float, help="write one file of this size (10^9 bytes) instead")
    parser.add_argument("--out", type=pathlib.Path, help="where to write it")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(__file__).parent / "data", help="folder of the corpus")
    options = parser.parse_args()
    if (options.size_gb is None) != (options.out is None):
        parser.error("--size-gb and --out go together")
    if options.out:
        write_large(options.out, int(options.size_gb * 1e9))
    else:
        write_corpus(options.data)


if __name__ == "__main__":
    main()
