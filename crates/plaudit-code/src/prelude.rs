//! Names of the standard library that programs use without importing them. APPS, LiveCodeBench, verl's `prime_code` and RM-Gallery put
//! imports before every program; here a program gets the imports of those names alone that it uses and does not bind.

use crate::python::PythonParser;
use ruff_python_ast::token::TokenKind;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

/// Modules that are there by name.
const MODULES: [&str; 19] = [
    "bisect",
    "collections",
    "copy",
    "datetime",
    "functools",
    "heapq",
    "io",
    "itertools",
    "json",
    "math",
    "operator",
    "os",
    "random",
    "re",
    "statistics",
    "string",
    "sys",
    "time",
    "typing",
];

/// Names of modules, where they are no names of built-in functions. Python 3.9 has them all.
const NAMES: [(&str, &str); 17] = [
    (
        "typing",
        "Any Callable DefaultDict Deque Dict FrozenSet Generator Generic Iterable Iterator List Mapping NamedTuple NoReturn Optional \
         Sequence Set Tuple Type TypeVar Union",
    ),
    ("collections", "ChainMap Counter OrderedDict UserDict UserList UserString defaultdict deque namedtuple"),
    ("heapq", "heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest"),
    ("bisect", "bisect_left bisect_right insort insort_left insort_right"),
    ("copy", "deepcopy"),
    (
        "math",
        "acos acosh asin asinh atan atan2 atanh ceil comb copysign cos cosh degrees dist e erf erfc exp expm1 fabs factorial floor fmod \
         frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt ldexp lgamma log log10 log1p log2 modf nan perm pi prod \
         radians remainder sin sinh sqrt tan tanh tau trunc",
    ),
    ("random", "choice choices randint randrange sample seed shuffle uniform"),
    ("statistics", "mean median mode pstdev pvariance stdev variance"),
    (
        "itertools",
        "accumulate chain combinations combinations_with_replacement compress count cycle dropwhile filterfalse groupby islice \
         permutations product repeat starmap takewhile tee zip_longest",
    ),
    (
        "functools",
        "cache cached_property cmp_to_key lru_cache partial partialmethod reduce singledispatch total_ordering update_wrapper wraps",
    ),
    ("operator", "add and_ attrgetter floordiv itemgetter methodcaller mod mul neg or_ sub truediv xor"),
    ("io", "BytesIO StringIO TextIOWrapper"),
    ("sys", "maxsize setrecursionlimit stderr stdin stdout"),
    (
        "string",
        "ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable punctuation whitespace",
    ),
    ("datetime", "date timedelta timezone"),
    ("re", "findall finditer fullmatch"),
    ("dataclasses", "dataclass field"),
];

/// The imports that a program takes for granted, one a line; nothing where it is no Python, or too large to be looked at.
pub(crate) fn imports(code: &str) -> String {
    let mut lines = String::new();
    let Some(names) = unbound(code) else { return lines };
    for module in MODULES.iter().filter(|module| names.contains(**module)) {
        let _ = writeln!(lines, "import {module}");
    }
    for (module, known) in NAMES {
        for name in known.split_ascii_whitespace().filter(|name| names.contains(*name)) {
            let _ = writeln!(lines, "from {module} import {name}");
        }
    }
    lines
}

/// The names that a program reads, without those that it imports, defines or assigns to.
fn unbound(code: &str) -> Option<BTreeSet<&str>> {
    let bound = PythonParser::new(13).bound_names(code).ok()?;
    let module = PythonParser::new(13).parse(code).ok()?;
    let tokens = (module.tokens().iter()).map(|token| token.as_tuple());
    let (mut used, mut imported) = (BTreeSet::new(), BTreeSet::new());
    let (mut before, mut imports) = (TokenKind::Newline, false);
    for (kind, range) in tokens {
        let starts = matches!(
            before,
            TokenKind::Newline
                | TokenKind::NonLogicalNewline
                | TokenKind::Semi
                | TokenKind::Colon
                | TokenKind::Indent
                | TokenKind::Dedent
                | TokenKind::Comment
        );
        match kind {
            TokenKind::Import | TokenKind::From if starts => imports = true,
            TokenKind::Newline | TokenKind::Semi => imports = false,
            TokenKind::Name if before != TokenKind::Dot => {
                let name = code.get(Range::<usize>::from(range)).unwrap_or("");
                (if imports { &mut imported } else { &mut used }).insert(name);
            }
            _ => {}
        }
        before = kind;
    }
    for name in bound {
        imported.insert(name.name);
    }
    Some(used.difference(&imported).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_bound_are_imported() {
        for (code, wanted) in [
            ("print(math.sqrt(4))", "import math\n"),
            ("import math\nprint(math.sqrt(pow(2, 2)))", ""),
            ("from math import *\nprint(sqrt(4))", "from math import sqrt\n"),
            (
                "def f(x: List[int]) -> Optional[int]: pass",
                "from typing import List\nfrom typing import Optional\n",
            ),
            ("def gcd(a, b): return a\nprint(gcd(1, 2))", ""),
            ("from heapq import heappush as push, heappop\nheappop(h)", ""),
            ("if x:\n    import re\nelse: import json\nre.sub; json.dumps", ""),
            ("x.count(y.index(z)).math.re", ""),
            ("'math.sqrt' # deque", ""),
            ("count = 1\nfor product in xs: print(count, product)", ""),
            (
                "print(bisect.bisect_left(a, 1), bisect_left(a, 1))",
                "import bisect\nfrom bisect import bisect_left\n",
            ),
            ("this is no program", ""),
        ] {
            assert_eq!(imports(code), wanted, "{code}");
        }
        assert_eq!(imports(&format!("x = {}math{}", "(".repeat(100_000), ")".repeat(100_000))), "");
    }
}
