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

/// Names of modules, where they are no names of built-in functions: what the star imports of LiveCodeBench bring that a program may
/// use, and rllm's own. Of a name that several modules have, the last import counts there. Python 3.9 has them all.
const NAMES: [(&str, &str); 19] = [
    (
        "typing",
        "AbstractSet Annotated Any AnyStr Awaitable Callable ClassVar Collection Container Coroutine DefaultDict Deque Dict Final \
         FrozenSet Generator Generic Hashable IO ItemsView Iterable Iterator KeysView List Literal Mapping Match MutableMapping \
         MutableSequence MutableSet NamedTuple NewType NoReturn Optional Pattern Protocol Reversible Sequence Set Sized Text TextIO \
         Tuple Type TypeVar TypedDict Union ValuesView cast final get_type_hints overload runtime_checkable",
    ),
    ("collections", "ChainMap Counter OrderedDict UserDict UserList UserString defaultdict deque namedtuple"),
    ("heapq", "heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest"),
    ("bisect", "bisect_left bisect_right insort insort_left insort_right"),
    ("copy", "deepcopy"),
    (
        "math",
        "acos acosh asin asinh atan atan2 atanh ceil comb copysign cos cosh degrees dist e erf erfc exp expm1 fabs factorial floor fmod \
         frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nan nextafter \
         perm pi prod radians remainder sin sinh sqrt tan tanh tau trunc ulp",
    ),
    (
        "random",
        "Random betavariate choice choices expovariate gauss getrandbits getstate normalvariate randbytes randint randrange sample seed \
         setstate shuffle triangular uniform",
    ),
    (
        "statistics",
        "NormalDist StatisticsError fmean geometric_mean harmonic_mean mean median median_grouped median_high median_low mode multimode \
         pstdev pvariance quantiles stdev variance",
    ),
    (
        "itertools",
        "accumulate chain combinations combinations_with_replacement compress count cycle dropwhile filterfalse groupby islice \
         permutations product repeat starmap takewhile tee zip_longest",
    ),
    (
        "functools",
        "cache cached_property cmp_to_key lru_cache partial partialmethod reduce singledispatch singledispatchmethod total_ordering \
         update_wrapper wraps",
    ),
    (
        "operator",
        "add and_ attrgetter concat contains countOf delitem eq floordiv ge getitem gt iadd iand iconcat ifloordiv ilshift imatmul imod \
         imul index indexOf inv invert ior ipow irshift is_ is_not isub itemgetter itruediv ixor le length_hint lshift lt matmul \
         methodcaller mod mul ne neg not_ or_ pos rshift setitem sub truediv truth xor",
    ),
    (
        "io",
        "BufferedReader BufferedWriter BytesIO FileIO SEEK_CUR SEEK_END SEEK_SET StringIO TextIOWrapper UnsupportedOperation",
    ),
    (
        "sys",
        "argv byteorder exc_info float_info getrecursionlimit getsizeof intern maxsize setrecursionlimit stderr stdin stdout version \
         version_info",
    ),
    (
        "string",
        "Formatter Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable punctuation \
         whitespace",
    ),
    ("datetime", "MAXYEAR MINYEAR date timedelta timezone tzinfo"),
    (
        "re",
        "A ASCII DOTALL I IGNORECASE M MULTILINE S U UNICODE VERBOSE X error escape findall finditer fullmatch match search search:re_search split \
         subn",
    ),
    ("json", "JSONDecodeError JSONDecoder JSONEncoder dump dumps load loads"),
    ("os.path", "commonprefix"),
    ("dataclasses", "dataclass field"),
];

/// Names that Python has had since a later version.
const NEWER: [(&str, &str); 5] = [
    ("itertools", "batched pairwise"),
    ("math", "cbrt exp2 sumprod"),
    ("statistics", "correlation covariance linear_regression"),
    (
        "typing",
        "Concatenate Never NotRequired ParamSpec Required Self TypeAlias TypeGuard TypeVarTuple Unpack assert_never override",
    ),
    ("datetime", "UTC"),
];

/// Whether a name is a module's.
pub(crate) fn is_module(name: &str) -> bool {
    MODULES.contains(&name)
}

/// Whether programs take a name for granted.
pub(crate) fn is_known(name: &str) -> bool {
    let here = |known: &str| known.split_once(':').map_or(known, |(_, here)| here) == name;
    is_module(name) || NAMES.iter().chain(&NEWER).any(|(_, known)| known.split_ascii_whitespace().any(here))
}

/// The imports that a program takes for granted, one a line; nothing where it is no Python, or too large to be looked at.
pub(crate) fn imports(code: &str) -> String {
    let mut lines = String::new();
    let Some(names) = unbound(code) else { return lines };
    for module in MODULES.iter().filter(|module| names.contains(**module)) {
        let _ = writeln!(lines, "import {module}");
    }
    let mut import = |module: &str, known: &str, indent: &str, end: &str| {
        for known in known.split_ascii_whitespace() {
            let (name, here) = known.split_once(':').unwrap_or((known, known));
            if names.contains(here) {
                let renamed = if here == name { String::new() } else { format!(" as {here}") };
                let _ = writeln!(lines, "{indent}from {module} import {name}{renamed}{end}");
            }
        }
    };
    for (module, known) in NAMES {
        import(module, known, "", "");
    }
    for (module, known) in NEWER {
        import(module, known, "try:\n    ", "\nexcept ImportError: pass");
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
            // `match` is a name as well.
            TokenKind::Name | TokenKind::Match if before != TokenKind::Dot => {
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
            ("list(pairwise(x))", "try:\n    from itertools import pairwise\nexcept ImportError: pass\n"),
            ("match('a', b)", "from re import match\n"),
            ("re_search('a', b)", "from re import search as re_search\n"),
        ] {
            assert_eq!(imports(code), wanted, "{code}");
        }
        assert_eq!(imports(&format!("x = {}math{}", "(".repeat(100_000), ")".repeat(100_000))), "");
    }
}
