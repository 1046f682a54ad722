"""Which short factual questions are asked, what does a policy recall, and where does it go wrong?"""

from .core import Attempt, Task

FINALS = ("{a}", "{a}", "{a}.", "It is {a}.", "The answer is {a}.")

# question, answer, recollections in favour of it, (wrong answer, what leads there)
QUESTIONS = (
    ("Which planet of the solar system has the shortest day?", "Jupiter",
     ("A 'day' here is one turn about the planet's own axis. The gas giants spin fastest: Jupiter needs a little under ten hours, Saturn somewhat more than ten and a half.",
      "Earth and Mars take about 24 hours, Uranus about 17 and Neptune about 16. Mercury and Venus are extremely slow, weeks to months.",
      "[Jupiter's fast rotation also shows in its shape|You can even see it in a telescope]: it is visibly flattened at the poles, and its clouds are drawn out into bands.",
      "[One might think of|It's tempting to name] Mercury because its *year* is the shortest, 88 days, but the question is about the day."),
     (("Mercury", "Mercury is the closest to the sun and goes round it in only 88 days, which is the shortest of all. The smaller the orbit the shorter the day, so Mercury it is."),
      ("Saturn", "The gas giants rotate quickly. Saturn with its rings is the lightest for its size, and something light can spin faster; ten hours and a half if I remember correctly."))),
    ("What gas do plants take in for photosynthesis?", "Carbon dioxide",
     ("Photosynthesis builds sugar from carbon dioxide and water with the energy of light, and oxygen is released as a by-product.",
      "The gas enters through small pores in the leaves, the stomata.",
      "The overall equation is 6 CO2 + 6 H2O -> C6H12O6 + 6 O2, so the gas on the left-hand side is CO2.",
      "Plants do take in oxygen too, for respiration, [mainly noticeable at night|which goes on day and night], but that isn't what is asked."),
     (("Oxygen", "Plants breathe just like animals. They need oxygen for their cells, and photosynthesis is how they breathe."),
      ("Nitrogen", "Air is mostly nitrogen, and plants need nitrogen to grow; fertiliser is full of it. So they take it in from the air with their leaves."))),
    ("In which country is the source of the river Danube?", "Germany",
     ("The Danube begins where two small rivers, the Breg and the Brigach, join at Donaueschingen in the Black Forest.",
      "From there it runs east through Ulm, Vienna, Bratislava, Budapest and Belgrade and reaches the Black Sea in a delta [shared by Romania and Ukraine|on the Romanian coast].",
      "Austria is where people often picture it because of Vienna and the waltz, yet it [enters Austria|gets there] only after Passau.",
      "The Black Forest lies in the southwest of Germany, in Baden-Württemberg."),
     (("Austria", "The river is tied to Vienna, there is even the famous waltz. Rivers like this come from high mountains, so somewhere in the Austrian Alps."),
      ("Romania", "The Danube delta is in Romania, where the river splits into several arms. That's where it starts."),
      ("Switzerland", "Many great European rivers, the Rhine, the Rhône, the Inn, begin in the Swiss Alps, and I'd place the Danube with them."))),
    ("Who wrote the play 'The Cherry Orchard'?", "Anton Chekhov",
     ("'The Cherry Orchard' is a Russian play from the first years of the twentieth century, about a landowning family that loses its estate.",
      "It was Chekhov's last play; the others in that row are 'The Seagull', 'Uncle Vanya' and 'Three Sisters'.",
      "The Moscow Art Theatre put it on in 1904, the year he died. He insisted it was a comedy, the director staged it as a tragedy.",
      "Gorky and Tolstoy wrote for the stage as well ('The Lower Depths', 'The Power of Darkness'), but not this one."),
     (("Maxim Gorky", "Russian, around 1900, about the fall of the gentry and the rise of the merchants: a social subject, and that's Gorky's ground."),
      ("Henrik Ibsen", "An estate, a family in debt, long silences, it's Scandinavian realism, so Ibsen. He wrote 'A Doll's House' as well."))),
    ("How many bones does an adult human body usually have?", "206",
     ("A newborn has [around|roughly] 270 bones or a few more, many of which fuse while growing up, for instance in the skull and at the base of the spine.",
      "The usual textbook figure for adults is 206: about 80 in the axial skeleton and 126 in the arms, legs and girdles. 80 + 126 = 206.",
      "More than half of them sit in hands and feet: 27 in each hand, 26 in each foot, that's 106.",
      "Small extra bones vary from person to person, hence 'usually' in the question."),
     (("270", "I remember that babies have some 270 bones. Bones don't disappear, so an adult has the same number."),
      ("212", "80 bones in the axial skeleton and 132 in the limbs, 80 + 132 = 212."))),
    ("What is the chemical symbol of tungsten?", "W",
     ("Tungsten's symbol doesn't match its English name. It comes from the German name Wolfram.",
      "Element 74, a metal with the highest melting point of all metals, which is why it was used in light bulbs.",
      "T would be unassigned, Ti is titanium, Tm thulium, Ta tantalum, Te tellurium. None of these is tungsten.",
      "The word tungsten itself is Swedish and means heavy stone."),
     (("Tu", "Usually the symbol is made of the first two letters of the name: helium He, neon Ne, tungsten Tu."),
      ("Tn", "Titanium already took Ti and tantalum Ta. The next free letter in t-u-n-g-s-t-e-n that makes sense is the n, so Tn."))),
    ("Which language has the most native speakers in Brazil?", "Portuguese",
     ("Brazil was a Portuguese colony until 1822, and Portuguese has remained the [official|national] language.",
      "Most neighbours speak Spanish, which leads to the common mistake of thinking Brazil does, too.",
      "There are well over a hundred indigenous languages as well as communities speaking German and Italian dialects in the south, all with far fewer speakers.",
      "In fact the large majority of all Portuguese speakers worldwide live in Brazil."),
     (("Spanish", "Brazil is in South America, where nearly every country speaks Spanish: Argentina, Chile, Peru, Colombia. So Spanish."),
      ("Brazilian", "The people are Brazilians and their language has moved far from what is spoken in Europe, so it counts as its own, Brazilian."))),
    ("At sea level, at how many degrees Celsius does pure water boil?", "100",
     ("The Celsius scale was laid out so that water freezes at 0 and boils at 100 under normal pressure.",
      "At sea level the pressure is about 1013 hectopascal, the normal case. On a high mountain it would boil at a lower temperature, around 90 at 3000 metres.",
      "'Pure' is said because dissolved salt raises the boiling point [a little|slightly].",
      "In Fahrenheit that would be 212, but they ask for Celsius."),
     (("212", "Water boils at 212 degrees. That's the number on most thermometers I have seen."),
      ("90", "Water boils lower than people think since the air pressure pushes on it; 90 degrees is typical."))),
)


def tasks(rng):
    """All the questions, each with attempts of different length and order."""
    made = []
    for at, (question, answer, recollections, wrong) in enumerate(QUESTIONS):
        right = []
        for size in (2, 3, 4, 4, 1, 3):
            right.append(Attempt(" ".join(rng.sample(recollections, size)), answer))
        bad = [Attempt(thought, value) for value, thought in wrong]
        bad += [Attempt(rng.choice(recollections) + " " + thought, value) for value, thought in wrong]
        prompt = question if at % 2 else [{"role": "user", "content": question + " Answer in a few words."}]
        made.append(Task("factual", "qa", prompt, answer, right, bad, FINALS, {"topic": "general knowledge"}))
    return made
