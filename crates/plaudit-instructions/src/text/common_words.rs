//! The commonest words of languages in Latin letters, greetings among them: they tell the language of a text that is too
//! short for n-grams.

use std::collections::BTreeMap;

/// A language and its words, in lower case.
static LANGUAGES: &[(&str, &str)] = &[
    (
        "en",
        "a about after again all also always am an and any are around as ask at away back bad be because been before \
         best big but buy bye by call can come could day did do does doing done don't down each early eat end enough even ever \
         every everybody everyone everything fine first five for four from fun get give go goes going good goodbye got \
         great had happy has have he hello help her here hey hi him his home hope hot house how i if i'm in into is it \
         its it's just keep know last late later left let like little live long look lot love make many may me mine \
         more morning most much must my name need never new next nice night no not nothing now of off often oh ok okay \
         old on once one only open or other our out over people perfect please put read ready really right run said \
         same say see she should show so some soon sorry stay still stop sure take tell ten thank thanks that the \
         their them then there these they thing things think this those three time to today together tomorrow tonight \
         too try two under until up us use very wait walk want was way we welcome well went were what when where which \
         who why will wish with without word work world would write yes yesterday yet you your",
    ),
    (
        "fr",
        "à ai alors amie ami au aussi autre aux avec avez avoir beaucoup bien bientôt bon bonjour bonne bonsoir c'est \
         ça ce cela ces cette chez comme comment d'accord dans de demain des deux du elle elles en encore est et être \
         eux faire fait fois il ils ici j'ai jamais je jour la là le les leur lui ma mais matin me merci mes moi mon \
         monde ne non nos notre nous nuit on ou où oui par parce pas petit peu peut plaît plus pour pourquoi pouvez \
         quand que quel qui quoi revoir rien s'il sa salut sans se ses si soir son sont sur ta te tes toi ton toujours \
         tous tout toute toutes très tu un une va vais vas vie voici voilà vos votre vous y",
    ),
    (
        "de",
        "aber alle alles als also am an auch auf aus bald bei bin bis bist bitte da danke das dass dein dem den der des \
         die dir doch du ein eine einen einer es euch euer für ganz geht gern gut gute guten haben habe hallo hast hat \
         heute hier ich ihm ihn ihr im immer in ist ja jetzt kann kein keine leider liebe mal mehr mein mich mir mit \
         morgen nach nacht nein nicht nichts noch nun nur ob oder ohne schön schon sehr sein sich sie sind so tag über \
         um und uns unser viel vielen vom von vor war warum was weiß weiter wenn wer wie wiedersehen wir wird wo wohl \
         zu zum zur zwei",
    ),
    (
        "es",
        "a adiós ahora al algo amigo amiga amigos aquí así bien buen buena buenas bueno buenos casa como cómo con cuando \
         cuándo de del día días donde dónde dos el él ella ellos en eres es esa ese eso esta está están este esto estoy \
         favor fue gracias gran ha hace hacer hasta hay hola hoy la las le lo los luego mañana más me mi mí mis mucha \
         muchas mucho muy nada ni no noche noches nos nosotros nuestro o otra otro para pero poco por porque pronto \
         pues que qué quién se señor ser si sí sin siempre sobre somos son soy su sus también tarde tardes te tengo \
         tiempo tiene todo todos tu tú un una usted vale vamos ver vez vida y ya yo",
    ),
    (
        "it",
        "a al alla allora altro amici amico amica anche ancora arrivederci bella bello bene buon buona buonanotte \
         buonasera buongiorno c'è casa che chi ci ciao come con così cosa da dal del della delle di dopo domani \
         dove due e è ecco era essere fa fare favore giorno grazie già ha hai ho i il in io la le lei li lo loro lui ma \
         mai mattina me meglio mi mia mille mio molto ne nei nel nella niente no noi non nostro notte o ogni oggi ora \
         per perché più poco poi prego presto prima qualcosa quando quello questa questo qui sa se sei sempre senza \
         sera si sì siamo sono sta stai sto su subito sua suo tanto te tempo ti tu tua tuo tutti tutto un una uno va \
         vai vi voi",
    ),
    (
        "pt",
        "a agora ainda amanhã amigo amiga ao aqui as até bem boa bom bons casa com como da das de depois dia do dois dos \
         e é ela ele eles em então era essa esse está estão estou eu favor fazer foi hoje isso isto já lá logo mais mas \
         me mesmo meu minha muita muito muitos na nada não nas no noite nós nossa nosso num nunca o obrigada obrigado \
         olá onde os ou outra outro para pela pelo por porque pouco pra quando quase que quem se sem sempre senhor ser \
         seu sim são só sobre sou sua também tarde te tem tempo tenho tudo tchau um uma vai vamos vida você vocês",
    ),
    (
        "nl",
        "aan al alle alles als altijd ben bent bij dag dan dank dat de deze die dit doei doen een en er ga gaan gaat geen \
         goed goede goedemorgen graag haar heb hebben heeft heel hem het hier hij hoe hun ik in is ja je jij jou jullie \
         kan kom maar meer met mij mijn mooi morgen na naar nee niet niets nog nu of om ons onze ook op over tot te toch \
         u uit van vandaag veel voor waar waarom was wat we weer wel welkom wie wij wil zal ze zeer zij zijn zo",
    ),
    (
        "sv",
        "alla allt att av bara bra dag dagen de dem den det där du efter ej en er ett från för god godmorgon gör ha hade \
         han har hej hejdå hela hon hur här i idag igen ingen inte ja jag kan kommer lite man med men mera mig min mitt \
         mycket ni nej nog nu när och också om oss på sedan sig sin ska snart som så tack till tid två under upp ut vad \
         var vara vi vid vill vår välkommen är även över",
    ),
    (
        "fi",
        "ei ehkä en entä että hei he hyvin hyvä hyvää hän ilman ja jo joka jos kaikki kanssa kiitos kiitoksia koska kuin \
         kun kyllä me mikä milloin minä missä mitä moi moikka mutta myös niin nyt näkemiin ole olen olet on ovat \
         paljon päivä päivää sinä se sitten tai tämä te terve tervetuloa tänään vain vielä voi yksi yö",
    ),
    (
        "pl",
        "a ale będzie bardzo bez być ci co cześć czy dla do dobra dobranoc dobry dobrze dziękuję dziś dzień gdzie i ich ja \
         jak jest jestem jeszcze jutro już kiedy kto lub ma mam mi mnie może my na nic nie niż o od on ona oni oraz po \
         pod proszę przez się są tak także tam ten teraz też to tu tutaj tylko ty w widzenia wszystko z za ze że",
    ),
    (
        "ro",
        "a acest acum ai ale am ani are asta bine bună ca care ce cel cine cu cum da dar de din dimineața doi după ea ei \
         el este eu fi foarte fost fără în la le lui mai mea meu mult mulțumesc nimic noaptea noi nu o pe pentru prea \
         revedere sau se seara să și sunt te tot toți tu un una unde vă voi ziua",
    ),
    (
        "sw",
        "asante asubuhi au baada bado chakula habari hakuna hapa hapana hata hii hivyo huu jambo jana kabisa kama karibu \
         kesho kila kisha kwa kwaheri kwamba la lakini leo mambo mimi moja mtu mzuri na nami ndiyo ni nini nyumbani nzuri \
         pia pole rafiki sana sasa sisi tafadhali tena watu wa wao wewe wote ya yake yangu yeye za",
    ),
    (
        "id",
        "ada adalah aku akan anda apa atau bagaimana baik banyak belum bisa dan dari dengan di dia hari ini itu jangan \
         juga kami kamu karena kasih ke kita lagi lain mereka pada pagi saja sampai sangat saya sebuah sekarang selamat \
         semua sudah tetapi terima tidak untuk ya yang",
    ),
    (
        "vi",
        "anh bạn bao các cảm chào chị cho có của cũng đã đang để đi điều đó được em gì hay hôm không là làm mai một này \
         người nhiều như những nay ở ơn rất sẽ ta thì tôi tốt trong và vào vâng với xin",
    ),
    (
        "tr",
        "ama ben bir biz bu bugün çok da daha de değil evet görüşürüz gün günaydın hayır her için iyi kadar ki lütfen \
         merhaba mi ne nasıl o olarak sen siz şimdi tamam teşekkür teşekkürler var ve veya ya yarın yok",
    ),
];

/// Whether a word is one of the commonest of a language; nothing where there is no list.
pub fn is_common(word: &str, language: &str) -> Option<bool> {
    let (_, words) = LANGUAGES.iter().find(|(name, _)| *name == language)?;
    Some(words.split_ascii_whitespace().any(|common| common == word))
}

/// How many of the words are common in one language other than this one, at most.
pub(crate) fn most_common(words: &[String], but: &str) -> usize {
    let mut counts = BTreeMap::<&str, usize>::new();
    words.iter().for_each(|word| *counts.entry(word).or_default() += 1);
    let others = LANGUAGES.iter().filter(|(name, _)| *name != but);
    let count =
        |list: &str| list.split_ascii_whitespace().filter_map(|common| counts.get(common)).sum::<usize>();
    others.map(|(_, list)| count(list)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::is_common;

    #[test]
    fn greetings() {
        assert_eq!(is_common("merci", "fr"), Some(true));
        assert_eq!(is_common("merci", "en"), Some(false));
        assert_eq!(is_common("merci", "ja"), None);
    }
}
