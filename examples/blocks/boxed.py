"""Which algebra and geometry problems are asked, to be answered in \\boxed{}, and how are they solved?"""

from .core import Attempt, Task

FINALS = (r"\boxed{{{a}}}", r"The result is $\boxed{{{a}}}$.", r"$$\boxed{{{a}}}$$", r"Therefore, \boxed{{{a}}}", r"\boxed{{{a}}}")
SYSTEM = r"You are a careful mathematician. Think in <think></think> and put the final result in \boxed{} inside <answer></answer>."


def problem(prompt, answer, right, wrong, level):
    """A problem for \\boxed{}. The prompt is a chat for the harder levels, text for the others."""
    if level >= 3:
        prompt = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
    else:
        prompt += r" Put your final answer in \boxed{}."
    right = [Attempt(text, str(answer)) for text in right]
    wrong = [Attempt(text, str(value)) for text, value in wrong if str(value) != str(answer)]
    return Task("boxed", "math", prompt, str(answer), right, wrong, FINALS, {"level": level})


def quadratic(rng):
    p, q = sorted(rng.sample(range(2, 14), 2))
    s, m = p + q, p * q
    value = s * s - 2 * m
    return problem(
        rf"Let $a$ and $b$ be the roots of $x^2 - {s}x + {m} = 0$. Find $a^2 + b^2$.", value,
        [
            rf"By Vieta, $a + b = {s}$ and $ab = {m}$. I don't need the roots themselves: $a^2 + b^2 = (a+b)^2 - 2ab = {s * s} - {2 * m} = {value}$.",
            rf"Factor it. I need two numbers with product {m} and sum {s}: {p} and {q}. So the roots are {p} and {q}, and ${p}^2 + {q}^2 = {p * p} + {q * q} = {value}$.",
            rf"Each root satisfies $x^2 = {s}x - {m}$. Adding this for both roots: $a^2 + b^2 = {s}(a+b) - 2 \cdot {m} = {s} \cdot {s} - {2 * m} = {value}$. [A neat way, since|Nice:] only the sum of the roots enters.",
            rf"With the quadratic formula: the discriminant is ${s}^2 - 4 \cdot {m} = {s * s - 4 * m} = {q - p}^2$. The roots are $({s} \pm {q - p})/2$, i.e. {q} and {p}. Squares: {q * q} and {p * p}. Sum {value}.",
        ],
        [
            (rf"$a + b = {s}$, so $a^2 + b^2 = (a+b)^2 = {s * s}$.", s * s),
            (rf"Vieta gives $a + b = -{s}$ and $ab = {m}$. Then $a^2 + b^2 = (a+b)^2 - ab = {s * s} - {m} = {s * s - m}$.", s * s - m),
            (rf"The sum of the roots is {s} and the product {m}. $a^2 + b^2 = {s * s} + 2 \cdot {m} = {s * s + 2 * m}$, using the binomial formula.", s * s + 2 * m),
        ], 2)


def right_triangle(rng):
    a, b, c = rng.choice(((5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29), (9, 40, 41), (12, 35, 37)))
    k = rng.choice((1, 2, 3))
    a, b, c = a * k, b * k, c * k
    r = (a + b - c) // 2
    return problem(
        rf"A right triangle has legs {a} and {b}. What is the radius of its inscribed circle?", r,
        [
            rf"The hypotenuse is $\sqrt{{{a}^2 + {b}^2}} = \sqrt{{{a * a + b * b}}} = {c}$. For a right triangle $r = (a + b - c)/2 = ({a} + {b} - {c})/2 = {r}$.",
            rf"Area over semiperimeter. The area is ${a} \cdot {b} / 2 = {a * b // 2}$. The third side: ${a * a} + {b * b} = {a * a + b * b} = {c}^2$. The semiperimeter is $({a}+{b}+{c})/2 = {(a + b + c) // 2}$, hence $r = {a * b // 2}/{(a + b + c) // 2} = {r}$.",
            rf"Tangent lengths: from the right angle they are $r$ each, so the others are ${a} - r$ and ${b} - r$. These two make up the hypotenuse {c} (a Pythagorean triple). So ${a + b} - 2r = {c}$, $r = {r}$.",
            rf"Put the right angle at the origin with the legs on the axes. The incentre is $(r, r)$, and its distance to the line $x/{a} + y/{b} = 1$, i.e. ${b}x + {a}y = {a * b}$, must be $r$ too. That distance is $({a * b} - {a + b}r)/{c}$, so ${a * b} = {a + b + c}r$ and $r = {r}$.",
        ],
        [
            (rf"The hypotenuse is {c}. The circle inside has its centre at the middle of the hypotenuse, so the radius is ${c}/2 = {c / 2:g}$.", f"{c / 2:g}"),
            (rf"The area is ${a} \cdot {b} / 2 = {a * b // 2}$ and the perimeter is {a + b + c}. $r$ is area over perimeter, ${a * b // 2}/{a + b + c} = {r / 2:g}$.", f"{r / 2:g}"),
            (rf"$r = a + b - c$ with $c = {c}$, so $r = {a} + {b} - {c} = {2 * r}$.", 2 * r),
        ], 3)


def linear_system(rng):
    x, y = rng.randint(2, 9), rng.randint(-6, -1)
    a, b, d, e = rng.choice(((3, 2, 5, -4), (2, 5, 7, -3), (4, 3, 3, -2), (5, 2, 2, -3)))
    c, f = a * x + b * y, d * x + e * y
    det = a * e - b * d
    return problem(
        rf"Solve the system ${a}x + {b}y = {c}$, ${d}x - {-e}y = {f}$ and give $x + y$.", x + y,
        [
            rf"Eliminate $y$: multiply the first by {-e} and the second by {b}. That gives ${-a * e}x + {-b * e}y = {-c * e}$ and ${b * d}x - {-b * e}y = {b * f}$. The sum is ${b * d - a * e}x = {b * f - c * e}$, so $x = {x}$. Back in the first, ${b}y = {c} - {a * x} = {c - a * x}$ and $y = {y}$. So $x + y = {x + y}$.",
            rf"Cramer's rule. The determinant is ${a} \cdot ({e}) - {b} \cdot {d} = {det}$. $D_x = {c} \cdot ({e}) - {b} \cdot ({f}) = {c * e - b * f}$, $D_y = {a} \cdot ({f}) - {d} \cdot ({c}) = {a * f - d * c}$. Then $x = {x}$, $y = {y}$, and the sum is ${x + y}$.",
            rf"From the first equation $x = ({c} - {b}y)/{a}$. Substituting in the second and clearing the denominator, ${d}({c} - {b}y) - {-e * a}y = {a * f}$, i.e. $-{d * b - e * a}y = {a * f - d * c}$, so $y = {y}$ and $x = {x}$. They asked for the sum: ${x + y}$.",
        ],
        [
            (rf"Adding both equations, ${a + d}x + {b + e}y = {c + f}$. If I [treat|take] the coefficients as equal, $x + y = {c + f}/{a + d} \approx {round((c + f) / (a + d))}$.", round((c + f) / (a + d))),
            (rf"Elimination gives $x = {x}$. Then ${b}y = {a * x} - {c}$, so $y = {-y}$ and $x + y = {x - y}$.", x - y),
            (rf"I find $x = {x}$ and $y = {y}$: ${a} \cdot {x} + {b} \cdot ({y}) = {c}$ holds. The requested value is the product, ${x * y}$.", x * y),
        ], 1)


def sector(rng):
    r, deg, num, den = rng.choice(((6, 60, 6, 1), (9, 40, 9, 1), (12, 30, 12, 1), (10, 72, 20, 1), (6, 120, 12, 1), (8, 45, 8, 1), (12, 75, 30, 1)))
    arc = r * deg * 2 // 360 if r * deg * 2 % 360 == 0 else None
    arc_text = rf"{arc}\pi" if arc else rf"\frac{{{r * deg}}}{{180}}\pi"
    return problem(
        rf"A circular sector has radius {r} and a central angle of {deg} degrees. Find its area. Leave $\pi$ in the answer.", rf"{num}\pi",
        [
            rf"The sector is ${deg}/360$ of the disc. The disc has area $\pi \cdot {r}^2 = {r * r}\pi$, and ${r * r} \cdot {deg} / 360 = {num}$. So the area is ${num}\pi$.",
            rf"In radians the angle is ${deg}\pi/180$. The area is $\frac12 r^2\theta = \frac12 \cdot {r * r} \cdot \frac{{{deg}\pi}}{{180}} = {num}\pi$.",
            rf"Via the arc: its length is $2\pi \cdot {r} \cdot {deg}/360 = {arc_text}$, and a sector's area is half of radius times arc, just like a triangle's. $\frac12 \cdot {r} \cdot {arc_text} = {num}\pi$.",
        ],
        [
            (rf"The arc length is $2\pi r \cdot {deg}/360 = {arc_text}$, [so that is the answer|which is what we need].", arc_text),
            (rf"$A = \pi r^2 \cdot {deg}/180 = {r * r}\pi \cdot {deg}/180 = {2 * num}\pi$.", rf"{2 * num}\pi"),
            (rf"A full circle has area ${r * r}\pi$. Numerically the part is about ${num * 3.14159:.2f}$.", f"{num * 3.14159:.2f}"),
        ], 2)


def remainder(rng):
    base, mod, cycle = rng.choice(((3, 7, 6), (2, 9, 6), (5, 13, 4), (7, 10, 4), (4, 11, 5), (2, 11, 10)))
    power = rng.randint(61, 240)
    r = pow(base, power, mod)
    row = ", ".join(str(pow(base, k, mod)) for k in range(1, cycle + 1))
    left = power % cycle
    short = f"Since {power} = {cycle} * {power // cycle} + {left},"
    return problem(
        rf"What is the remainder when ${base}^{{{power}}}$ is divided by {mod}?", r,
        [
            rf"The powers of {base} modulo {mod} are {row}, and then it repeats with period {cycle}. {short} the remainder is the same as for ${base}^{{{left}}}$, which is {r}.",
            rf"I look for the smallest exponent giving 1. ${base}^{{{cycle}}} \equiv 1 \pmod{{{mod}}}$. {short} ${base}^{{{power}}} = ({base}^{{{cycle}}})^{{{power // cycle}}} \cdot {base}^{{{left}}} \equiv {base}^{{{left}}} \equiv {r}$.",
            rf"Repeated squaring: modulo {mod}, ${base}^2 \to {pow(base, 2, mod)}$, ${base}^4 \to {pow(base, 4, mod)}$, ${base}^8 \to {pow(base, 8, mod)}$, ${base}^{{16}} \to {pow(base, 16, mod)}$, ${base}^{{32}} \to {pow(base, 32, mod)}$, ${base}^{{64}} \to {pow(base, 64, mod)}$, ${base}^{{128}} \to {pow(base, 128, mod)}$. In binary {power} is {power:b}. Multiplying those with a one in their place and reducing each time leaves {r}.",
        ],
        [
            (rf"By Fermat the exponent can be reduced modulo {mod}: {power} mod {mod} is {power % mod}, and ${base}^{{{power % mod}}}$ leaves {pow(base, power % mod, mod)}.", pow(base, power % mod, mod)),
            (rf"The cycle is {row}, {cycle} long. {power} divided by {cycle} leaves {left}, and I start counting at exponent 0, so the entry after it, {pow(base, left + 1, mod)}.", pow(base, left + 1, mod)),
            (rf"{base} * {power} = {base * power}, and {base * power} mod {mod} = {base * power % mod}.", base * power % mod),
        ], 3)


def arrangements(rng):
    word, letters, total = rng.choice((("BANANA", "three A, two N", 60), ("LEVEL", "two L, two E", 30), ("COFFEE", "two F, two E", 180), ("PEPPER", "three P, two E", 60), ("TOMATO", "two T, two O", 180), ("CIRCUIT", "two C, two I", 1260)))
    n = len(word)
    full = {5: 120, 6: 720, 7: 5040}[n]
    div = full // total
    return problem(
        rf"In how many distinct ways can the letters of the word {word} be arranged?", total,
        [
            rf"{word} has {n} letters with {letters}. If all were different there would be ${n}! = {full}$ orders. Swapping equal letters changes nothing, so divide by {div}: ${full}/{div} = {total}$.",
            rf"Place the repeated letters first and fill up. Multinomial coefficient: $\frac{{{n}!}}{{{div}}}$ where {div} is the product of the factorials of the multiplicities ({letters}). It comes to {total}.",
            rf"Let me tag the equal letters with colours so that all {n} are different: {full} arrangements. Each uncoloured arrangement [is counted|shows up] {div} times, once for each way to permute colours among equal letters ({letters}). So {full} / {div} = {total}.",
        ],
        [
            (rf"{n} letters, so ${n}! = {full}$ arrangements.", full),
            (rf"There are {letters}. I divide ${n}! = {full}$ by 2 because letters repeat: {full // 2}.", full // 2),
            (rf"Only the different letters count. {word} has {len(set(word))} of them, and {len(set(word))}! is the number of orders.", {3: 6, 4: 24, 5: 120}[len(set(word))]),
        ], 2)


ALL = (quadratic, right_triangle, linear_system, sector, remainder, arrangements)
