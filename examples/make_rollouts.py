#!/usr/bin/env python3
"""What do rollouts of a policy in training look like? Writes the example files anew, always the same bytes.

    python3 examples/make_rollouts.py            # rollouts, group_lines, with_bad_lines and other_names (.jsonl)
    python3 examples/make_rollouts.py --check    # writes nothing; exits with 1 if a file is not what it would write

Standard library only. Every prompt and every text is written for this purpose (blocks/); names, e-mail addresses,
telephone numbers and IP addresses are invented, from the ranges kept free for examples. `extra.case` says what a
rollout was made to be: right, wrong, leak, bad_call, or the name of a failure in blocks/failures.py.
"""

import argparse
import json
import math
import pathlib
import random
import re
import sys

from blocks import boxed, chinese, facts, letters, python_tasks, tools, word_problems, writing
from blocks.core import RESTATED, RESTATED_CHINESE, VOICES, spin
from blocks.failures import CUT_OFF, DECK, say

HERE = pathlib.Path(__file__).parent
SIBLINGS = 8
STYLES = ("terse", "plain", "detour", "second", "thorough", "exhaustive")
# Groups whose rollouts are all the same: their place in the list of tasks before it is shuffled, by kind.
ALL_ALIKE = {"word problem": 7, "factual": 5, "safety": 2}
# Kinds at which the policy is not good yet.
HARD = ("safety", "tool call")
# Failures that need an <answer>, which a tool task does not have.
ABOUT_ANSWERS = ("answer_in_think", "no_think", "two_answers", "loop_answer", "no_tags")
TOKEN = re.compile(r"[\u3000-\u9fff\uff00-\uffef]|\d|[A-Za-z]{1,7}|\s*[^\w\s]|\w")


def count_tokens(text):
    """About as many as a tokenizer of a language model finds."""
    return len(TOKEN.findall(text)) + (1 if text else 0)


def user_text(prompt):
    return prompt if isinstance(prompt, str) else prompt[-1]["content"]


def fresh(thought, said):
    """What of a thought has not been said yet."""
    parts = re.split(r"(?<=[.:?])\s+|(?<=。)", thought)
    new = [part for part in parts if not any(part in text for text in said)]
    return thought if len(new) == sum(map(bool, parts)) else " ".join(new)


def think(task, attempt, rng):
    """The thought of one rollout: from a bare derivation to one with detours, second methods and checks."""
    voice = VOICES[task.kind]
    style = rng.choices(STYLES, (6, 18, 18, 22, 20, 16))[0]
    right = attempt in task.right
    # Nobody verifies a wrong result with a right derivation: second methods are for right attempts.
    others = [one.thought for one in task.right if one is not attempt] if right else []
    mistakes = [one.thought for one in task.wrong if one.answer != attempt.answer and one.case != "bad_call"]
    mistakes = [thought for thought in mistakes if fresh(thought, [attempt.thought]) == thought]
    rng.shuffle(others)
    rng.shuffle(mistakes)
    asides = rng.sample(voice.asides, {"terse": 0, "plain": 1, "exhaustive": 3}.get(style, rng.choice((1, 2))))
    parts = []

    def add(*more):
        for part in more:
            part = fresh(part, parts)
            if len(part) > 8:
                parts.append(part)

    ask = user_text(task.prompt)
    if style != "terse":
        add(rng.choice(voice.openings))
        if len(ask) < 330 and "\n" not in ask and rng.random() < 0.45:
            add(rng.choice(RESTATED_CHINESE if task.kind == "chinese" else RESTATED).replace("{ask}", ask))
    add(*asides[:1])
    if style in ("detour", "thorough", "exhaustive") and mistakes:
        add(mistakes[0], rng.choice(voice.doubts))
    parts.append(attempt.thought)
    add(*asides[1:2])
    seconds = {"second": 1, "thorough": 1, "exhaustive": 2}.get(style, 0)
    for other, turn in zip(others[:seconds], rng.sample(voice.turns, 2)):
        if len(fresh(other, parts)) > 60:
            add(turn, other)
    add(*asides[2:])
    if style not in ("terse", "detour"):
        add(*rng.sample(voice.checks, 2 if style == "exhaustive" else 1))
    if style != "terse":
        add(rng.choice(voice.closings))
    # The steps of longer thoughts stand as paragraphs.
    gap = "" if task.kind == "chinese" else " "
    if style in ("detour", "thorough", "second", "exhaustive") and rng.random() < 0.7:
        gap = "\n\n" if rng.random() < 0.6 else "\n"
    return gap.join(spin(part, rng) for part in parts)


def answer(task, attempt, rng):
    """The final text as this rollout gives it."""
    return rng.choice(task.finals).format(a=attempt.answer) if len(task.finals) > 1 else attempt.answer


def respond(task, attempt, failure, rng):
    """One response, whole or failed."""
    text, final = think(task, attempt, rng), answer(task, attempt, rng)
    return failure(task, text, final, rng) if failure else say(text, final, task.kind == "tool call")


def deck(rng):
    """Failures without end; each pass through the deck has all of them."""
    while True:
        cards = [(name, how) for name, how, many in DECK for _ in range(many)]
        rng.shuffle(cards)
        yield from cards


def fits(task, how):
    """Whether a failure can befall such a task."""
    return task.kind != "tool call" or how.__name__ not in ABOUT_ANSWERS


def siblings(task, failures, rng, many=SIBLINGS):
    """The responses to one prompt, as (case, response)."""
    solved = rng.choices((0.15, 0.4, 0.6, 0.8, 0.95), (2, 4, 5, 5, 2))[0]
    if task.kind in HARD:
        solved = min(solved, 0.5)
    right, wrong = list(task.right), list(task.wrong)
    rng.shuffle(right)
    rng.shuffle(wrong)
    broken = rng.choices((0, 1, 2, 3, 4), (2, 5, 6, 4, 1))[0]
    made = []
    for at in range(many):
        good = rng.random() < solved
        attempt = right[at % len(right)] if good else wrong[at % len(wrong)]
        if at < broken:
            name, how = next(failures)
            while not fits(task, how):
                name, how = next(failures)
            made.append((name, respond(task, attempt, how, rng)))
        else:
            made.append((attempt.case or ("right" if good else "wrong"), respond(task, attempt, None, rng)))
    rng.shuffle(made)
    if rng.random() < 0.15:
        made[rng.randrange(1, many)] = made[0]
    return made


def all_tasks(rng):
    """The tasks of rollouts.jsonl, and which of them are answered eight times alike."""
    words = [make(rng) for make in word_problems.ALL * 2 + word_problems.ALL[:2]]
    shapes = [make(rng) for make in boxed.ALL * 2]
    made = words + shapes + facts.tasks(rng) + writing.tasks() + letters.tasks()
    made += python_tasks.tasks(rng) + tools.tasks() + chinese.tasks(rng)
    alike = []
    for kind, at in ALL_ALIKE.items():
        alike.append([task for task in made if task.kind == kind][at])
    rng.shuffle(made)
    return made, alike


def spin_prompt(task, rng):
    """Settles how the prompt of a task is phrased."""
    if isinstance(task.prompt, str):
        task.prompt = spin(task.prompt, rng)
    else:
        task.prompt = [{**message, "content": spin(message["content"], rng)} for message in task.prompt]
    return task.prompt


def flat(group, at, task, prompt, case, response, rng):
    """One flat line."""
    line = {"id": f"{group}-{at}", "group": group, "prompt": prompt, "response": response}
    if task.reference is not None:
        line["reference"] = task.reference
    if rng.random() > 0.07:
        line["tokens"] = count_tokens(response)
    line["data_source"] = task.source
    cut_off = case in CUT_OFF or "<think>" in response and "</think>" not in response
    finish = "length" if cut_off else "stop"
    line["extra"] = {"kind": task.kind, "case": case, "step": 120, "finish": finish, **task.extra}
    return line


def rollouts():
    """The lines of rollouts.jsonl."""
    rng = random.Random(20250709)
    tasks, alike = all_tasks(rng)
    failures = deck(rng)
    lines = []
    for number, task in enumerate(tasks, 1):
        group, prompt = f"g{number:03}", spin_prompt(task, rng)
        if any(task is one for one in alike):
            made = [("right", respond(task, task.right[0], None, rng))] * SIBLINGS
        else:
            made = siblings(task, failures, rng)
        lines += [flat(group, at, task, prompt, case, response, rng) for at, (case, response) in enumerate(made)]
    return lines


def group_lines():
    """A dozen group lines, with problems that rollouts.jsonl does not have."""
    rng = random.Random(7)
    failures = deck(rng)
    tasks = [make(rng) for make in boxed.ALL + word_problems.ALL[:4]] + chinese.tasks(rng)[:2]
    lines = []
    for number, task in enumerate(tasks, 1):
        prompt = spin_prompt(task, rng)
        made = siblings(task, failures, rng, 4)
        responses = [response for _, response in made]
        line = {"id": f"q{number:02}", "prompt": prompt, "responses": responses}
        line["reference"] = task.reference
        if number % 4:
            line["tokens"] = [count_tokens(response) for response in responses]
        extra = {"kind": task.kind, "cases": [case for case, _ in made]}
        lines.append({**line, "data_source": task.source, "extra": extra})
    return lines


def other_names():
    """Rollouts under the names that another data set gives its fields.

    --field id=uid --field group=qid --field prompt=question --field response=completion
    --field reference=gold --field tokens=n_tokens
    """
    rng = random.Random(11)
    failures = deck(rng)
    lines = []
    for number, make in enumerate(word_problems.ALL[4:] + boxed.ALL[:2], 1):
        task = make(rng)
        prompt = spin_prompt(task, rng)
        for at, (_, response) in enumerate(siblings(task, failures, rng, 4)):
            lines.append({
                "uid": f"{number}/{at}", "qid": f"{number}", "question": prompt, "completion": response,
                "gold": task.reference, "n_tokens": count_tokens(response), "split": "train",
            })
    return lines


def bad_line(fault, line):
    """The text of a line with one fault."""
    text = write(line)
    if fault == "cut short":
        return text[:math.ceil(len(text) * 0.6)]
    if fault == "key twice":
        return text[:-1] + ', "id": "again"}'
    if fault == "a list":
        return write([line["prompt"], line["response"]])
    changed = dict(line)
    if fault == "no response":
        del changed["response"]
    else:
        field, value = {
            "response is null": ("response", None), "id is a number": ("id", 17), "same id": ("id", "b-0"),
            "tokens in words": ("tokens", "about 300"),
        }[fault]
        changed[field] = value
    return write(changed)


def with_bad_lines():
    """Lines of which some cannot be read; each fault once, between good ones."""
    rng = random.Random(3)
    failures = deck(rng)
    places = {
        3: "cut short", 5: "no response", 8: "same id", 10: "tokens in words", 13: "response is null",
        15: "id is a number", 17: "key twice", 19: "a list",
    }
    tasks = [facts.tasks(rng)[0], word_problems.discount(rng), boxed.sector(rng)]
    texts = []
    for number, task in enumerate(tasks):
        prompt = spin_prompt(task, rng)
        for at, (_, response) in enumerate(siblings(task, failures, rng, 7)):
            here = number * 7 + at
            line = {"id": f"b-{here}", "group": f"b{number}", "prompt": prompt, "response": response}
            line.update(reference=task.reference, tokens=count_tokens(response))
            texts.append(bad_line(places[here], line) if here in places else write(line))
    return texts


def write(line):
    return json.dumps(line, ensure_ascii=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file differs")
    check = parser.parse_args().check
    files = {
        "rollouts": map(write, rollouts()), "group_lines": map(write, group_lines()),
        "other_names": map(write, other_names()), "with_bad_lines": with_bad_lines(),
    }
    differ = []
    for name, lines in files.items():
        path = HERE / f"{name}.jsonl"
        data = "".join(line + "\n" for line in lines).encode()
        if not check:
            path.write_bytes(data)
        elif not path.exists() or path.read_bytes() != data:
            differ.append(path.name)
    if differ:
        sys.exit(f"not what make_rollouts.py writes: {', '.join(differ)}")


if __name__ == "__main__":
    main()
