//! Errors in recipes: all at once, with line, code and a likely fix.

use crate::timing::cpu_time;
use plaudit::engine::Engine;
use plaudit::outcome::{Info, Outcome};
use plaudit::recipe::{Recipe, schema, shipped};
use plaudit::reward::{Properties, Range};
use plaudit::rollout::Rollout;
use plaudit::rule::RuleInput;
use plaudit::rule::custom::{Custom, CustomCall, CustomKind};

fn errors(yaml: &str) -> Vec<String> {
    match Recipe::from_yaml(yaml).and_then(|recipe| recipe.plan().map(|_| ())) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.into_iter().map(|error| error.to_string()).collect(),
    }
}

#[test]
fn every_mistake_has_its_place_its_code_and_a_fix() {
    let found = errors(
        "components:
  a: { reward: lenght_penalty }
  b: { reward: length_penalty, wieght: 1.0, min_length: many }
  c: 3
  d: { reward: length_penalty, gate: { mni: 1 } }
combine: some
groups: { timeout: 5 minutes, paralel: 2 }
route: { by: kind, cases: { a: quickstrat } }
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
        "line 7, groups.paralel",
        "line 7, groups.timeout",
        "line 8, route.by",
        r#"line 8, route.cases.a: there is neither a shipped recipe nor a file "quickstrat" (recipe.not_found); did you mean "quickstart"?"#,
        "line 9, extra",
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
        ("route: { by: [extra.a, b], cases: { a: quickstart } }\n", "recipe.route"),
        ("route: { by: [], cases: { a: quickstart } }\n", "recipe.route"),
        ("route: { by: extra.k, cases: { a: quickstrat } }\n", "recipe.not_found"),
    ] {
        let found = errors(yaml);
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

/// Every hostile recipe is refused with an error, in time. The cases that the contract words otherwise are told
/// in its words below.
#[test]
fn hostile_recipes_are_refused_in_time() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/abuse/recipe_cases.jsonl");
    let cases = std::fs::read_to_string(path).unwrap();
    let mut count = 0;
    for case in cases.lines() {
        let case: serde_json::Value = serde_json::from_str(case).unwrap();
        let (id, payload) = (case["id"].as_str().unwrap(), case["payload"].as_str().unwrap());
        let started = cpu_time();
        let found = errors(payload);
        let limit = case["expect"]["max_ms"].as_u64().unwrap() * if cfg!(debug_assertions) { 10 } else { 1 };
        let took = cpu_time() - started;
        assert!(took.as_millis() <= u128::from(limit), "{id} took {took:?}");
        // None of the payloads is a whole recipe by the contract, so each has at least one error.
        assert!(!found.is_empty(), "{id} is accepted: {payload}");
        assert!(!found.iter().any(|error| error.contains("THISISASECRET")), "{id} shows a secret");
        assert!(!found.iter().any(|error| error.contains("root:")), "{id} quotes a file");
        count += 1;
    }
    assert_eq!(count, 37);
}

#[test]
fn hostile_values_are_refused_with_their_code() {
    let inside = |line: &str| format!("components:\n  a: {{ reward: length_penalty, {line} }}\n");
    for (line, code) in [
        ("weight: .nan", "recipe.number"),
        ("weight: .inf", "recipe.number"),
        ("weight: 1e400", "recipe.number"),
        ("weight: no", "recipe.type"),
        ("weight: 012", "recipe.type"),
        ("weight: 1, weight: 2", "recipe.duplicate_key"),
        ("weight: !!float 1", "recipe.tag"),
        ("weight: &a 1", "recipe.anchors"),
        ("min_length: -5", "recipe.range"),
        ("min_length: 1.0", "recipe.type"),
        ("prompt: \"${HOME}\"", "recipe.env"),
        ("api_key: sk-THISISASECRET", "recipe.inline_secret"),
        ("include: ../../../../etc/passwd", "recipe.unknown_key"),
    ] {
        let found = errors(&inside(line));
        assert!(found.iter().any(|error| error.contains(code)), "{line}: {found:?}");
    }
    // A recipe may start with a byte order mark, and weights may cancel in a sum.
    assert_eq!(errors(&format!("\u{feff}{}", inside("weight: 1"))), Vec::<String>::new());
    let cancel = "components: { a: { reward: length_penalty }, b: { reward: length_penalty, weight: -1 } }\n";
    assert_eq!(errors(cancel), Vec::<String>::new());
}

#[test]
fn only_recipes_below_the_folder_can_be_routed_to() {
    let folder = std::env::temp_dir().join(format!("plaudit-recipes-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("more")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("more/own.yaml", "components: { a: { reward: length_penalty } }\n");
    write("good.yaml", "route: { by: extra.k, cases: { a: more/own.yaml, b: quickstart } }\n");
    write("up.yaml", "route: { by: extra.k, cases: { a: ../../etc/passwd } }\n");
    write("absolute.yaml", "route: { by: extra.k, cases: { a: /dev/zero } }\n");
    write("loop.yaml", "route: { by: extra.k, cases: { a: loop2.yaml } }\n");
    write("loop2.yaml", "route: { by: extra.k, cases: { a: loop.yaml } }\n");
    write("own.json", r#"{"components": {"a": {"reward": "length_penalty", "weigth": 2}}}"#);
    let told = |name: &str| {
        let recipe = Recipe::named(folder.join(name).to_str().unwrap());
        recipe.and_then(|recipe| recipe.plan().map(|_| ())).err().map_or_else(String::new, |e| e.to_string())
    };
    assert_eq!(told("good.yaml"), "");
    assert!(told("up.yaml").contains("recipe.path"));
    assert!(told("absolute.yaml").contains("recipe.path"));
    assert!(told("loop.yaml").contains("recipe.route_depth"));
    assert!(told("own.json").contains(r#"did you mean "weight"?"#), "{}", told("own.json"));
    assert!(Recipe::named("/dev/zero").unwrap_err().to_string().contains("not a regular file"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_wrong_with_a_judge_is_said_where_it_is_and_once() {
    let asks = "components: { q: { reward: principle, mode: pairwise, principles: [helpfulness] } }\n";
    let found = errors(&format!("{asks}judges: {{ main: {{ base_url: \"localhost:8000\", model: m }} }}\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("judges.main.base_url"), "{found:?}");
    assert_eq!(errors(asks).len(), 1, "none at all is told where it is asked");
}

#[test]
fn a_ranking_by_probabilities_is_refused() {
    let told = |component: &str, verdict: &str| {
        let judge = format!("base_url: \"http://h/v1\", model: m, answer_format: {verdict}");
        let yaml = format!("components: {{ q: {{ {component} }} }}\njudges: {{ main: {{ {judge} }} }}\n");
        Recipe::from_yaml(&yaml).and_then(|recipe| recipe.plan()).err().map(|errors| errors.to_string())
    };
    let ranks = "reward: principle, mode: listwise, principles: [helpfulness]";
    let found = told(ranks, "logprobs").unwrap();
    assert!(found.contains("line 1, components.q.mode: mode listwise asks for a ranking"), "{found}");
    assert!(found.contains("set judges.main.answer_format to auto or json"), "{found}");
    assert_eq!(told(ranks, "json").or(told(ranks, "auto")), None);
    assert_eq!(told("reward: principle, principles: [helpfulness]", "logprobs"), None);
    let own =
        "reward: judge, mode: listwise, prompt: \"{{ fence }} {{ responses }}\", answer: { label: logprobs }";
    assert!(told(own, "auto").unwrap().contains("label: whole"), "{:?}", told(own, "auto"));
}

#[test]
fn errors_of_values_name_what_was_probably_meant() {
    let told = |line: &str| {
        errors(&format!("components: {{ a: {{ reward: length_penalty }} }}\n{line}\n")).join("\n")
    };
    assert!(told("combine: average").contains("did you mean \"mean\"?"), "{}", told("combine: average"));
    assert!(
        told("combine: product").ends_with("found text \"product\" (recipe.choice)"),
        "{}",
        told("combine: product")
    );
    let weight = errors("components: { a: { reward: length_penalty, weight: yes } }\n").join("\n");
    assert!(weight.contains("a number where one is wanted"), "{weight}");
}

#[test]
fn a_misspelt_override_names_its_neighbour() {
    for (path, value, wanted) in [
        ("components.fromat.weight", "0.1", "did you mean components.format?"),
        ("judges.man.base_url", "http://h/v1", "did you mean judges.main?"),
    ] {
        let mut recipe = Recipe::named("tutorial").unwrap();
        recipe.set(path, value).unwrap();
        let said = recipe.plan().unwrap_err().to_string();
        assert!(said.contains(wanted), "{path}: {said}");
    }
    let mut recipe = Recipe::named("tutorial").unwrap();
    recipe.set("components.format2", "{ reward: reasoning_format, weight: 0.1 }").unwrap();
    assert!(recipe.plan().is_ok(), "a new component with a name like another's is good");
}

#[test]
fn a_part_of_a_rewards_name_finds_it() {
    let found = errors("components: { a: { reward: ngram } }\n");
    assert!(found[0].ends_with("did you mean \"ngram_repetition_penalty\"?"), "{found:?}");
}

#[test]
fn a_recipes_name_is_visible_text() {
    let named =
        |name: &str| errors(&format!("name: {name}\ncomponents: {{ a: {{ reward: length_penalty }} }}\n"));
    for good in ["tutorial", "\"my run, 2nd\"", "运行"] {
        assert_eq!(named(good), [""; 0], "{good}");
    }
    for bad in ["\"a\\0b\"", "\"\\e[31m\"", "\"\"", "\" a\"", "\"a\\u202eb\"", &"a".repeat(65)] {
        let found = named(bad);
        assert!(found.len() == 1 && found[0].contains("(recipe.name)"), "{bad}: {found:?}");
    }
}

#[test]
fn key_paths_carry_no_control_characters() {
    let found = errors("components:\n  \"f\\e[31m\": { reward: accuracy }\n");
    assert!(found[0].contains("recipe.name") && !found[0].contains('\u{1b}'), "{found:?}");
}

#[test]
fn a_route_follows_no_link_out_of_the_folder() {
    let folder = std::env::temp_dir().join(format!("plaudit-route-{}", std::process::id()));
    let (inside, outside) = (folder.join("inside"), folder.join("outside.yaml"));
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::write(&outside, "root:x:0:0\n").unwrap();
    std::fs::write(inside.join("near.yaml"), "components: { a: { reward: length_penalty } }\n").unwrap();
    std::os::unix::fs::symlink(&outside, inside.join("link.yaml")).unwrap();
    std::os::unix::fs::symlink("near.yaml", inside.join("alias.yaml")).unwrap();
    let routed = |name: &str| {
        let file = inside.join("route.yaml");
        std::fs::write(&file, format!("route: {{ by: extra.k, cases: {{ a: {name} }} }}\n")).unwrap();
        Recipe::from_file(&file).and_then(|recipe| recipe.plan().map(|_| ()))
    };
    assert_eq!((routed("near.yaml"), routed("alias.yaml")), (Ok(()), Ok(())));
    let said = routed("link.yaml").unwrap_err().to_string();
    assert!(said.contains("recipe.path") && !said.contains("root:"), "{said}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_bad_pattern_and_a_prompt_without_braces_say_where() {
    let found = errors("components: { a: { reward: regex, pattern: \"ab([\" } }\n");
    assert!(found[0].contains("unclosed character class, at character 4"), "{found:?}");
    let found = errors(
        "components: { a: { reward: judge, mode: pointwise, prompt: Rate this., answer: { json: score, min: 0, max: 1 } } }\njudges: { main: { base_url: http://h/v1, model: m } }\n",
    );
    assert!(found[0].contains("a prompt without {{ }} names a file"), "{found:?}");
}

#[test]
fn a_duration_without_a_unit_is_told_how_to_be_written() {
    for groups in ["timeout: 60", "timeout: \"60\"", "quiet: 1.5"] {
        let yaml = format!("components: {{ a: {{ reward: length_penalty }} }}\ngroups: {{ {groups} }}\n");
        let told = Recipe::from_yaml(&yaml).unwrap().plan().unwrap_err().to_string();
        assert!(told.contains("write it like 300s") && !told.contains("in quotes"), "{groups}: {told}");
    }
}

/// A reward that gives everybody the same number.
struct Same(f64);

impl Custom for Same {
    fn properties(&self) -> Properties {
        Properties::new(Range::new(self.0, self.0))
    }

    fn compares(&self) -> bool {
        false
    }

    fn score(&self, groups: &[Vec<RuleInput<'_>>], _: &CustomCall) -> Vec<Vec<Outcome>> {
        let same = |group: &Vec<RuleInput<'_>>| vec![Outcome::scored(self.0, Info::none()); group.len()];
        groups.iter().map(same).collect()
    }
}

fn same(value: f64) -> CustomKind {
    let schema = serde_json::json!({ "type": "object", "properties": {}, "required": [] });
    let build = move |_| -> Result<Box<dyn Custom>, _> { Ok(Box::new(Same(value))) };
    CustomKind { name: "same".to_owned(), page: String::new(), schema, build: Box::new(build) }
}

#[test]
fn a_recipe_is_loaded_with_rewards_of_its_own() {
    let recipe = Recipe::from_yaml("components: { a: { reward: same } }\n").unwrap();
    assert!(recipe.plan().unwrap_err().to_string().contains("recipe.unknown_reward"));
    for value in [1.0, 2.0] {
        let engine = Engine::new(recipe.plan_with(&[same(value)]).unwrap()).unwrap();
        let report = engine.score(&[Rollout::new("x")]).unwrap();
        assert_eq!(report.rows[0].total.value(), Some(value));
    }
    let near = Recipe::from_yaml("components: { a: { reward: sam } }\n").unwrap();
    let told = near.plan_with(&[same(1.0)]).unwrap_err().to_string();
    assert!(told.contains("did you mean \"same\"?"), "{told}");
}

#[test]
fn a_judge_cannot_be_sent_a_field_twice() {
    let told = |kind: &str, extra: &str| {
        let reward = if kind == "chat" { "principle, principles: [helpfulness]" } else { "reward_model" };
        let judge = format!("kind: {kind}, base_url: \"http://h/v1\", model: m, extra: {{ {extra} }}");
        errors(&format!("components: {{ q: {{ reward: {reward} }} }}\njudges: {{ main: {{ {judge} }} }}\n"))
    };
    let chat =
        "model: x, messages: [], max_tokens: null, temperature: 1, seed: 1, logprobs: true, stream: true";
    let found = told("chat", &format!("{chat}, top_logprobs: 5, response_format: {{}}, top_k: 1"));
    assert_eq!(found.len(), 9, "{found:?}");
    assert!(found.iter().all(|one| one.contains("judges.main.extra.") && one.contains("recipe.judge")));
    assert_eq!(told("classify", "model: x, messages: [], input: a").len(), 2);
    assert_eq!(told("embeddings", "model: x, messages: [], input: a").len(), 2);
    assert_eq!(told("chat", "max_completion_tokens: 100, top_p: 0.9"), Vec::<String>::new());
    assert!(
        told("unknown", "").iter().any(|one| one.contains("judges.main.kind")),
        "a kind that nobody knows"
    );
}

#[test]
fn bad_address_is_refused_without_its_password() {
    let told = |address: &str| {
        let judge = format!("base_url: \"{address}\", model: m");
        let asks = "components: { q: { reward: principle, principles: [helpfulness] } }";
        errors(&format!("{asks}\njudges: {{ main: {{ {judge} }} }}\n")).join("")
    };
    for bad in ["http://h:99999/v1", "http://h:0", "http://h\\0/v1", "http://h:/v1"] {
        assert!(told(bad).contains("judges.main.base_url"), "{bad}: {}", told(bad));
    }
    let masked = told("https://user:secret@host/v1");
    assert!(masked.contains("https://***@host/v1") && !masked.contains("secret"), "{masked}");
}

#[test]
fn a_key_over_plain_http_to_a_foreign_host_is_warned_of() {
    let warnings = |address: &str| {
        let judge = format!("base_url: \"{address}\", model: m, api_key_env: KEY");
        let asks = "components: { q: { reward: principle, principles: [helpfulness] } }";
        let recipe = Recipe::from_yaml(&format!("{asks}\njudges: {{ main: {{ {judge} }} }}\n")).unwrap();
        recipe.plan().unwrap().warnings.iter().map(|warning| warning.code).collect::<Vec<_>>()
    };
    assert_eq!(warnings("http://api.example.com/v1"), ["recipe.plain_http"]);
    assert!(warnings("https://api.example.com/v1").is_empty());
    assert!(warnings("http://10.0.0.5:8000/v1").is_empty());
}
