"""Which texts are to be summarised, translated or written, and what do good and poor attempts look like?"""

from .core import Attempt, Task

# paragraph, reference, (thought, good summary), (thought, poor summary)
SUMMARIES = (
    ("For forty years the ferry at Corvale was pulled across the river by a cable and a diesel engine. Last spring the engine failed for the third time in a year, and the town council decided not to repair it. Instead, two students of the technical college fitted an electric winch fed by solar panels on the boathouse roof. The conversion cost 38,000 euros, about what the council had paid for repairs since 2019. In its first summer the ferry carried nine percent more passengers than the year before, which the ferryman puts down to the silence: people now come for the ride itself. In winter the panels supply too little, so from November to February the winch runs on power from the grid.",
     "After repeated engine failures, Corvale's old cable ferry was converted to a solar-powered electric winch by two students for 38,000 euros. Passenger numbers rose by nine percent in the first summer, although the ferry needs grid power in winter.",
     (("The core: old diesel ferry, broke down, replaced by an electric winch with solar power, done by students, 38,000 euros. Results: nine percent more passengers. Limitation: winter needs the grid. The forty years and the ferryman's opinion are background.", "Instead of repairing its diesel cable ferry again, Corvale had two students convert it to a solar-fed electric winch for 38,000 euros. Passengers increased by nine percent, though in winter the ferry draws power from the grid."),
      ("What changed, why, and with what effect? Why: the engine failed three times within a year. What: solar panels and an electric winch. Effect: quieter, more passengers. One caveat must stay in, the winter months, or the summary would be too rosy.", "Corvale's ferry now runs on an electric winch powered mainly by solar panels, after its diesel engine failed three times in a year. The quiet new drive, built by students, drew nine percent more passengers; from November to February it depends on the grid.")),
     (("A summary should be short. The ferry is solar now and people like it.", "The ferry is solar now."),
      ("I should keep the most interesting points: students, solar, silence, and the money the town saves every year, which must be about 38,000 euros.", "Two students saved the town of Corvale 38,000 euros a year by turning the ferry into a solar boat, which works all year round without any power from the grid."),
      ("The safest way not to lose anything is to keep close to the text.", "For forty years the ferry at Corvale was pulled across the river by a cable and a diesel engine. Last spring the engine failed for the third time in a year, and the town council decided not to repair it. Instead, two students fitted an electric winch fed by solar panels."))),
    ("Swifts spend almost their whole lives in the air. They eat, drink and even sleep on the wing, and a young bird that leaves the nest may not land again for two or three years. What they need from us is only a hole: a gap of three by six centimetres under a roof, at least five metres above ground. Such gaps are vanishing because old roofs are being insulated and new ones are built without any. In the district of Dunmere the number of breeding pairs fell from 212 to 74 in fifteen years. Since 2021 builders there have to put one hollow brick for swifts into every new facade above two storeys. The bricks cost about thirty euros each. Last year the first seven of them were occupied, which is few, but biologists say that swifts take several years to accept a new site.",
     "Swifts, which live almost entirely in the air, are losing the gaps under roofs they breed in; in Dunmere, pairs fell from 212 to 74 in fifteen years. Since 2021 new facades there must include a cheap hollow brick, and the first seven have been occupied.",
     (("Main line: swifts lose nesting holes to insulation and new building. Figures: 212 to 74 in Dunmere. Countermeasure: hollow bricks, compulsory since 2021, seven occupied so far. The sleeping in the air is charming but secondary; half a clause at most.", "Because modern and insulated roofs leave no gaps for nests, Dunmere's swifts declined from 212 to 74 pairs in fifteen years. A rule from 2021 requires a hollow brick in new facades; the first seven are in use, and experts expect acceptance to take years."),
      ("Problem, cause, measure, result. The result is modest and the text says so, I should say so as well rather than declare success.", "Swift numbers in Dunmere dropped by about two thirds in fifteen years as nesting gaps disappeared. The district now requires nesting bricks in new facades, but only seven were occupied last year, since swifts are slow to adopt new sites.")),
     (("Swifts are birds that never land. The text is about how they live, so I concentrate on that.", "Swifts are fascinating birds that eat, drink and sleep while flying and may stay in the air for two or three years without landing."),
      ("The numbers first: 212, 74, fifteen years, thirty euros, seven, 2021. Then join them.", "Swift numbers rose from 74 to 212 within fifteen years thanks to bricks that cost thirty euros, and nearly all of them are occupied."))),
    ("When the library of Estwick opened on Sundays for the first time, the staff expected students. Instead families came. They stayed for three hours on average, twice as long as visitors on weekdays, and borrowed less. A survey of 410 visitors showed why: for many of them the library is the only warm, free room in town where children may be loud. The library has reacted. The reading room upstairs stays quiet, while the ground floor has got tables for games, a kitchen corner and a stage. Lending figures, by which the city measures its libraries, went down four percent all the same. The director therefore asks for a new yardstick: hours spent, not books carried out.",
     "Estwick's library, newly open on Sundays, attracts families who stay long but borrow little, mainly because it is a free, warm place for children. It adapted its ground floor to them, and since lending fell by four percent, the director wants to be measured by hours spent.",
     (("Three moves: surprise (families rather than students), explanation (survey), consequence (rebuilt ground floor; demand for another measure). Lending fell by four percent, keep that since it motivates the demand.", "Sunday opening at Estwick's library drew families instead of students: they come for a warm, free space where children can be loud. The library rearranged its ground floor accordingly, but with lending down four percent its director asks that visiting hours be counted instead."),
      ("What would somebody on the city council need from this? That Sundays work, but not in the way the lending statistics measure it.", "On Sundays families fill Estwick's library, staying twice as long as weekday visitors but borrowing less. The director wants the city to judge libraries by time spent rather than by loans, which fell four percent despite the redesign.")),
     (("It is about a library. Libraries matter to communities. I will stress this.", "Libraries are important places for communities, and we should all visit them more often, especially with children, because reading opens up new worlds."),
      ("Key facts: Sundays, students, three hours, 410 visitors, stage.", "The library of Estwick was opened on Sundays for students, who stay three hours on average. A survey of 410 students showed that they like it warm."))),
    ("Concrete made with seawater was long thought to be useless, because salt makes steel bars inside it rust. A group of engineers in the harbour of Brenfield now builds quay walls without steel. They reinforce the concrete with rods of basalt fibre, which do not rust at all. Seawater then even has an advantage: it lets the concrete harden faster, so moulds can be removed after one day instead of three. A test wall of twelve metres has stood in the tide for six years without a crack. The rods, however, cost more than twice as much as steel and cannot be bent on site, so every corner has to be ordered in advance. For straight walls the group reckons with savings of eleven percent over the life of the structure.",
     "Engineers in Brenfield build quay walls from seawater concrete reinforced with rust-free basalt fibre rods. The concrete hardens faster and a test wall has lasted six years, but the rods are expensive and cannot be bent, so savings of about eleven percent apply to straight walls.",
     (("Old belief: seawater concrete is useless due to rust. New: basalt rods instead of steel. Pros: faster hardening, six years without a crack. Cons: price, corners. Bottom line: eleven percent savings for straight walls. Two sentences should hold it.", "By replacing steel with basalt fibre rods, engineers in Brenfield can use seawater for concrete, which then hardens in a third of the time. A test wall is intact after six years; because the rods are costly and rigid, the expected savings of eleven percent hold only for straight walls."),
      ("I'd start from the trick that makes it possible (no steel, so no rust) and end with where it pays.", "Seawater concrete becomes usable when basalt rods take the place of steel, as a six-year-old test wall in Brenfield shows. It sets faster, but dearer rods that cannot be bent limit its benefit, about eleven percent over a lifetime, to straight walls.")),
     (("Seawater concrete rusts. That's the first sentence and so the main message.", "Concrete with seawater is useless because the steel in it rusts, engineers found after six years."),
      ("It's cheaper by eleven percent, and basalt costs half of steel.", "Basalt rods cost half as much as steel, which makes seawater concrete eleven percent cheaper for all kinds of structures."))),
    ("In 1987 a farmer near Aldhurst began to note down when the first frost came each autumn. His daughter carried on, then his grandson, so that the notebooks now cover thirty-eight years. Meteorologists of the regional university have compared them with official measurements from a station twelve kilometres away. The two agree within two days in nearly every year, with one exception: since 2009 the frost has come to the farm about a week earlier than to the station. The reason was found on a map. A row of poplars that used to shelter the station from cold air had nothing to do with it; rather, a new industrial area next to the station warms its surroundings. The family's notebooks, the researchers write, are now the better record.",
     "A farming family near Aldhurst has recorded the first frost for thirty-eight years. Researchers found their notes agree with a nearby weather station until 2009, when a new industrial area began to warm the station, which makes the family's notebooks the better record.",
     (("The point comes at the end: the amateur record is now better than the official one because the station is being warmed by an industrial area. The poplars are a red herring, leave them out.", "Thirty-eight years of frost notes by a family near Aldhurst match official data until 2009. Since then the weather station has been warmed by a new industrial area, so researchers consider the private notebooks more reliable."),
      ("Who, what, how long, comparison, deviation, reason, conclusion. In two sentences.", "Comparing a family's frost diary, kept since 1987, with a station twelve kilometres away, meteorologists found a one-week gap from 2009 on. Heat from an industrial area near the station explains it, and the diary is now the more trustworthy source.")),
     (("The poplars protect the station, so that's the reason for the difference.", "A row of poplars shelters a weather station near Aldhurst, which is why frost has come later there since 2009."),
      ("Climate is getting warmer; this fits with the station's later frosts.", "Notebooks of a family prove that because of climate change the first frost arrives a week later than in 1987."))),
)

# language, source text, reference, good ones, (thought, poor one)
TRANSLATIONS = (
    ("German", "The bridge will be closed from Monday on; please use the ferry or allow an extra twenty minutes for the detour.",
     "Die Brücke ist ab Montag gesperrt; bitte nutzen Sie die Fähre oder planen Sie zwanzig Minuten mehr für den Umweg ein.",
     ("Ab Montag ist die Brücke gesperrt. Bitte nehmen Sie die Fähre oder rechnen Sie für den Umweg zwanzig Minuten zusätzlich ein.", "Die Brücke wird ab Montag gesperrt; bitte benutzen Sie die Fähre oder planen Sie für die Umleitung weitere zwanzig Minuten ein."),
     "'From Monday on' is 'ab Montag'. 'Allow twenty minutes' is not 'erlauben' but 'einplanen' or 'einrechnen'. It is a public notice, so the polite form with 'Sie'. Detour is 'Umweg', for signposted ones 'Umleitung'.",
     (("Word by word: the bridge = die Brücke, closed = geschlossen, allow = erlauben, ferry = Fähre.", "Die Brücke will geschlossen sein von Montag an; bitte benutze die Fähre oder erlaube extra zwanzig Minuten für den Detour."),
      ("I translate the first half, the second half is only a hint.", "Die Brücke ist am Montag geschlossen."))),
    ("French", "I had hoped to reply sooner, but the results only arrived this morning. They are better than we dared to expect.",
     "J'avais espéré répondre plus tôt, mais les résultats ne sont arrivés que ce matin. Ils sont meilleurs que nous n'osions l'espérer.",
     ("J'espérais vous répondre plus tôt, mais les résultats ne sont arrivés que ce matin. Ils dépassent ce que nous osions espérer.", "J'aurais voulu répondre plus tôt, mais les résultats sont arrivés seulement ce matin ; ils sont meilleurs que nous n'osions l'espérer."),
     "'Only arrived' needs 'ne ... que' in French. 'Had hoped' is the pluperfect, 'avais espéré', though the imperfect is idiomatic, too. After 'meilleurs que' a formal text takes the expletive 'ne'. Plural: résultats, so 'ils'.",
     (("'Sooner' is 'bientôt', 'arrived' is 'arrivé', results are feminine I think.", "J'ai espéré de répondre bientôt, mais les résultats ont arrivé seulement ce matin. Elles sont plus bonnes que nous avons expecté."),
      ("The user writes in English, so an English paraphrase is the natural thing.", "I wanted to answer earlier but the results came just this morning and they are great."))),
    ("Spanish", "Whoever finds the key should leave it at the front desk. There is no reward, but there is coffee.",
     "Quien encuentre la llave, que la deje en la recepción. No hay recompensa, pero sí café.",
     ("Quien encuentre la llave debe dejarla en recepción. No hay recompensa, pero hay café.", "La persona que encuentre la llave puede dejarla en la recepción. Recompensa no hay, pero café sí."),
     "'Whoever finds' asks for the subjunctive: 'quien encuentre'. Front desk is 'recepción'. The joke lives in the contrast of the last sentence, so keep it short: 'pero sí café'.",
     (("Whoever = quién, with an accent, finds = encuentra.", "¿Quién encuentra el llave? Debería salirlo en el escritorio de frente. No es recompensa, pero es café."),
      ("The reward part is informal, I leave it out to keep the notice serious.", "Por favor, entregue la llave en la recepción."))),
    ("Italian", "The soup tastes better on the second day, so make more than you need and do not tell your guests.",
     "La zuppa è più buona il secondo giorno, quindi preparatene più del necessario e non ditelo agli ospiti.",
     ("Il giorno dopo la zuppa è ancora più buona: fatene più di quanta ve ne serve e non dite niente agli ospiti.", "La zuppa è migliore il secondo giorno, perciò preparane più del necessario e non dirlo agli ospiti."),
     "'Tastes better' is simply 'è più buona'. The 'of it' that English drops needs 'ne': 'preparatene'. 'More than you need' is 'più del necessario'. 'Do not tell your guests' needs an object, 'non ditelo'.",
     (("Soup is sopa or sapone, day is dia.", "Il sapone sa migliore sul secondo dia, così fate più che bisogno e non raccontare i tuoi ospiti."),
      ("Better on the second day means it is bad on the first.", "La zuppa del primo giorno non è buona."))),
)


def tasks():
    """All the summaries and translations."""
    made = []
    for text, reference, good, poor in SUMMARIES:
        prompt = f"[Summarise|Sum up] the following text in [at most two sentences|one or two sentences].\n\n{text}"
        right = [Attempt(thought, summary) for thought, summary in good]
        right += [Attempt(good[0][0] + " " + good[1][0], good[1][1]), Attempt(good[1][0], good[0][1])]
        wrong = [Attempt(thought, summary) for thought, summary in poor]
        made.append(Task("summary", "writing", prompt, reference, right, wrong, extra={"max_sentences": 2}))
    for language, text, reference, good, thought, poor in TRANSLATIONS:
        prompt = [
            {"role": "system", "content": "You are a translator. Give the translation only, inside <answer></answer>."},
            {"role": "user", "content": f"Translate into {language}: {text}"},
        ]
        parts = thought.split(". ")
        shorter = ". ".join(parts[:2]).rstrip(".") + "."
        turned = ". ".join(part.rstrip(".") for part in parts[2:] + parts[:1]) + "."
        right = [Attempt(one, answer) for one, answer in zip((thought, shorter, turned, thought), (good[0], good[1], good[1], reference))]
        wrong = [Attempt(one, answer) for one, answer in poor]
        made.append(Task("translation", "translation", prompt, reference, right, wrong, extra={"to": language}))
    return made
