//! Are all mistakes of a recipe told at once, with place, code and a likely fix?

use plaudit::recipe::{Recipe, schema, shipped};

fn mistakes(yaml: &str) -> Vec<String> {
    match Recipe::from_yaml(yaml).and_then(|recipe| recipe.plan().map(|_| ())) {
        Ok(()) => Vec::new(),
        Err(mistakes) => mistakes.into_iter().map(|mistake| mistake.to_string()).collect(),
    }
}

#[test]
fn every_mistake_has_its_place_its_code_and_a_fix() {
    let found = mistakes(
        "components:
  a: { reward: lenght_penalty }
  b: { reward: length_penalty, wieght: 1.0, min_length: many }
  c: 3
  d: { reward: length_penalty, gate: { mni: 1 } }
combine: some
groups: { timeout: 3 }
extra: 1
",
    );
    let wanted = [
        r#"line 2, components.a.reward: there is no reward "lenght_penalty" (recipe.unknown_reward); did you mean "length_penalty"?"#,
        "line 3, components.b.min_length",
        "line 3, components.b.wieght",
        "line 4, components.c",
        "line 5, components.d.gate.min",
        "line 5, components.d.gate.mni",
        "line 6, combine",
        "line 7, groups.timeout",
        "line 8, extra",
    ];
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(found.starts_with(wanted), "{found}\nis not\n{wanted}");
    }
}

#[test]
fn a_recipe_that_gives_no_total_is_refused() {
    for (yaml, code) in [
        ("components: {}\n", "recipe.no_components"),
        ("name: x\n", "recipe.no_components"),
        ("components: { a: { reward: length_penalty, weight: 0 } }\n", "recipe.zero_weight"),
        (
            "combine: mean\ncomponents: { a: { reward: length_penalty }, b: { reward: length_penalty, weight: -1 } }\n",
            "recipe.zero_weight",
        ),
        ("components: { a: { reward: length_penalty } }\ngroups: { timeout: 0s }\n", "recipe.duration"),
        ("components: { a b: { reward: length_penalty } }\n", "recipe.name"),
        ("route: { by: data_source, cases: { a: quickstart } }\n", "recipe.route"),
        ("route: { by: extra.k, cases: { a: quickstrat } }\n", "recipe.not_found"),
    ] {
        let found = mistakes(yaml);
        assert!(found.len() == 1 && found[0].contains(code), "{yaml}: {found:?}");
    }
}

#[test]
fn overrides_are_checked_like_what_was_written() {
    let mut recipe = Recipe::named("quickstart").unwrap();
    recipe.set("groups.parallel", "3").unwrap();
    assert_eq!(recipe.plan().unwrap().groups.parallel, Some(3));
    recipe.set("groups.parallel", "many").unwrap();
    assert!(recipe.plan().unwrap_err().to_string().contains("groups.parallel"));
}

#[test]
fn every_shipped_recipe_is_good_and_says_what_it_is_for() {
    let schema = schema();
    assert!(schema["properties"]["components"]["additionalProperties"]["anyOf"].is_array());
    for (name, text) in shipped() {
        assert!(text.starts_with("# "), "{name} opens with a comment");
        let plan =
            Recipe::named(name).and_then(|recipe| recipe.plan()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(plan.name, *name);
    }
}
