//! Shipped recipes of `crates/plaudit/recipes/`, compiled in and found by name.

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../recipes/", $name, ".yaml")))),+]
    };
}

/// The names and texts of the shipped recipes.
pub fn shipped() -> &'static [(&'static str, &'static str)] {
    shipped![
        "quickstart",
        "math",
        "code",
        "safety",
        "writing",
        "tools",
        "open_r1",
        "lengths",
        "tutorial",
        "overlap",
        "judged"
    ]
}
