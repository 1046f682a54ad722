//! The words of mathematics: which commands and plain words are functions, signs and letters.

use super::{Bracket, Kind, Rel};
use crate::expr::{BigOperator, Function, Hyperbolic, NaryFunction};

/// Whether a run of letters is a product of letters, as `abc` and `ABCD`, and not a word. In `prose`, alone or after a
/// word, short words are words.
pub(super) fn is_product(word: &str, prose: bool) -> bool {
    const SHORT_WORDS: [&str; 24] = [
        "no", "on", "is", "it", "to", "of", "in", "at", "by", "up", "so", "as", "be", "he", "me", "we", "if",
        "my", "do", "go", "us", "ok", "am", "pm",
    ];
    if word.len() == 2 {
        return !(prose && SHORT_WORDS.contains(&word.to_ascii_lowercase().as_str()));
    }
    let bytes = word.as_bytes();
    if bytes.iter().all(u8::is_ascii_uppercase) {
        return word.len() <= 6;
    }
    let has_vowel = bytes.iter().any(|c| b"aeiouAEIOU".contains(c));
    let rising =
        bytes.windows(2).all(|pair| pair[0] < pair[1]) && bytes.iter().all(|c| (b'a'..=b'h').contains(c));
    word.len() <= 6 && (!has_vowel || rising)
}

/// A function that is written as a word.
pub(super) fn named_function(word: &str) -> Option<Kind> {
    use Function::{
        Abs, Arccos, Arccot, Arcsin, Arctan, Arg, Ceil, Conj, Cos, Cosh, Cot, Csc, Floor, Im, Ln, Re, Sec,
        Sign, Sin, Sinh, Tan, Tanh,
    };
    Some(match word {
        "sin" => Kind::Function(Sin),
        "cos" => Kind::Function(Cos),
        "tan" | "tg" => Kind::Function(Tan),
        "cot" | "ctg" | "cotg" => Kind::Function(Cot),
        "sec" => Kind::Function(Sec),
        "csc" | "cosec" => Kind::Function(Csc),
        "arcsin" | "asin" => Kind::Function(Arcsin),
        "arccos" | "acos" => Kind::Function(Arccos),
        "arctan" | "atan" | "arctg" => Kind::Function(Arctan),
        "arccot" | "arcctg" => Kind::Function(Arccot),
        "sech" => Kind::Hyperbolic(Hyperbolic::Sech),
        "csch" | "cosech" => Kind::Hyperbolic(Hyperbolic::Csch),
        "coth" => Kind::Hyperbolic(Hyperbolic::Coth),
        "arcsinh" | "arsinh" | "asinh" | "Arsinh" | "argsinh" => Kind::Hyperbolic(Hyperbolic::Arsinh),
        "arccosh" | "arcosh" | "acosh" | "Arcosh" | "argcosh" => Kind::Hyperbolic(Hyperbolic::Arcosh),
        "arctanh" | "artanh" | "atanh" | "Artanh" | "argtanh" => Kind::Hyperbolic(Hyperbolic::Artanh),
        "arccoth" | "arcoth" | "acoth" => Kind::Hyperbolic(Hyperbolic::Arcoth),
        "arcsech" | "arsech" | "asech" => Kind::Hyperbolic(Hyperbolic::Arsech),
        "arccsch" | "arcsch" | "acsch" => Kind::Hyperbolic(Hyperbolic::Arcsch),
        "sinh" => Kind::Function(Sinh),
        "cosh" => Kind::Function(Cosh),
        "tanh" => Kind::Function(Tanh),
        "ln" => Kind::Function(Ln),
        "abs" => Kind::Function(Abs),
        "floor" => Kind::Function(Floor),
        "ceil" => Kind::Function(Ceil),
        "Re" => Kind::Function(Re),
        "Im" => Kind::Function(Im),
        "conj" => Kind::Function(Conj),
        "arg" => Kind::Function(Arg),
        "sgn" => Kind::Function(Sign),
        "log" => Kind::Log,
        "lg" => Kind::Lg,
        "exp" => Kind::Exp,
        "det" => Kind::Det,
        "gcd" => Kind::NaryFunction(NaryFunction::Gcd),
        "lcm" => Kind::NaryFunction(NaryFunction::Lcm),
        "max" => Kind::NaryFunction(NaryFunction::Max),
        "min" => Kind::NaryFunction(NaryFunction::Min),
        _ => return None,
    })
}

/// A word that has a meaning without a backslash.
pub(super) fn plain_word(word: &str) -> Option<Kind> {
    Some(match word {
        "and" | "And" | "AND" => Kind::And,
        "or" | "Or" | "OR" => Kind::Or,
        "percent" | "percents" | "pct" => Kind::Percent,
        "sqrt" => Kind::Sqrt,
        "pi" | "Pi" => Kind::Pi,
        "infinity" | "Infinity" | "infty" | "inf" => Kind::Infinity,
        "union" => Kind::Cup,
        "mod" | "modulo" => Kind::Mod,
        "min" | "sec" | "arg" | "Re" | "Im" | "abs" | "max" | "lg" => return None,
        word => return named_function(word).filter(|_| word.len() > 1),
    })
}

/// The meaning of a command.
pub(super) fn command_kind(name: &str) -> Option<Kind> {
    Some(match name {
        "frac" | "dfrac" | "tfrac" | "cfrac" | "sfrac" | "nicefrac" => Kind::Frac,
        "sqrt" => Kind::Sqrt,
        "binom" | "dbinom" | "tbinom" => Kind::Binom,
        "over" => Kind::Over,
        "choose" => Kind::Choose,
        "pm" => Kind::PlusMinus,
        "mp" => Kind::MinusPlus,
        "cdot" | "times" | "ast" | "star" | "bullet" => Kind::Times,
        "div" | "slash" => Kind::Slash,
        "circ" | "degree" | "textdegree" => Kind::Degree,
        "prime" => Kind::Prime,
        "percent" => Kind::Percent,
        "colon" | "ratio" => Kind::Colon,
        "mid" | "vert" | "Vert" => {
            if name == "mid" {
                Kind::Mid
            } else {
                Kind::Bar
            }
        }
        "lfloor" => Kind::Open(Bracket::Floor),
        "rfloor" => Kind::Close(Bracket::Floor),
        "lceil" => Kind::Open(Bracket::Ceil),
        "rceil" => Kind::Close(Bracket::Ceil),
        "langle" => Kind::Open(Bracket::Angle),
        "rangle" => Kind::Close(Bracket::Angle),
        "lbrace" => Kind::Open(Bracket::Set),
        "rbrace" => Kind::Close(Bracket::Set),
        "lgroup" => Kind::Open(Bracket::Round),
        "rgroup" => Kind::Close(Bracket::Round),
        "lbrack" => Kind::Open(Bracket::Square),
        "rbrack" => Kind::Close(Bracket::Square),
        "le" | "leq" | "leqslant" | "leqq" => Kind::Relation(Rel::LessEqual),
        "ge" | "geq" | "geqslant" | "geqq" => Kind::Relation(Rel::GreaterEqual),
        "lt" => Kind::Relation(Rel::Less),
        "gt" => Kind::Relation(Rel::Greater),
        "ne" | "neq" => Kind::Relation(Rel::NotEqual),
        "approx" | "doteq" | "simeq" | "sim" | "thickapprox" | "cong" | "approxeq" => {
            Kind::Relation(Rel::Approx)
        }
        "equiv" => Kind::Relation(Rel::Equal),
        "in" => Kind::Relation(Rel::In),
        "cup" | "bigcup" => Kind::Cup,
        "cap" | "bigcap" => Kind::Cap,
        "setminus" | "backslash" | "smallsetminus" => Kind::Setminus,
        "to" | "rightarrow" | "Rightarrow" | "implies" | "Longrightarrow" | "longrightarrow" | "iff"
        | "Leftrightarrow" => Kind::Arrow,
        "land" | "wedge" => Kind::And,
        "lor" | "vee" => Kind::Or,
        "infty" => Kind::Infinity,
        "emptyset" | "varnothing" => Kind::EmptySet,
        "pi" => Kind::Pi,
        "R" | "Reals" => Kind::Reals,
        "sum" => Kind::BigOperator(BigOperator::Sum),
        "prod" => Kind::BigOperator(BigOperator::Product),
        "int" | "iint" | "oint" | "lim" | "limsup" | "liminf" | "partial" | "nabla" | "sup" | "inf" => {
            Kind::Unevaluated
        }
        "pmod" | "bmod" | "mod" | "pod" => Kind::Mod,
        "ldots" | "dots" | "cdots" | "dotsc" | "dotsb" | "vdots" | "ddots" | "dotsm" => Kind::Dots,
        "overline" | "bar" | "vec" | "hat" | "widehat" | "tilde" | "widetilde" | "dot" | "ddot"
        | "underline" | "overrightarrow" | "overbrace" | "underbrace" | "overset" => Kind::Accent,
        "angle" | "triangle" | "Delta" | "measuredangle" | "odot" | "square" | "wideparen" | "overarc" => {
            Kind::Sign
        }
        "alpha" | "beta" | "gamma" | "delta" | "epsilon" | "varepsilon" | "zeta" | "eta" | "theta"
        | "vartheta" | "iota" | "kappa" | "lambda" | "mu" | "nu" | "xi" | "rho" | "varrho" | "sigma"
        | "tau" | "upsilon" | "phi" | "varphi" | "chi" | "psi" | "omega" | "Gamma" | "Theta" | "Lambda"
        | "Xi" | "Pi" | "Sigma" | "Upsilon" | "Phi" | "Psi" | "Omega" | "hbar" | "ell" => Kind::Letter,
        "euro" | "pounds" | "yen" | "textdollar" => Kind::Currency,
        word => return named_function(word),
    })
}
