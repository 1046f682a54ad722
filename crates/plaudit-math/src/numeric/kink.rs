//! Functions that bend: an absolute value and the largest or least of several numbers take one of their branches.
//!
//! That two expressions agree at points of one branch says nothing about another. A branch that no point took is taken
//! by force, at a point where another one is right: expressions that are equal by the laws of these functions agree
//! there too, and others differ, whatever the points are.

use dashu_int::ops::{BitTest, UnsignedAbs};
use dashu_int::{IBig, Sign};

use super::step::LEADING;
use super::{Complex, Evaluation, real};
use crate::ball::{Ball, BallError};
use crate::expr::{Function, Id, NaryFunction, Node, Tree};

/// Levels of an expression that are looked through for its sign.
const MAX_LEVELS: u32 = 8;

/// The leading bits of a number and their exponent, by which it is known.
type Leading = (IBig, i64);

/// One function that bends, and the branches that points took.
#[derive(Debug)]
pub(super) struct Kink {
    /// The side of the comparison and the node.
    at: (bool, Id),
    /// The branches that were taken, a bit for each.
    taken: u64,
    /// The round of the first point, the branch that it took, and all branches there.
    pub(super) round: u8,
    branch: usize,
    branches: Vec<Leading>,
}

impl Kink {
    /// The changes of branch that no point has made: from the one that is right to another.
    pub(super) fn untried(&self) -> impl Iterator<Item = Flip> + '_ {
        let open = |branch: &usize| *branch < 64 && self.taken & (1 << branch) == 0;
        (0..self.branches.len()).filter(open).map(|branch| Flip {
            from: self.branches[self.branch].clone(),
            to: self.branches[branch].clone(),
        })
    }
}

/// A branch that is taken by force, wherever the same choice is made.
#[derive(Debug)]
pub(super) struct Flip {
    from: Leading,
    to: Leading,
}

/// Whether a node bends. The absolute value of a complex number does not.
pub(super) fn bends<'v>(node: &Node, of: &impl Fn(Id) -> Result<&'v Complex, BallError>) -> bool {
    match node {
        Node::Call(Function::Abs, a) => of(*a).is_ok_and(Complex::is_real),
        Node::NaryFunction(NaryFunction::Max | NaryFunction::Min, _) => true,
        _ => false,
    }
}

impl Evaluation<'_, '_> {
    /// The value of a real function of letters that bends.
    pub(super) fn bent<'v>(
        &mut self,
        tree: &Tree,
        id: Id,
        of: &impl Fn(Id) -> Result<&'v Complex, BallError>,
    ) -> Result<Ball, BallError> {
        let mut choices: Vec<Ball> = Vec::new();
        let mut least = false;
        match tree.node(id) {
            Node::Call(_, a) => {
                let x = real(of(*a)?)?;
                if x.is_zero() || is_nonnegative(tree, *a, MAX_LEVELS) {
                    return Ok(x.clone());
                }
                choices.extend([x.clone(), x.clone().neg()]);
            }
            Node::NaryFunction(fold, ids) => {
                least = *fold == NaryFunction::Min;
                for id in ids {
                    choices.push(real(of(*id)?)?.clone());
                }
            }
            _ => return Err(BallError::NotReal),
        }
        let mut branch = 0;
        for (index, choice) in choices.iter().enumerate().skip(1) {
            let difference = self.context.sub(choice, &choices[branch])?;
            match difference.sign() {
                Some(sign) if (sign == Sign::Positive) != least => branch = index,
                Some(_) => {}
                None if difference.is_zero() => {}
                None => return Err(BallError::Imprecise),
            }
        }
        let branches: Vec<Leading> = choices.iter().map(|choice| choice.leading(LEADING)).collect();
        if let Some(flip) = self.flip {
            // The order of the two is turned, so that the least changes with the largest.
            let other = match &branches[branch] {
                right if *right == flip.from => Some(&flip.to),
                right if *right == flip.to => Some(&flip.from),
                _ => None,
            };
            if let Some(forced) = branches.iter().position(|choice| Some(choice) == other) {
                branch = forced;
            }
        } else {
            self.record(id, branch, branches);
        }
        choices.into_iter().nth(branch).ok_or(BallError::NotReal)
    }

    fn record(&mut self, id: Id, branch: usize, branches: Vec<Leading>) {
        let (at, round) = ((self.right, id), self.points.round);
        self.kinks.push(Kink { at, taken: 1 << branch.min(63), round, branch, branches });
    }
}

/// Adds the branches that a point took to those of the points before it. The first point stays, as numbers far from zero
/// are alike in their leading bits.
pub(super) fn merge(seen: &mut Vec<Kink>, kinks: Vec<Kink>) {
    for kink in kinks {
        match seen.iter_mut().find(|known| known.at == kink.at) {
            Some(known) => known.taken |= kink.taken,
            None => seen.push(kink),
        }
    }
}

/// Whether a real expression cannot be negative, as a sum of squares.
fn is_nonnegative(tree: &Tree, id: Id, levels: u32) -> bool {
    if levels == 0 {
        return false;
    }
    let all = |ids: &[Id]| ids.iter().all(|id| is_nonnegative(tree, *id, levels - 1));
    match tree.node(id) {
        Node::Number(value) => value.sign() == Sign::Positive || value.is_zero(),
        Node::Pi | Node::E | Node::Call(Function::Abs | Function::Cosh, _) => true,
        Node::Root { index, .. } => index % 2 == 0,
        Node::Sum(ids) | Node::Product(ids) | Node::NaryFunction(NaryFunction::Min, ids) => all(ids),
        Node::NaryFunction(NaryFunction::Max, ids) => {
            ids.iter().any(|id| is_nonnegative(tree, *id, levels - 1))
        }
        Node::Div(a, b) => all(&[*a, *b]),
        Node::Pow(base, exponent) => {
            let even = tree.rational(*exponent).is_some_and(|power| {
                !power.denominator().bit(0) || power.is_int() && !power.numerator().unsigned_abs().bit(0)
            });
            even || is_nonnegative(tree, *base, levels - 1)
        }
        _ => false,
    }
}
