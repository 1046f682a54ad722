//! English verbs that an instruction starts with, in the form that it starts with.
//!
//! Most of them are nouns as well, and a tagger that was trained on newspapers takes them for nouns at the start of a
//! text. `words:start_verb` asks this list where the tagger says no.

use std::sync::LazyLock;

const VERBS: &str = "\
accept access achieve acknowledge act adapt add address adjust admire admit adopt advise agree aim \
align allow alter am amplify analyse analyze announce answer anticipate apologize appear apply \
appoint appreciate approach approve are argue arise arrange arrive articulate ask assemble assert \
assess assign assist associate assume assure attach attack attempt attend attract automate avoid \
await awaken bake balance ban bathe battle be bear beat become beg begin behold believe belong bend \
bet beware bid bind bite blame blast bleed blend bless blink blow boil bolster book boost borrow \
bounce bow brace brainstorm break breathe brew bring broadcast browse brush bubble budget build \
bully burn burst bury buy buzz calculate call calm cancel capture care carry carve cast catch \
categorize cause cease celebrate challenge change channel charge chase chat check cheer cherish chew \
chill choose chop circle circulate cite claim clap clarify classify clean clear click climb cling \
clip close clothe coat code collaborate collapse collect combine come comfort commence comment \
commit communicate compare compete compile complain complete complicate compose compress compute \
conceal concentrate conclude condense conduct confess configure confirm confront confuse connect \
conquer conserve consider consist construct consult consume contact contain contemplate contend \
continue contrast contribute control convene converse convert convey convince cook cool cooperate \
coordinate cope copy correct count cover crack craft crash crawl create credit creep criticize cross \
crouch crush cry cultivate curb cure curl customize cut dance dare darken dash deal debate debug \
decide declare decline decorate decrease dedicate deduce deepen defeat defend define delay delegate \
delete deliver demand demonstrate deny depart depend depict deploy derive descend describe deserve \
design desire destroy detach detect determine develop devise devote diagnose dice dictate did die \
differ differentiate dig digest dim dip direct disable disagree disappear discard disclose \
disconnect discover discuss dismiss display dispose distinguish distribute dive divide do document \
does double doubt download draft drag drain dramatize draw dream dress drift drill drink drip drive \
drizzle drop drown dry duplicate dust dwell dye earn ease eat echo edit educate elaborate elect \
elevate eliminate embark embed embody embrace emerge emit emphasize employ empower empty enable \
encounter encourage end endorse endure energize enforce engage engrave enhance enjoy enlarge enlist \
enrich enroll ensure enter entertain enumerate envision equip erase erect err escape establish \
estimate evaluate evoke evolve examine exceed exchange exclude excuse execute exercise exhale \
exhibit exist expand expect experience experiment explain explode exploit explore export expose \
express extend extract fabricate face facilitate fade fail fall familiarize fancy fasten favor fear \
feed feel fetch fight figure file fill film filter finalize find finish fire fit fix flap flash \
flatten flee flip float flow fly focus fold follow forbid force forecast forget forgive form format \
formulate foster frame free freeze fry fuel fulfill function fund gain gallop gather gauge generate \
get give glance glaze glide glow go govern grab grade grant grasp grate graze greet grill grin grind \
grip groan group grow growl guarantee guard guess guide had halt hammer hand handle hang happen \
harness harvest has hate haul haunt have head heal hear heat help hesitate hide highlight hike hint \
hire hit hoist hold honor hop hope host hover hug hum hunt hurry hurt identify ignite ignore \
illuminate illustrate imagine imitate immerse implement imply import impose impress improve incline \
include incorporate increase indicate induce indulge infer inflate influence inform infuse inhale \
inherit initiate inject innovate inquire insert insist inspect inspire install instruct integrate \
intend intensify interact interpret interrupt intervene interview introduce invent invest \
investigate invite involve is isolate issue iterate jog join joke journey judge juggle jump \
justify keep kick kill kindle kiss knead kneel knit knock know label lace lack land laugh launch lay \
lead lean leap learn leave lend let level leverage liberate lie lift light limit linger link \
list listen live load locate lock log look loosen lose love lower maintain make manage manipulate \
map march marinate mark marry marvel mash master match mate maximize mean measure meditate meet melt \
memorize mend mention merge mind mingle minimize miss mix mock model modify moisten monitor \
motivate mount mourn move multiply murmur mute nail name narrate narrow navigate need neglect \
negotiate nod normalize note notice nourish nudge nurture obey observe obtain occupy occur offer \
omit open operate oppose optimize orchestrate order organize orient outline outperform overcome \
overlook oversee owe pace pack package paddle paint pair panic paraphrase pardon park \
participate pass paste patch pause pave pay peek peel perceive perform permit persist persuade phone \
pick picture pilot pin place plan plant play plead plot plow plug plunge point poke polish ponder \
pop portray pose position possess post postpone pour practice practise praise pray preach predict \
prefer preheat prepare present preserve press presume pretend prevail prevent print prioritize probe \
proceed process proclaim produce program progress prohibit promise promote prompt pronounce \
proofread propel propose protect protest prove provide prune publish pull pump punch punish purchase \
purify pursue push put qualify quantify question quicken quit quote race raise rake rally ramble \
reach react read realize reap rearrange reassure recall receive recite reckon recognize recommend \
reconsider record recover recruit recycle redirect reduce refer refine reflect refrain refresh \
refuse regain regard register regret regulate rehearse reinforce reject rejoice relate relax release \
relinquish relish rely remain remember remind remove rename render renew rent repair repeat replace \
replicate reply report represent request require rescue research resemble reserve reset reside \
resist resolve respect respond rest restart restore restrict retain rethink retire retreat retrieve \
return reuse reveal reverse review revise revisit revive reward rewrite rhyme ride ring rinse rise \
risk roam roar roast rob rock roll rotate route row rub ruin rule run rush sail salute sample \
satisfy save savor say scale scan scare scatter schedule scoop score scour scrape scratch scream \
screen scroll scrub seal search season seat secure see seed seek seem segment seize select sell send \
sense separate sequence serve set settle sew shake shape share sharpen shave shed shift shine ship \
shiver shoot shop shorten shout shove show shred shrink shrug shut sift sigh sign signal signify \
silence simmer simplify simulate sing sink sip sit sketch skim skip slap sleep slice slide slip slow \
smash smell smile smoke smooth snap snatch sneak sneeze sniff snore soak soar soften solve soothe \
sort sound sow span spare spark speak specialize specify speculate speed spell spend spill spin \
split spoil sponsor spot spray spread spring sprinkle squeeze stabilize stack stage stain stake \
stand stare start state stay steal steam steer step stick stimulate stir stitch stop store strain \
strategize strengthen stress stretch strike strip strive stroll structure struggle study stuff \
subdue submit subscribe substitute subtract succeed suffer suggest suit sum summarize summon \
supervise supply support suppose surf surprise surrender surround survey survive suspect suspend \
sustain swallow swap sway swear sweep swell swim swing switch symbolize synthesize tackle tag tailor \
take talk tame tap target taste teach tear tease tell tempt tend terminate test thank thaw think \
thrive throw tickle tidy tie tighten tilt toast toggle tolerate top toss touch tour trace track \
trade train transcend transcribe transfer transform translate transmit transport trap travel \
traverse tread treasure treat tremble trigger trim troubleshoot trust try tuck tug tune turn tweak \
twist type uncover undergo underline understand undertake undo unfold unify unite unleash unlock \
unpack unplug unravel unveil update upgrade uphold upload urge use utilize vacuum validate value \
vanish vary venture verify view visit visualize voice volunteer vote vow wade wait wake walk wander \
want warm warn was wash waste watch wave weaken wear weave weep weigh welcome were whip whirl \
whisk whisper whistle widen win wind wink wipe wish withdraw withstand witness wonder work worry \
worship wrap wrestle write yawn yearn yell yield zip zoom \
";

static SORTED: LazyLock<Vec<&str>> = LazyLock::new(|| VERBS.split_ascii_whitespace().collect());

/// What follows a noun that starts a sentence, and no imperative.
const AFTER_A_NOUN: [&str; 22] = [
    "is", "are", "was", "were", "has", "had", "have", "will", "would", "can", "could", "may", "might",
    "must", "shall", "should", "does", "did", "do", "of", "'s", "’s",
];

/// Whether a text that starts with these two words starts with a verb: `Walk home`, but not `Walk is` or `Kettle is`.
pub fn starts_with_verb(first: &str, second: Option<&str>) -> bool {
    let known = |word: &str| SORTED.binary_search(&word.to_lowercase().as_str()).is_ok();
    let finite = |word: &str| {
        matches!(&*word.to_lowercase(), "is" | "are" | "am" | "was" | "were" | "does" | "did" | "has" | "had")
    };
    known(first)
        && (finite(first) || !second.is_some_and(|word| AFTER_A_NOUN.contains(&&*word.to_lowercase())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_at_the_start() {
        assert!(SORTED.is_sorted() && SORTED.len() > 1_000);
        for (first, second) in [("Run", "to"), ("Do", "not"), ("GO", "home"), ("Was", "it"), ("Is", "it")] {
            assert!(starts_with_verb(first, Some(second)), "{first} {second}");
        }
        assert!(starts_with_verb("Stop", None));
        for (first, second) in
            [("Walk", "is"), ("Kettles", "sing"), ("The", "run"), ("Quickly", "run"), ("", "")]
        {
            assert!(!starts_with_verb(first, Some(second)), "{first} {second}");
        }
    }
}
