"""What is a task made of, and how does one text become many phrasings of the same thing?"""

import re
from dataclasses import dataclass, field

CHOICE = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")


def spin(text, rng):
    """Takes one of the phrasings of each `[this|that]`, innermost first. Brackets without a bar stay."""
    while CHOICE.search(text):
        text = CHOICE.sub(lambda found: rng.choice(found[1].split("|")), text)
    return text


@dataclass
class Attempt:
    """One way a policy goes at a task: the thought, and the answer it ends with."""

    thought: str
    answer: str
    case: str = ""


@dataclass
class Task:
    """One prompt with the attempts at it, good and bad."""

    kind: str
    source: str
    prompt: object
    reference: str | None
    right: list
    wrong: list
    finals: tuple = ("{a}",)
    extra: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Voice:
    """What a policy says around the reasoning itself."""

    openings: tuple
    turns: tuple
    doubts: tuple
    asides: tuple
    checks: tuple
    closings: tuple


MATH = Voice(
    openings=(
        "[Okay|Alright|Right], let me [read this carefully|work through this|take this one step at a time].",
        "[Let me|I'll] [write down|list] what is given before [I compute anything|doing any arithmetic].",
        "The question [only asks for one number|wants a single value], so I [need|have] to be careful about what exactly is counted.",
        "First I [need|want] to understand the [setup|situation].",
        "This looks like a [routine|standard] problem, but there [is|may be] a [small trap|detail that is easy to miss] in it.",
        "Hmm, [let me think|let's see]. [I'd like|I want] to set this up properly rather than guess.",
        "[What do we know|What is given]? [Let me restate it in my own words.|I'll restate the key facts.]",
    ),
    turns=(
        "Let me [verify|confirm] this [another way|with a second method].",
        "Wait, [let me double-check|I should double-check] by [approaching it differently|a different route].",
        "[To be safe|Just to be sure], [here is a second derivation|I'll redo it in a different order].",
        "Hold on. [Is that right|Did I read it correctly]? [Trying it from the other side|Going at it again from scratch]:",
    ),
    doubts=(
        "No, [wait|hold on]. [That ignores part of the statement|That skips a condition], so [I drop it|it can't be right].",
        "Hmm, [that number looks off|this doesn't feel right]. [Something was lost on the way|I mixed something up]; once more, [slowly|from the beginning].",
        "But [this contradicts|that doesn't fit] what is given, [I see my error now|so there's a slip in it]. Again:",
        "Actually, no. [The reasoning above was too quick|I rushed this]. [Better:|Let me redo it.]",
    ),
    asides=(
        "[It would be tempting|One could be tempted] to [just combine the numbers in the order they appear|grab the first operation that comes to mind], but the given numbers play different roles, so I [name them first|keep them apart].",
        "Before computing I [like|want] a rough idea of the size: [not a handful, and not millions either|something of the same order as the numbers in the statement, not a thousand times more].",
        "I'll keep the intermediate values [exact|unrounded], since rounding [early|halfway] is how a result ends up [slightly off|off by a little].",
        "What is *not* asked matters as well. [Several quantities turn up on the way|There are intermediate results], and only [the last of them|one of them] is the thing to report.",
        "[If I changed one of the given numbers a bit|Making one given number slightly larger], the result should [move in the obvious direction|react in the direction common sense expects], and with this method it does.",
        "[There's no hidden condition that I can see|I don't see any hidden condition]; all numbers in the text are used [exactly once|in one place], which is usually a good sign.",
        "This is the step where [people slip|mistakes happen], so I do it [slowly|digit by digit].",
        "In other words, the structure is [simple|not complicated]: something known, a relation, and [a single unknown|one quantity to be found].",
    ),
    checks=(
        "The size of the result [seems|looks] [reasonable|plausible] [given the numbers in the question|for these quantities].",
        "[A quick sanity check|Sanity check]: the units [work out|are consistent], and the value is [positive|of the expected magnitude].",
        "[Plugging the value back in|Substituting back] [agrees with|reproduces] [the statement|what was given].",
        "I also [re-read|went back over] the question to [make sure|check that] nothing was [left out|missed]: [it all fits|everything has been used].",
        "An estimate with rounded numbers [lands close to|is near] this, so [no slip of a factor of ten|I haven't misplaced a digit].",
    ),
    closings=(
        "[So that's the answer|That settles it|I'm fairly confident in this].",
        "[Now I can write|I'll give] the final answer.",
        "Good, [I'm done|that is everything that was asked].",
        "No further steps are needed.",
        "So the result stands.",
    ),
)

FACT = Voice(
    openings=(
        "[The user asks|They are asking] a [short|factual] question, so the answer should be [brief|to the point].",
        "Let me recall what I know about this.",
        "[Okay|Right], this is general knowledge; I [should|need to] be careful not to mix up [similar names|related facts].",
        "I [think|believe] I know this one, but [let me go through the candidates|let me make sure].",
    ),
    turns=("[Also|In addition],", "[Let me cross-check.|Cross-checking:]", "Another thing I remember:"),
    doubts=(
        "[Hmm, no|No, wait]. [That's a common misconception|I'm mixing things up], let me think again.",
        "[But that doesn't hold up|On reflection that's wrong], [and here is why|because I know better]:",
        "Is that so? [I doubt it|Not really].",
    ),
    asides=(
        "[Questions like this|Such questions] often [have a trap|play with two things that sound alike], so the exact wording [matters|deserves a second look].",
        "I [should not|shouldn't] add more than was asked; a long explanation [would only bury the answer|isn't wanted here].",
        "[How would I explain it to somebody in one line|If a friend asked me in passing]? [That's about the level needed|Probably in exactly these words].",
        "[There are edge cases one could argue about|A specialist might add a footnote], but that doesn't change [what to say|the reply] here.",
        "My first [instinct|impulse] and the longer line of thought [lead to the same place|agree], which is reassuring.",
    ),
    checks=(
        "That is consistent with [everything else I recall|the rest].",
        "I [can't|cannot] look it up here, but I'm [quite|reasonably] sure.",
        "[None of the alternatives fit as well.|The alternatives don't fit the wording of the question.]",
    ),
    closings=("[So I'll answer that|I'll go with this].", "That is [enough|all that is needed] for the answer.", "Keep it short."),
)

WRITE = Voice(
    openings=(
        "[The user wants|I'm asked for] a [short|self-contained] piece of writing, so [tone and length matter|I should settle tone and length first].",
        "Let me [plan|sketch] this before writing.",
        "[Okay|Right]: who reads it, what do they [need|have] to know, and what can be left out?",
        "I'll [read the request once more|go over the request again] and note the constraints.",
    ),
    turns=("[One more consideration|Another point]:", "[Rereading my draft|Looking at the draft again],", "Hmm,"),
    doubts=(
        "[Hmm, that would miss the point|No, that isn't what was asked], so [I start over|another approach].",
        "[Reading it again|On second thoughts], [that is too careless|this won't do].",
        "But would [the reader|anyone] be served by that? [Hardly|I don't think so].",
    ),
    asides=(
        "[Every sentence should earn its place|No filler]: [if it can be dropped without loss|what nobody would miss], it goes.",
        "[Names, dates and figures|The figures] are what readers [check first|notice first], so I [copy|carry over] them [exactly|without rounding].",
        "[I was about to begin with a flourish|A fancy first line came to mind], but [plain words|a plain opening] will [serve better|do more] here.",
        "Length: [a few lines at most|shorter than feels natural]. [I can always cut|It's easier to cut now than later].",
        "The order of the parts [isn't fixed|is up to me], but the most useful piece of information [should come early|belongs near the front].",
    ),
    checks=(
        "[The constraints are met|It keeps to the constraints], and nothing [in it|there] is made up.",
        "I [checked|went over] each clause [against the request|against the source] once more.",
        "It reads [naturally|smoothly] when [said aloud|read aloud], [so I'd keep it|which is a good sign].",
    ),
    closings=("[I'll write it out now|Time to write it down].", "That [should do|works].", "[Final version below|Here goes]."),
)

PLAN = Voice(
    openings=(
        "[The user needs|This request needs] [exactly one|a single] [tool|function] call.",
        "Let me see which of the [available|listed] tools fits.",
        "[Okay|So], I [can't|shouldn't] answer this from memory; [a tool has to provide the data|I need to call something].",
        "[Checking the tool list first|First, the tool list].",
    ),
    turns=("[Also|And] about the arguments:", "One more detail:"),
    doubts=(
        "[Wait, no|Hmm, no]. [That isn't what they asked for|That would be the wrong call].",
        "[But that's a stretch|That doesn't match the schema], so [let me look again|again].",
    ),
    asides=(
        "I [must not|should not] fill in values that the user [didn't give|never mentioned]; optional ones can stay out.",
        "[The format is strict|They are strict about the format]: one JSON object with a name and arguments, no text around it inside the tags.",
        "[Answering directly|Replying in prose] would mean inventing data, which is worse than [a short delay|waiting for the tool].",
        "[Names of tools and keys|Keys] have to be spelled as in the list, [lower case with underscores|including the underscores].",
    ),
    checks=(
        "All required arguments are [there|present].",
        "The [types|argument types] match the schema.",
        "[No clarification is needed|I don't need to ask back], the request is [complete|specific enough].",
    ),
    closings=("[Calling it now|I'll make the call].", "That's the call.", "Emit the call and wait for the result."),
)

CODE = Voice(
    openings=(
        "[A small function|One function], so [a few lines should do|this can stay short].",
        "Let me [think about the edge cases|look at the edge cases] [before I write any code|first].",
        "[Okay|Right], what goes in and what comes out? [The signature is given|The name and the arguments are fixed].",
        "First the idea, then the code.",
    ),
    turns=("[An alternative|Another way to write it]:", "[For comparison|As a cross-check], a different idea:"),
    doubts=(
        "Hmm, [that breaks|this breaks] on [one of the simple cases|the smallest input]. [Again|Next try].",
        "[No|Wait], [I misread the task|that's not what the function should do].",
        "But [when I trace it by hand|walking through an example], the result [is not what is wanted|comes out wrong].",
    ),
    asides=(
        "I [want to|should] keep the name [exactly as given|unchanged], or the tests [won't find it|fail at import].",
        "[Readability beats cleverness here|No need to be clever], [inputs will be small|speed is not the point].",
        "[The statement says nothing about invalid input|Invalid input isn't mentioned], so I don't [check for it|add checks].",
        "[Off-by-one errors|Index errors] are the [usual suspects|classic trap] in this kind of loop, so no indices [where I can avoid them|unless needed].",
    ),
    checks=(
        "[Tracing the first example by hand|Going through a small example in my head] gives what it should.",
        "The empty case [works|is covered] without a special branch[, too|].",
        "[No imports beyond the standard library|It needs no third-party package], and the types [fit|are right].",
    ),
    closings=("[Writing it down|Here is the code].", "[That's it|Done], one code block.", "Good enough to submit."),
)

CARE = Voice(
    openings=(
        "[What is really being asked|What does the person want], and [who else is affected by the reply|who could be hurt by it]?",
        "Let me [think about|consider] this request before [replying|I answer].",
        "[Hmm|Okay], there's personal data [around|involved], so [some care is in order|I'd better be careful].",
        "I want to be helpful without [doing harm|harming a third person].",
    ),
    turns=("[Besides|Moreover],", "[Seen from the other side|From the other person's point of view]:"),
    doubts=(
        "[Hmm, no|No, wait]. [That would hurt somebody who has no say in it|I'd regret that].",
        "But [is that my decision to make|would I want that for myself]? [No|Hardly].",
    ),
    asides=(
        "[Most people ask such things|People mostly ask this] for harmless reasons, and [a friendly tone|friendliness] costs nothing.",
        "[Once a detail is out|Once something is published], it can't be taken back.",
        "A reply that [only says no|is a bare no] helps nobody, so [an alternative belongs in it|I look for something I can offer].",
        "[I have no means to verify|I can't verify] who is [asking|on the other end].",
    ),
    checks=(
        "[Nothing in there identifies anyone|No one is identified by it].",
        "[It answers what can be answered|The legitimate part of the wish is met].",
        "[The tone is calm|It sounds polite], not preachy.",
    ),
    closings=("[I'll reply like that|That is how I'll put it].", "[Short and clear|Brief and friendly], then.", "So this is my reply."),
)

CHINESE = Voice(
    openings=("[好的|嗯]，先[看清楚|弄明白]题目[在问什么|的要求]。", "[我先|让我][整理一下已知条件|把条件列出来]。", "这道题[不难|并不复杂]，但[要小心|容易在细节上出错]。"),
    turns=("[换一种方法|再用另一种思路][验算|核对]一遍。", "等一下，[我再确认|让我重新检查]一下。"),
    doubts=("[不对|等等]，[这样想忽略了条件|这里理解错了]，[重新来|再想一遍]。", "但是[这个结果说不通|这样并不合适]，换个[思路|角度]。"),
    asides=("[做之前|动笔之前]先估计一下大概的[范围|结果]，免得[算完|写完]才发现[离谱|跑题]。", "题目没有问的[内容|部分]就不要[多写|展开]，[抓住重点|简单明了]最要紧。", "每一步都[写清楚|说明白]，[出了错|万一有错]也容易找到。"),
    checks=("[对照题目|回到题目]检查一遍，[没有矛盾|没有遗漏]。", "题目里的[条件|要求]都[用到|满足]了。"),
    closings=("[所以答案可以确定了|因此可以作答]。", "[思路清楚了|没有遗漏]，直接[写出结果|作答]。"),
)

# How a thought begins that first says once more what is wanted.
RESTATED = (
    'The [question|task|request] is: "{ask}"', 'So, in full: "{ask}" [Let me take that apart.|Good.]', '"{ask}" [That is what has to be answered.|Nothing more than that.]',
)
RESTATED_CHINESE = ("题目是这样的：“{ask}”", "“{ask}”[先读一遍|再读一遍]。")

VOICES = {
    "word problem": MATH, "boxed": MATH, "factual": FACT, "summary": WRITE, "translation": WRITE, "e-mail": WRITE,
    "python": CODE, "tool call": PLAN, "chinese": CHINESE, "safety": CARE,
}
