"""Which word problems are asked, with numbers drawn anew each time, and how are they solved, rightly and wrongly?"""

from .core import Attempt, Task

NAMES = ("Mara", "Tobias", "Ines", "Kofi", "Yusuf", "Priya", "Leon", "Greta", "Ravi", "Salma", "Ondrej", "Noor")
FINALS = ("{a}", "{a}", "The answer is {a}.", "{a}", "**{a}**", "Answer: {a}")


def problem(prompt, answer, right, wrong, finals=FINALS):
    """A word problem whose right attempts all end with the answer."""
    right = [Attempt(text, str(answer)) for text in right]
    wrong = [Attempt(text, str(value)) for text, value in wrong if str(value) != str(answer)]
    return Task("word problem", "math", prompt, str(answer), right, wrong, finals)


def bakery(rng):
    who, trays, per, box = rng.choice(NAMES), rng.randint(11, 29), rng.choice((18, 24, 28, 32)), 6
    broken = (trays * per) % box + box * rng.randint(2, 6)
    baked = trays * per
    good, boxes = baked - broken, (baked - broken) // box
    price = rng.choice((4, 5, 7, 9))
    take = boxes * price
    return problem(
        f"{who} bakes {trays} trays of {per} rolls. {broken} rolls come out burnt and are thrown away. The rest are packed in boxes of {box} "
        f"and each box is sold for {price} euros. How many euros does {who} take if every box is sold?",
        take,
        [
            f"{trays} trays with {per} rolls each [make|come to] {trays} * {per} = {baked} rolls. [Burnt ones go out first|Take away the burnt ones]: {baked} - {broken} = {good}. "
            f"Boxes hold {box}, so {good} / {box} = {boxes} boxes, [with nothing left over|and it divides evenly]. At {price} euros a box [the takings are|that brings in] {boxes} * {price} = {take}.",
            f"I'll work backwards from the money. The takings are {price} times the number of boxes, and the number of boxes is the good rolls divided by {box}. "
            f"Good rolls: [everything baked minus the burnt ones|baked minus burnt], so {trays}*{per} = {baked}, then {baked} - {broken} = {good}. "
            f"{good} is divisible by {box} because {box} * {boxes} = {good}. [Hence|Therefore] {boxes} boxes, and {boxes} times {price} is {take} euros.",
            f"Splitting the product: {trays} * {per} = {trays - trays % 10} * {per} + {trays % 10} * {per} = {(trays - trays % 10) * per} + {trays % 10 * per} = {baked}. "
            f"After throwing away {broken} there are {good} rolls. In sixes: {boxes}. Money: {boxes} x {price} = {take}.",
        ],
        [
            (f"There are {trays} * {per} = {baked} rolls. In boxes of {box} that is {baked / box:.4g} boxes, which I round down to {baked // box}. "
             f"Each brings {price} euros so {baked // box} * {price} = {baked // box * price}. The burnt ones [are already accounted for by the rounding|only matter a little].", baked // box * price),
            (f"[Rolls baked|Total rolls]: {trays} * {per} = {baked + per} (I add the trays up one by one: {per}, {2 * per}, {3 * per}, and so on until the last). Minus {broken} burnt is {baked + per - broken}. "
             f"Divide by {box}: about {(baked + per - broken) // box} full boxes. So the takings come to {(baked + per - broken) // box * price} euros.", (baked + per - broken) // box * price),
            (f"{baked} rolls in total, {broken} burnt, {good} good ones. Each roll is sold for {price} euros, so {good} * {price} = {good * price}.", good * price),
        ],
    )


def pumps(rng):
    a, b, t = rng.choice(((3, 6, "2"), (4, 12, "3"), (6, 12, "4"), (10, 15, "6"), (12, 24, "8"), (20, 30, "12"), (15, 30, "10"), (8, 24, "6")))
    place = rng.choice(("a rainwater tank", "the village pool", "a ship's ballast tank", "an irrigation pond"))
    return problem(
        f"One pump [fills|can fill] {place} in {a} hours, a second one in {b} hours. [How many hours does it take|How long, in hours, does it take] if both run at the same time?",
        t,
        [
            f"Rates add, times don't. Pump one does 1/{a} of the tank per hour, pump two 1/{b}. Together that's 1/{a} + 1/{b} = {b}/{a * b} + {a}/{a * b} = {a + b}/{a * b}. "
            f"The time is the reciprocal: {a * b}/{a + b} = {t} hours.",
            f"Imagine the volume is {a * b} litres, [just to get rid of the fractions|which makes the fractions go away]. The first pump then moves {b} litres an hour, the second one {a}. "
            f"Both: {a + b} litres an hour. Emptying the arithmetic into one line, {a * b} / {a + b} gives {t}. The unit was arbitrary, so the time doesn't depend on it.",
            f"Suppose it takes t hours. In that time the first pump has done t/{a} and the second t/{b} of the job, and these must sum to 1. Multiply by {a * b}: {b}t + {a}t = {a * b}, so t = {a * b}/{a + b} = {t}.",
        ],
        [
            (f"Two pumps, so I take the [mean|average] of the two times: ({a} + {b}) / 2 = {(a + b) / 2:g} hours, and because there are two of them working it's half of that, {(a + b) / 4:g} hours.", f"{(a + b) / 4:g}"),
            (f"One needs {a} hours and the other {b} hours. Working together they [help each other|share the work], so the difference counts: {b} - {a} = {b - a}. [That seems right|I think that's it], since the faster one does most of it.", b - a if str(b - a) != t else a + b),
            (f"The average of {a} and {b} is {(a + b) / 2:g}. With both of them on, the tank is full after {(a + b) / 2:g} hours.", f"{(a + b) / 2:g}"),
        ],
    )


def tickets(rng):
    adult, child = rng.choice(((12, 7), (15, 9), (14, 8), (11, 6)))
    a = rng.randint(34, 118)
    c = a + rng.choice((-11, -7, 8, 13, 19, 26))
    n, money = a + c, a * adult + c * child
    show = rng.choice(("A puppet theatre", "The planetarium", "A small circus", "The school musical"))
    base = n * child
    return problem(
        f"{show} sells {n} tickets in one evening and takes {money} dollars. An adult ticket costs {adult} dollars and a child's ticket {child} dollars. How many adult tickets were sold?",
        a,
        [
            f"Let x be the adults and y the children. x + y = {n} and {adult}x + {child}y = {money}. Put y = {n} - x into the second: {adult}x + {base} - {child}x = {money}, [which leaves|so] {adult - child}x = {money - base} and x = {a}. "
            f"Then y = {c}. Check: {a} * {adult} = {a * adult}, {c} * {child} = {c * child}, and the sum is {money}.",
            f"Pretend that everybody paid the child's price. That would be {n} * {child} = {base} dollars. But they took {money}, which is {money - base} more. Each adult is responsible for {adult - child} dollars of that surplus, so there are {money - base} / {adult - child} = {a} adults.",
            f"The other extreme: if all {n} were adults the till would hold {n * adult}. It holds {n * adult - money} less. Replacing an adult by a child lowers it by {adult - child}, so {n * adult - money} / {adult - child} = {c} children came, and {n} - {c} = {a} adults.",
        ],
        [
            (f"The average price is ({adult} + {child}) / 2 = {(adult + child) / 2:g}. If half were adults, {n // 2} of {n}, we'd get {n * (adult + child) / 2:g} dollars. That's [near|roughly] {money}, so I'd say {n // 2} adults.", n // 2),
            (f"With x adults and {n} - x children: {adult}x + {child}({n} - x) = {money}. Expanding gives {adult}x + {base} - {child}x = {money}; then {adult - child}x = {money - base}, x = {a}. So {c} tickets. The question is for the [others|remaining ones], therefore {n} - {a} = {c}.", c),
            (f"Set up: x + y = {n}; {adult}x + {child}y = {money}. Multiply the first by {adult}: {adult}x + {adult}y = {n * adult}. Subtract and get {adult - child}y = {n * adult - money}, giving y = {c + 1}. So x = {a - 1}.", a - 1),
        ],
    )


def discount(rng):
    list_price = rng.choice((80, 120, 160, 240, 320, 360, 480))
    off, extra = rng.choice(((25, 10), (20, 15), (30, 10), (40, 5), (25, 20)))
    first = list_price * (100 - off) / 100
    final = first * (100 - extra) / 100
    thing, who = rng.choice(("a winter coat", "an office chair", "a bicycle trailer", "a film camera")), rng.choice(NAMES)
    answer = f"{final:.2f}"
    return problem(
        f"{who} buys {thing} with a list price of {list_price} euros. It is reduced by {off}%, and at the till {who} gets a further {extra}% off the reduced price. [How much does {who} pay|What is the final price], in euros with two decimals?",
        answer,
        [
            f"The first reduction leaves {100 - off}% of {list_price}: {list_price} * 0.{100 - off} = {first:.2f}. The second applies to that amount, not to the list price: {first:.2f} * {(100 - extra) / 100:g} = {answer}.",
            f"The two reductions multiply. (1 - {off / 100:g}) * (1 - {extra / 100:g}) = {(100 - off) / 100:g} * {(100 - extra) / 100:g} = {(100 - off) * (100 - extra) / 10000:g}. So the customer pays {(100 - off) * (100 - extra) / 100:g}% of {list_price}, which is {answer} euros.",
            f"{off}% of {list_price} is {list_price * off / 100:.2f}, hence {list_price} - {list_price * off / 100:.2f} = {first:.2f} on the tag. {extra}% of {first:.2f} is {first * extra / 100:.2f}. Subtracting: {first:.2f} - {first * extra / 100:.2f} = {answer}. (Adding the percentages to {off + extra}% would be the usual mistake here.)",
        ],
        [
            (f"{off}% and {extra}% together are {off + extra}%. {off + extra}% of {list_price} is {list_price * (off + extra) / 100:.2f}, so {list_price} - {list_price * (off + extra) / 100:.2f} = {list_price * (100 - off - extra) / 100:.2f}.", f"{list_price * (100 - off - extra) / 100:.2f}"),
            (f"[The tag says|Reduced price]: {first:.2f}. Then {extra} comes off at the till, {first:.2f} - {extra} = {first - extra:.2f}.", f"{first - extra:.2f}"),
            (f"I need {off}% of {list_price}, that's {list_price * off / 100:.2f}. And a further {extra}% of it makes {list_price * off / 100 * (100 - extra) / 100:.2f} euros to pay.", f"{list_price * off / 100 * (100 - extra) / 100:.2f}"),
        ],
    )


def ages(rng):
    son, k = rng.randint(6, 14), rng.choice((3, 4))
    mother = son * k
    later = mother - 2 * son
    who, child = rng.sample(NAMES, 2)
    return problem(
        f"{who} is {k} times as old as {child}. {who} is {mother} years old. In how many years will {who} be exactly twice as old as {child}?",
        later,
        [
            f"{child} is {mother} / {k} = {son}. After t years the ages are {mother} + t and {son} + t. The condition is {mother} + t = 2({son} + t) = {2 * son} + 2t, so t = {mother} - {2 * son} = {later}. [Then they are|That makes them] {mother + later} and {son + later}, and indeed {mother + later} = 2 * {son + later}.",
            f"The difference in age never changes. It's {mother} - {son} = {mother - son}. When one is twice as old as the other, the younger one's age equals the difference, so {child} has to be {mother - son}. {child} is {son} now, which means waiting {mother - son} - {son} = {later} years.",
            f"A little table helps. Now: {mother} and {son}, ratio {k}. The ratio falls as time passes. In {later // 2} years: {mother + later // 2} and {son + later // 2}, still more than double. In {later}: {mother + later} and {son + later}, and that's exactly double.",
        ],
        [
            (f"{child} is {son}. Twice {son} is {2 * son}, and {who} is already {mother}, so that was {mother - 2 * son} years ago... the question says in how many years, so half of it, {max(1, later // 2)}.", max(1, later // 2)),
            (f"Twice as old means {mother} = 2 * {mother // 2}, so {child} must reach {mother // 2}. From {son} to {mother // 2} is {mother // 2 - son} years.", mother // 2 - son),
            (f"The age difference is {mother} - {son} = {mother - son}. That is the time until [they are in the ratio 2 to 1|one is double the other], namely {mother - son} years.", mother - son),
        ],
    )


def cyclists(rng):
    v, w, t = rng.choice(((18, 22, 3), (16, 20, 4), (21, 24, 2), (14, 19, 5), (24, 28, 3)))
    gap, meet = (v + w) * t, v * t
    one, two = rng.sample(("Aldhurst", "Brenfield", "Corvale", "Dunmere", "Estwick"), 2)
    return problem(
        [{"role": "system", "content": "Reason inside <think></think>, then give only the number inside <answer></answer>."},
         {"role": "user", "content": f"{one} and {two} are {gap} km apart. At nine o'clock one cyclist leaves {one} for {two} at {v} km/h, and another leaves {two} for {one} at {w} km/h. How many km from {one} do they meet?"}],
        meet,
        [
            f"They close the gap at {v} + {w} = {v + w} km/h, so they meet after {gap} / {v + w} = {t} hours. In {t} hours the one from {one} rides {v} * {t} = {meet} km.",
            f"Since both ride for the same time, the distances are in the ratio of the speeds, {v} : {w}. The share of the first is {v}/{v + w} of {gap}, and {gap} / {v + w} = {t}, so {v} * {t} = {meet} km from {one}. From {two} it would be {gap - meet}, and the two add up to {gap}.",
            f"Positions measured from {one}: the first is at {v}t, the second at {gap} - {w}t. Equal when {v}t + {w}t = {gap}, t = {t}. Position {v} * {t} = {meet}. The clock time, {9 + t}:00, isn't asked for.",
        ],
        [
            (f"Combined speed {v + w}, distance {gap}, time {t} h. The second cyclist covers {w} * {t} = {w * t} km in that time, so they meet at km {w * t}.", w * t),
            (f"They start together and ride towards each other, so they meet in the middle: {gap} / 2 = {gap / 2:g} km.", f"{gap / 2:g}"),
            (f"The difference in speed is {w - v} km/h. {gap} / {w - v} = {gap / (w - v):.3g}... that's a lot of hours. Times {v} would be far beyond {two}, so I must cap it at the distance, {gap}.", gap),
        ],
    )


def average(rng):
    k, mean = rng.randint(4, 8), rng.randint(68, 81)
    target = mean + rng.randint(2, 3)
    need, who = target * (k + 1) - mean * k, rng.choice(NAMES)
    return problem(
        f"After {k} tests {who} has an average of {mean} points. Which score on the next test lifts the average to {target}?",
        need,
        [
            f"{k} tests at {mean} on average are {k * mean} points in all. For an average of {target} over {k + 1} tests the sum has to be {target * (k + 1)}. The missing part is {target * (k + 1)} - {k * mean} = {need}.",
            f"Each of the earlier {k} tests is {target - mean} short of the new average, {k * (target - mean)} points together. The next test has to supply {target} itself plus these {k * (target - mean)}: {target} + {k * (target - mean)} = {need}.",
            f"Let s be the score. ({k} * {mean} + s) / {k + 1} = {target}. So {k * mean} + s = {target * (k + 1)} and s = {need}. {'That is above 100, so a bonus task is needed, but the arithmetic stands.' if need > 100 else 'It is below 100, so it can be reached.'}",
        ],
        [
            (f"To go from {mean} to {target} {who} needs {target - mean} more, so {target} + {target - mean} = {2 * target - mean} on the next one.", 2 * target - mean),
            (f"({mean} + s) / 2 = {target}, and therefore s = {2 * target} - {mean} = {2 * target - mean}. The number of tests doesn't matter for an average.", 2 * target - mean),
            (f"The sum so far is {k} * {mean} = {k * mean}; the wanted sum is {k} * {target} = {k * target}. Difference: {k * (target - mean)}.", k * (target - mean)),
        ],
    )


def product(rng):
    x, y, z = rng.randint(213, 989), rng.randint(37, 96), rng.randint(1204, 8897)
    answer, tens, ones = x * y - z, y // 10 * 10, y % 10
    return problem(
        f"Compute {x} * {y} - {z}. [Give only the number as your answer.|No calculator; show the steps in your reasoning.]",
        answer,
        [
            f"Split {y} into {tens} and {ones}. {x} * {tens} = {x * tens} and {x} * {ones} = {x * ones}. The sum is {x * y}. Subtract: {x * y} - {z} = {answer}.",
            f"Round the first factor: {x} is {(x + 50) // 100 * 100} {'minus' if (x + 50) // 100 * 100 >= x else 'plus'} {abs((x + 50) // 100 * 100 - x)}. {(x + 50) // 100 * 100} * {y} = {(x + 50) // 100 * 100 * y}, and the correction is {abs((x + 50) // 100 * 100 - x)} * {y} = {abs((x + 50) // 100 * 100 - x) * y}, which brings me to {x * y}. Now take off {z // 1000 * 1000} to get {x * y - z // 1000 * 1000}, and the remaining {z % 1000}, so {answer}.",
            f"By the digits of {x}: {x // 100 * 100} * {y} = {x // 100 * 100 * y}; {x // 10 % 10 * 10} * {y} = {x // 10 % 10 * 10 * y}; {x % 10} * {y} = {x % 10 * y}. Adding up, {x * y}. Minus {z} leaves {answer}. Last digits: {x % 10} * {y % 10} ends in {x * y % 10}, minus {z % 10} ends in {answer % 10}. Good.",
        ],
        [
            (f"{x} * {tens} = {x * tens}. {x} * {ones} = {x * ones - 10} or so. Together {x * y - 10}. Then {x * y - 10} - {z} = {answer - 10}.", answer - 10),
            (f"{x} * {y}: {x} * {y // 10} = {x * (y // 10)}, {x} * {ones} = {x * ones}, sum {x * (y // 10) + x * ones}. Minus {z}: {x * (y // 10) + x * ones - z}.", x * (y // 10) + x * ones - z),
            (f"The product is {x * y}. Subtracting {z} with a borrow in the hundreds: {x * y} - {z} = {answer + 100}.", answer + 100),
        ],
    )


ALL = (bakery, pumps, tickets, discount, ages, cyclists, average, product)
