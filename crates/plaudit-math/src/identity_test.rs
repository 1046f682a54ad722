//! Identity testing in prime fields: two expressions that agree at points which the writer cannot know are equal.
//!
//! A rational function of degree `d` that is not zero vanishes at a random point of a field of `p` elements with a
//! probability of at most `d / p` (Schwartz and Zippel). The points come from a keyed hash of the letters' names. The
//! key depends on the secret of the run and on the reference, so nobody can prepare a polynomial that vanishes there.
//!
//! Square roots of rationals and the imaginary unit are elements of a field in which the primes under the roots are
//! squares. The choice of signs is a conjugation, which neither makes nor breaks an identity. Any other function is
//! opaque: a hash of its arguments. Opaque parts can prove two expressions equal, never different.

use dashu_int::ops::UnsignedAbs;
use dashu_int::{Sign, UBig};
use dashu_ratio::RBig;

use crate::expr::{Expr, Function, Id, Node, Tree};
use crate::limits::{NoValue, Work};
use crate::number;

/// The Mersenne prime that serves when there are no radicals: its remainder is a shift and an addition.
const MERSENNE: u64 = (1 << 61) - 1;

/// Distances below 2^61 of the largest primes that are 1 modulo 8, so that -1 and 2 are squares.
const DISTANCES: [u16; 256] = [
    31, 391, 759, 799, 1015, 1215, 1351, 1543, 1855, 1863, 1959, 2023, 2383, 2551, 2695, 2911, 2919, 3015,
    3079, 3151, 3183, 3295, 3799, 3895, 4015, 4119, 4351, 4359, 4431, 4575, 4599, 4863, 5079, 5103, 5263,
    5383, 5719, 6031, 6103, 6279, 6375, 6471, 6535, 6583, 6655, 6735, 6831, 6903, 6999, 7015, 7159, 7551,
    7575, 7591, 8223, 8383, 8511, 8559, 8575, 8895, 9079, 9415, 9511, 9783, 9831, 10039, 10063, 10071, 10183,
    10239, 10431, 10479, 10591, 10855, 10879, 11103, 11191, 11215, 11263, 11479, 11791, 11935, 12039, 12159,
    12295, 12463, 12559, 12639, 12831, 12943, 12951, 13471, 13591, 13695, 13711, 13759, 13959, 14143, 14175,
    14719, 14743, 14871, 15151, 15279, 15735, 15975, 16023, 16111, 16119, 16303, 16423, 16519, 16575, 16663,
    16719, 17335, 17583, 17815, 17871, 18175, 18271, 18343, 18655, 18831, 19023, 19575, 19719, 19863, 19951,
    19975, 19999, 20119, 20223, 20335, 21151, 21279, 21631, 21735, 21823, 21831, 22039, 22119, 22231, 22543,
    22639, 22935, 22975, 23119, 23191, 23559, 23583, 23799, 23863, 24135, 24295, 24343, 24591, 24679, 24703,
    24783, 25119, 25375, 25383, 25399, 25519, 25575, 25743, 25903, 25935, 25975, 25983, 25999, 26463, 26695,
    26751, 26895, 26935, 27223, 27655, 27831, 27903, 27951, 28335, 28543, 28599, 28663, 28815, 28903, 29175,
    29223, 29631, 29671, 29743, 29919, 30063, 30463, 30871, 30919, 31071, 31239, 31351, 31471, 31639, 31959,
    31983, 32095, 32695, 32743, 32799, 32863, 32935, 33103, 33535, 34503, 34719, 34735, 34783, 35223, 35535,
    35655, 35935, 35991, 36111, 36223, 36319, 36495, 36679, 36879, 36903, 36991, 37111, 37191, 37423, 37671,
    37735, 37815, 38695, 38815, 38823, 38895, 38991, 39199, 39303, 39423, 39663, 39711, 39879, 40183, 40215,
    40639, 40743, 40855, 41151, 41311, 41431, 41551,
];

/// Largest degree of a rational function that two points can decide. Beyond it the real numbers decide.
const MAX_DEGREE: u64 = 1 << 20;
/// Largest distance of two factorials' arguments that are written as one factorial and a product.
const MAX_FACTORIAL_STEP: u64 = 64;
/// The price of a keyed hash.
pub(crate) const HASH_COST: u64 = 300;
/// Primes that radicands are divided by. What is left below the square of the last one is a prime.
const MAX_TRIAL: u64 = 2_000;

/// Why an expression has no value in the field.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// A denominator vanishes at this point: take another.
    Pole,
    /// Not of the kind that this field can hold.
    Foreign,
    /// A bound was broken.
    NoValue(NoValue),
}

impl From<NoValue> for Obstacle {
    fn from(bound: NoValue) -> Self {
        Self::NoValue(bound)
    }
}

/// The secret of one reference, from which all points come.
#[derive(Clone, Debug)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// The key of a reference under the secret of a run.
    pub(crate) fn new(secret: u64, reference: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("plaudit math points 1");
        hasher.update(&secret.to_le_bytes());
        hasher.update(reference.as_bytes());
        Self(*hasher.finalize().as_bytes())
    }

    /// A number of 64 bits for a name, the same in every run with the same secret and reference.
    pub(crate) fn draw(&self, purpose: u8, round: u8, name: &[u8]) -> u64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&[purpose, round]);
        hasher.update(name);
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        u64::from_le_bytes(bytes)
    }
}

/// Arithmetic modulo one prime.
#[derive(Clone, Copy, Debug)]
struct Prime(u64);

impl Prime {
    fn add(self, a: u64, b: u64) -> u64 {
        let sum = a + b;
        if sum >= self.0 { sum - self.0 } else { sum }
    }

    fn sub(self, a: u64, b: u64) -> u64 {
        if a >= b { a - b } else { a + self.0 - b }
    }

    fn neg(self, a: u64) -> u64 {
        if a == 0 { 0 } else { self.0 - a }
    }

    fn mul(self, a: u64, b: u64) -> u64 {
        // The prime is 2^61 - d with a small d, so 2^61 is d: the upper half is multiplied by d and added, twice.
        let d = u128::from((1u64 << 61) - self.0);
        let mask = (1u128 << 61) - 1;
        let product = u128::from(a) * u128::from(b);
        let once = (product >> 61) * d + (product & mask);
        let twice = ((once >> 61) * d + (once & mask)) as u64;
        if twice >= self.0 { twice - self.0 } else { twice }
    }

    fn pow(self, mut base: u64, mut exponent: u64) -> u64 {
        let mut result = 1;
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = self.mul(result, base);
            }
            base = self.mul(base, base);
            exponent >>= 1;
        }
        result
    }

    fn inverse(self, a: u64) -> Result<u64, Obstacle> {
        if a == 0 { Err(Obstacle::Pole) } else { Ok(self.pow(a, self.0 - 2)) }
    }

    /// Whether a number that is no multiple of the prime is a square, by quadratic reciprocity.
    fn is_square(self, a: u64) -> bool {
        let (mut a, mut n) = (a % self.0, self.0);
        let mut sign = true;
        while a != 0 {
            let twos = a.trailing_zeros();
            a >>= twos;
            if twos % 2 == 1 && matches!(n % 8, 3 | 5) {
                sign = !sign;
            }
            if a % 4 == 3 && n % 4 == 3 {
                sign = !sign;
            }
            (a, n) = (n % a, a);
        }
        n == 1 && sign
    }

    /// A number that is no square.
    fn non_square(self) -> u64 {
        let mut other = 3;
        while self.is_square(other) {
            other += 2;
        }
        other
    }

    /// A square root of -1.
    fn imaginary(self) -> u64 {
        self.pow(self.non_square(), (self.0 - 1) / 4)
    }

    /// A square root by the method of Tonelli and Shanks; `a` is a square.
    fn sqrt(self, a: u64) -> u64 {
        let a = a % self.0;
        let twos = (self.0 - 1).trailing_zeros();
        let odd = (self.0 - 1) >> twos;
        let half = self.pow(a, (odd - 1) / 2);
        let mut root = self.mul(a, half);
        let mut rest = self.mul(root, half);
        if rest == 1 {
            return root;
        }
        let mut generator = self.pow(self.non_square(), odd);
        let mut order = twos;
        while rest != 1 {
            let mut power = rest;
            let mut step = 0;
            while power != 1 && step < order {
                power = self.mul(power, power);
                step += 1;
            }
            if step == 0 || step >= order {
                return 0;
            }
            let factor = self.pow(generator, 1 << (order - step - 1));
            generator = self.mul(factor, factor);
            order = step;
            root = self.mul(root, factor);
            rest = self.mul(rest, generator);
        }
        root
    }

    fn reduce(self, n: &UBig) -> u64 {
        n % self.0
    }

    fn rational(self, value: &RBig, work: &mut Work) -> Result<u64, Obstacle> {
        work.spend(1)?;
        let (num, den) = (value.numerator(), value.denominator());
        let top = self.reduce(&num.unsigned_abs());
        let top = if num.sign() == Sign::Negative { self.neg(top) } else { top };
        if den.is_one() {
            return Ok(top);
        }
        work.spend(61)?;
        Ok(self.mul(top, self.inverse(self.reduce(den))?))
    }
}

/// The square root of a rational as a rational times roots of different primes, and of -1.
#[derive(Debug)]
struct Radical {
    outside: RBig,
    primes: Vec<u64>,
    imaginary: bool,
}

/// Splits the square root of a rational. `None` if the radicand has a factor that is too large to be known as prime.
fn radical(value: &RBig, work: &mut Work) -> Result<Option<Radical>, NoValue> {
    let imaginary = value.sign() == Sign::Negative;
    // The root of n/d is the root of n*d over d.
    let product = value.numerator().unsigned_abs() * value.denominator();
    let Ok(mut rest) = u64::try_from(&product) else { return Ok(None) };
    work.spend(64)?;
    let mut outside = UBig::ONE;
    let mut primes = Vec::new();
    let mut factor: u64 = 2;
    while factor * factor <= rest && factor < MAX_TRIAL {
        let mut count = 0;
        while rest.is_multiple_of(factor) {
            rest /= factor;
            count += 1;
        }
        for _ in 0..count / 2 {
            outside *= factor;
        }
        if count % 2 == 1 {
            primes.push(factor);
        }
        factor += if factor == 2 { 1 } else { 2 };
    }
    if rest > 1 {
        let root = rest.isqrt();
        if root * root == rest {
            outside *= UBig::from(root);
        } else if rest < MAX_TRIAL * MAX_TRIAL {
            primes.push(rest);
        } else {
            return Ok(None);
        }
    }
    let outside = RBig::from_parts(outside.into(), value.denominator().clone());
    Ok(Some(Radical { outside, primes, imaginary }))
}

/// The radicand of a node that is the square root of a rational, and the odd power it is raised to.
fn radicand<'t>(tree: &'t Tree, node: &Node) -> Option<(&'t RBig, i64)> {
    match node {
        Node::Root { index: 2, of } => Some((tree.rational(*of)?, 1)),
        Node::Pow(base, exponent) => {
            let power = tree.rational(*exponent)?;
            let odd =
                i64::try_from(power.numerator().clone()).ok().filter(|odd| odd.unsigned_abs() <= 1 << 16)?;
            (*power.denominator() == UBig::from(2u8)).then_some((tree.rational(*base)?, odd))
        }
        _ => None,
    }
}

/// One point of one field, shared by the two sides of a comparison.
#[derive(Debug)]
pub(crate) struct Point<'k> {
    key: &'k Key,
    round: u8,
    prime: Prime,
    roots: Vec<(u64, u64)>,
    imaginary: u64,
    factorials: Vec<(u64, u64)>,
    opaque: bool,
}

impl<'k> Point<'k> {
    /// A point of a field that holds the radicals of all sides.
    pub(crate) fn new(
        sides: &[(&Tree, Expr)],
        key: &'k Key,
        round: u8,
        work: &mut Work,
    ) -> Result<Option<Self>, NoValue> {
        let mut primes: Vec<u64> = Vec::new();
        let mut imaginary = false;
        for (tree, expr) in sides {
            for (index, live) in tree.live(*expr).iter().enumerate() {
                let node = tree.node(expr.first + index as Id);
                if !live {
                    continue;
                }
                imaginary |= matches!(node, Node::I);
                if let Some((value, _)) = radicand(tree, node)
                    && let Some(found) = radical(value, work)?
                {
                    imaginary |= found.imaginary;
                    primes.extend(found.primes);
                }
            }
        }
        primes.sort_unstable();
        primes.dedup();
        let mut point = Self {
            key,
            round,
            prime: Prime(MERSENNE),
            roots: Vec::new(),
            imaginary: 0,
            factorials: Vec::new(),
            opaque: false,
        };
        if primes.is_empty() && !imaginary {
            return Ok(Some(point));
        }
        // Where to begin in the table is as secret as the points.
        let start = key.draw(b'f', round, b"") as usize;
        for step in 0..DISTANCES.len() {
            let prime = Prime((1 << 61) - u64::from(DISTANCES[(start + step) % DISTANCES.len()]));
            work.spend(100 * primes.len() as u64 + 100)?;
            if primes.iter().all(|radicand| prime.is_square(*radicand)) {
                work.spend(1_000 * (primes.len() as u64 + 1))?;
                point.prime = prime;
                point.imaginary = if imaginary { prime.imaginary() } else { 0 };
                point.roots = primes.iter().map(|radicand| (*radicand, prime.sqrt(*radicand))).collect();
                return Ok(Some(point));
            }
        }
        Ok(None)
    }

    /// Whether a part of what was evaluated is opaque, so that a difference proves nothing.
    pub(crate) fn is_opaque(&self) -> bool {
        self.opaque
    }

    pub(crate) fn mul(&self, a: u64, b: u64) -> u64 {
        self.prime.mul(a, b)
    }

    /// Moves to another point of the same field.
    pub(crate) fn move_to(&mut self, round: u8) {
        self.round = round;
        self.factorials.clear();
    }

    fn named(&self, name: &str) -> u64 {
        self.key.draw(b'x', self.round, name.as_bytes()) % self.prime.0
    }

    /// The value of an opaque function: a hash of its name and its arguments.
    fn hash(&self, name: &str, arguments: &[u64]) -> u64 {
        let mut bytes = Vec::with_capacity(name.len() + 1 + arguments.len() * 8);
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        for argument in arguments {
            bytes.extend_from_slice(&argument.to_le_bytes());
        }
        self.key.draw(b'o', self.round, &bytes) % self.prime.0
    }

    /// The factorial of a field element: of arguments a small distance apart one is the other times a product.
    fn factorial(&mut self, argument: u64) -> Result<u64, Obstacle> {
        let p = self.prime;
        for (anchor, value) in &self.factorials {
            let up = p.sub(argument, *anchor);
            let down = p.sub(*anchor, argument);
            if up <= MAX_FACTORIAL_STEP {
                return Ok((1..=up).fold(*value, |product, step| p.mul(product, p.add(*anchor, step))));
            }
            if down <= MAX_FACTORIAL_STEP {
                let product = (1..=down).fold(1, |product, step| p.mul(product, p.add(argument, step)));
                return Ok(p.mul(*value, p.inverse(product)?));
            }
        }
        let value = self.hash("!", &[argument]);
        self.factorials.push((argument, value));
        Ok(value)
    }

    /// The value of an expression at this point.
    pub(crate) fn eval(&mut self, tree: &Tree, expr: Expr, work: &mut Work) -> Result<u64, Obstacle> {
        let live = tree.live(expr);
        // The value and an upper bound of the degree of each node.
        let mut values: Vec<(u64, u64)> = vec![(0, 0); live.len()];
        for index in 0..live.len() {
            if live[index] {
                let id = expr.first + index as Id;
                let value = self.node(tree, id, |child| values[(child - expr.first) as usize], work)?;
                if value.1 > MAX_DEGREE {
                    return Err(Obstacle::Foreign);
                }
                values[index] = value;
            }
        }
        Ok(values[live.len() - 1].0)
    }

    fn node(
        &mut self,
        tree: &Tree,
        id: Id,
        of: impl Fn(Id) -> (u64, u64),
        work: &mut Work,
    ) -> Result<(u64, u64), Obstacle> {
        let p = self.prime;
        work.spend(5)?;
        if matches!(
            tree.node(id),
            Node::Call(..) | Node::Root { .. } | Node::Apply(..) | Node::BigOperator { .. } | Node::Pow(..)
        ) {
            work.spend(HASH_COST)?;
        }
        if let Some((value, odd)) = radicand(tree, tree.node(id))
            && let Some(found) = radical(value, work)?
        {
            return Ok((self.root(&found, odd, work)?, 0));
        }
        Ok(match tree.node(id) {
            Node::Number(value) => (p.rational(value, work)?, 0),
            Node::Letter(name) => {
                work.spend(HASH_COST)?;
                (self.named(tree.name(*name)), 1)
            }
            Node::Pi => (self.named("\0pi"), 1),
            Node::E => (self.named("\0e"), 1),
            Node::I => (self.imaginary, 0),
            // An end of a sum; anywhere else it has no value and does not come here.
            Node::Infinity => (self.named("\0infinity"), 1),
            Node::Sum(terms) => terms.iter().fold((0, 0), |(sum, degree), term| {
                let (value, other) = of(*term);
                // A sum of fractions has the sum of their degrees.
                (p.add(sum, value), degree + other)
            }),
            Node::Product(factors) => factors.iter().fold((1, 0), |(product, degree), factor| {
                let (value, other) = of(*factor);
                (p.mul(product, value), degree + other)
            }),
            Node::Neg(a) => (p.neg(of(*a).0), of(*a).1),
            Node::Div(a, b) => {
                work.spend(61)?;
                (p.mul(of(*a).0, p.inverse(of(*b).0)?), of(*a).1 + of(*b).1)
            }
            Node::Pow(base, exponent) => {
                let whole = tree.rational(*exponent).filter(|power| power.is_int());
                let whole = whole.and_then(|power| i64::try_from(power.numerator().clone()).ok());
                if let Some(power) = whole.filter(|power| power.unsigned_abs() <= MAX_DEGREE) {
                    work.spend(61)?;
                    let (value, degree) = of(*base);
                    let raised = p.pow(value, power.unsigned_abs());
                    let raised = if power < 0 { p.inverse(raised)? } else { raised };
                    (raised, degree.saturating_mul(power.unsigned_abs()))
                } else {
                    self.opaque("^", &[of(*base).0, of(*exponent).0])
                }
            }
            Node::Call(Function::Factorial, a) => {
                work.spend(200)?;
                (self.factorial(of(*a).0)?, of(*a).1.saturating_mul(MAX_FACTORIAL_STEP))
            }
            Node::Binomial(n, k) => {
                work.spend(400)?;
                let (top, degree) = of(*n);
                let small =
                    tree.rational(*k).and_then(number::small).filter(|k| u64::from(*k) <= MAX_FACTORIAL_STEP);
                if let Some(k) = small {
                    let (mut up, mut down) = (1, 1);
                    for step in 0..u64::from(k) {
                        up = p.mul(up, p.sub(top, step));
                        down = p.mul(down, step + 1);
                    }
                    (p.mul(up, p.inverse(down)?), degree.saturating_mul(u64::from(k)))
                } else {
                    let bottom = of(*k).0;
                    let up = self.factorial(top)?;
                    let one = self.factorial(bottom)?;
                    let other = self.factorial(p.sub(top, bottom))?;
                    (p.mul(up, p.inverse(p.mul(one, other))?), degree + of(*k).1)
                }
            }
            Node::Root { index, of: a } => self.opaque(&format!("root{index}"), &[of(*a).0]),
            Node::Call(function, a) => self.opaque(&format!("{function:?}"), &[of(*a).0]),
            Node::Log { base, of: a } => self.opaque("log", &[of(*base).0, of(*a).0]),
            Node::NaryFunction(fold, ids) => {
                let mut values: Vec<u64> = ids.iter().map(|id| of(*id).0).collect();
                values.sort_unstable();
                self.opaque(&format!("{fold:?}"), &values)
            }
            // An unknown function of equal arguments is equal, of unequal ones it is taken to differ.
            Node::Apply(name, ids) => {
                let values: Vec<u64> = ids.iter().map(|id| of(*id).0).collect();
                (self.hash(tree.name(*name), &values), 1)
            }
            Node::BigOperator { op, low, high, body } => {
                (self.hash(&format!("{op:?}"), &[of(*low).0, of(*high).0, of(*body).0]), 1)
            }
        })
    }

    fn opaque(&mut self, name: &str, arguments: &[u64]) -> (u64, u64) {
        self.opaque = true;
        (self.hash(name, arguments), 1)
    }

    fn root(&self, radical: &Radical, odd: i64, work: &mut Work) -> Result<u64, Obstacle> {
        let p = self.prime;
        let mut value = p.rational(&radical.outside, work)?;
        for prime in &radical.primes {
            let root = self.roots.iter().find(|(known, _)| known == prime).ok_or(Obstacle::Foreign)?;
            value = p.mul(value, root.1);
        }
        if radical.imaginary {
            value = p.mul(value, self.imaginary);
        }
        work.spend(64)?;
        let raised = p.pow(value, odd.unsigned_abs());
        if odd < 0 { p.inverse(raised) } else { Ok(raised) }
    }
}

/// Attempts to find a point that is no pole.
const MAX_POLES: u8 = 6;

/// What a field says about two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Equal,
    /// Equal wherever both are defined, which opaque parts may not be.
    EqualIfDefined,
    Different,
    /// Not to be told in a field.
    Open,
}

/// Compares two expressions.
pub(crate) fn compare(
    a: (&Tree, Expr),
    b: (&Tree, Expr),
    key: &Key,
    work: &mut Work,
) -> Result<Decision, NoValue> {
    let mut agreed = 0;
    for round in 0..MAX_POLES {
        let Some(mut point) = Point::new(&[a, b], key, round, work)? else { return Ok(Decision::Open) };
        let values = point.eval(a.0, a.1, work).and_then(|left| Ok((left, point.eval(b.0, b.1, work)?)));
        match values {
            Ok((left, right)) if left == right => agreed += 1,
            Ok(_) => return Ok(if point.is_opaque() { Decision::Open } else { Decision::Different }),
            Err(Obstacle::Pole) => continue,
            Err(Obstacle::Foreign) => return Ok(Decision::Open),
            Err(Obstacle::NoValue(bound)) => return Err(bound),
        }
        if agreed == 2 {
            return Ok(if point.is_opaque() { Decision::EqualIfDefined } else { Decision::Equal });
        }
    }
    Ok(Decision::Open)
}

/// Whether the quotient of two expressions is the same constant at several points, which is neither zero nor infinite.
pub(crate) fn proportional(
    a: (&Tree, Expr),
    b: (&Tree, Expr),
    key: &Key,
    work: &mut Work,
) -> Result<Option<bool>, NoValue> {
    let Some(mut point) = Point::new(&[a, b], key, 0, work)? else { return Ok(None) };
    let mut first: Option<(u64, u64)> = None;
    let mut agreed = 0;
    for round in 0..MAX_POLES {
        point.move_to(round);
        let values = point.eval(a.0, a.1, work).and_then(|left| Ok((left, point.eval(b.0, b.1, work)?)));
        let (left, right) = match values {
            Ok(values) => values,
            Err(Obstacle::Pole) => continue,
            Err(Obstacle::Foreign) => return Ok(None),
            Err(Obstacle::NoValue(bound)) => return Err(bound),
        };
        if (left == 0) != (right == 0) {
            return Ok(if point.is_opaque() { None } else { Some(false) });
        }
        if left == 0 {
            continue;
        }
        match first {
            None => first = Some((left, right)),
            Some((up, down)) if point.mul(up, right) == point.mul(left, down) => agreed += 1,
            Some(_) => return Ok(if point.is_opaque() { None } else { Some(false) }),
        }
        if agreed == 2 {
            return Ok(Some(true));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn square_roots_are_roots() {
        for distance in DISTANCES.iter().take(20) {
            let p = Prime((1 << 61) - u64::from(*distance));
            for a in [2u64, 3, 5, 7, 163, 1_000_003] {
                if p.is_square(a) {
                    let root = p.sqrt(a);
                    assert_eq!(p.mul(root, root), a);
                }
            }
            let i = p.imaginary();
            assert_eq!(p.mul(i, i), p.0 - 1);
        }
    }

    #[test]
    fn mersenne_remainder() {
        let p = Prime(MERSENNE);
        let (a, b) = (MERSENNE - 1, MERSENNE - 2);
        assert_eq!(p.mul(a, b), (u128::from(a) * u128::from(b) % u128::from(MERSENNE)) as u64);
        assert_eq!(p.mul(p.inverse(12345).unwrap(), 12345), 1);
    }

    #[test]
    fn radicals_split() {
        let mut work = Work::new();
        let found = radical(&RBig::from(72u8), &mut work).unwrap().unwrap();
        assert_eq!((found.outside, found.primes, found.imaginary), (RBig::from(6u8), vec![2], false));
    }
}
