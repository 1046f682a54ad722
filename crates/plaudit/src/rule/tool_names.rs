//! Names of tools with dots in them, under the names that a model calls them by where its API refuses dots.

use std::collections::BTreeMap;

/// Names with dots by what they are with underscores in their place; nothing where two names would be the same.
pub(super) struct DottedNames<'n>(BTreeMap<String, Option<&'n str>>);

impl<'n> DottedNames<'n> {
    /// Of all names that there are.
    pub(super) fn of(names: impl Iterator<Item = &'n str> + Clone) -> Self {
        let mut dotted = BTreeMap::new();
        for name in names.clone().filter(|name| name.contains('.')) {
            let known = dotted.entry(name.replace('.', "_")).or_insert(Some(name));
            *known = known.filter(|known| *known == name);
        }
        if !dotted.is_empty() {
            for name in names {
                if let Some(known) = dotted.get_mut(name) {
                    *known = None;
                }
            }
        }
        Self(dotted)
    }

    /// The name that is meant by one.
    pub(super) fn meant<'m>(&self, name: &'m str) -> &'m str
    where
        'n: 'm,
    {
        self.0.get(name).copied().flatten().unwrap_or(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underscores_stand_for_dots_where_that_is_one_name() {
        let names = DottedNames::of(["math.sum", "a.b", "a_b", "c.d_e", "c_d.e", "plain"].into_iter());
        for (called, meant) in [
            ("math_sum", "math.sum"),
            ("math.sum", "math.sum"),
            ("a_b", "a_b"),
            ("a.b", "a.b"),
            ("c_d_e", "c_d_e"),
            ("plain", "plain"),
            ("sum", "sum"),
        ] {
            assert_eq!(names.meant(called), meant);
        }
    }
}
