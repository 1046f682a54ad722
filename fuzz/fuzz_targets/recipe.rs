//! Can a recipe break its reader? Any text is a plan or a list of errors with codes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plaudit::recipe::{Node, Recipe};

fuzz_target!(|text: &str| {
    if let Err(errors) = Recipe::from_yaml(text).and_then(|recipe| recipe.plan()) {
        assert!(errors.as_slice().iter().all(|error| error.code.starts_with("recipe.")));
    }
    let _ = Node::from_json(text);
    let _ = Recipe::named("quickstart").map(|mut recipe| recipe.set(text, text));
});
