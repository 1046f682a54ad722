//! The rules of ARCHITECTURE.md as tests: imports point one way, and every reward is complete.

use plaudit::recipe::file::reserved;
use plaudit::recipe::{Recipe, shipped};
use plaudit::registry::RewardEntry;
use plaudit::reward::Properties;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Values know only each other; views know values; kinds know both, but not each other; the spine knows all. A path
/// with two parts stands for that submodule alone.
const LAYERS: [&[&str]; 4] = [
    &["reason", "error", "exec", "tls", "outcome", "conversation", "rollout", "statistics::distribution"],
    &["text", "tokenizer", "input", "aggregate", "reward", "question", "record", "rubric"],
    &["group", "rule", "code", "judge", "compose"],
    &["registry", "recipe", "plan", "journal", "report", "statistics", "abort", "engine", "join"],
];

/// The layer of the submodule where it has one, else that of the module.
fn layer(path: &str) -> usize {
    let module = path.split("::").next().unwrap_or(path);
    let of = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    of(path).or_else(|| of(module)).unwrap_or_else(|| panic!("{module} has no layer"))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if name.starts_with('.') || name == "node_modules" {
            continue;
        }
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// The lines that are compiled outside tests: an item below `#[cfg(test)]` is left out, and nothing else.
fn shipped_lines(text: &str) -> Vec<&str> {
    let (mut lines, mut kept) = (text.lines(), Vec::new());
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push(line);
            continue;
        }
        let item = lines.find(|line| !line.trim_start().starts_with("#[")).unwrap_or("");
        if item.ends_with('{') {
            let end = format!("{}}}", &item[..item.len() - item.trim_start().len()]);
            lines.find(|line| line.starts_with(&end));
        }
    }
    kept
}

#[test]
fn only_test_items_escape_the_layering_check() {
    let text = "use a;\n#[cfg(test)]\nmod trial;\nuse b;\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    use c;\n}\nuse d;";
    assert_eq!(shipped_lines(text), ["use a;", "use b;", "use d;"]);
}

/// What is compiled in lies inside the package and is named by its `include`, so that it can be published by itself.
#[test]
fn compiled_in_files_lie_inside_the_package() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut count = 0;
    for folder in std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let include = manifest.lines().find(|line| line.starts_with("include = "));
        let included = |top: &str| include.is_none_or(|line| line.contains(&format!("\"/{top}")));
        let root = folder.join("src");
        let mut all = Vec::new();
        files(&root, &mut all);
        for path in all.iter().filter(|path| path.extension().is_some_and(|kind| kind == "rs")) {
            let text = std::fs::read_to_string(path).unwrap();
            let depth = path.strip_prefix(&root).unwrap().iter().count();
            for rest in text.split("include_str!(").skip(1).chain(text.split("include_bytes!(").skip(1)) {
                let Some(file) = rest.split('"').nth(1).filter(|file| file.starts_with("..")) else {
                    continue;
                };
                count += 1;
                let up = file.split('/').take_while(|part| *part == "..").count();
                let top = file.split('/').nth(up).unwrap();
                let inside = up < depth || up == depth && included(top);
                assert!(inside, "{} includes {file}, which its package does not have", path.display());
            }
        }
    }
    assert!(count >= 20, "only {count} files are compiled in");
}

/// The walkthrough's rule is a file of the crate that is compiled and tested with the others.
#[test]
fn the_example_of_contributing_is_compiled() {
    let text = include_str!("../../../../CONTRIBUTING.md");
    let rest = text.split_once("```rust\n").unwrap().1;
    let file = include_str!("../../src/rule/ends_with_question.rs");
    assert!(rest.starts_with(file), "CONTRIBUTING.md shows something else than rule/ends_with_question.rs");
}

/// The longest name of a test, so that it can be read in a list and typed as a filter.
const MAX_NAME: usize = 60;

/// The crates of the workspace, each with its Rust files.
fn crates() -> Vec<(String, Vec<PathBuf>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut crates: Vec<_> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| {
            let (entry, mut all) = (entry.unwrap(), Vec::new());
            for part in ["src", "tests", "examples"].map(|part| entry.path().join(part)) {
                if part.is_dir() {
                    files(&part, &mut all);
                }
            }
            all.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
            all.sort();
            (entry.file_name().into_string().unwrap(), all)
        })
        .collect();
    crates.sort();
    assert!(crates.len() >= 3 && crates.iter().all(|(_, files)| !files.is_empty()));
    crates
}

/// The names of the tests in a file, also of those that a macro makes of a function with arguments.
fn test_names(text: &str) -> Vec<&str> {
    let mut lines = text.lines().map(str::trim);
    let mut names = Vec::new();
    while let Some(line) = lines.next() {
        if !line.starts_with("#[test") && !line.starts_with("#[tokio::test") {
            continue;
        }
        let item = lines.find(|line| line.contains("fn ")).unwrap_or("");
        names.extend(item.split("fn ").nth(1).and_then(|rest| rest.split('(').next()));
    }
    names
}

#[test]
fn test_names_are_short() {
    let mut long = Vec::new();
    for path in crates().into_iter().flat_map(|(_, files)| files) {
        let text = std::fs::read_to_string(&path).unwrap();
        let names = test_names(&text).into_iter().filter(|name| name.len() > MAX_NAME);
        long.extend(names.map(|name| format!("{}: {name}", path.display())));
    }
    assert!(long.is_empty(), "over {MAX_NAME} letters:\n{}", long.join("\n"));
}

#[test]
fn files_open_with_what_they_are() {
    let mut bad = Vec::new();
    for path in crates().into_iter().flat_map(|(_, files)| files) {
        let text = std::fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap_or("");
        if !first.starts_with("//! ") || first.contains('?') {
            bad.push(format!("{}: {first}", path.display()));
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for folder in ["bench", "docs", "examples", "python", "crates/plaudit-serve/web", ".ci"] {
        let mut scripts = Vec::new();
        files(&root.join(folder), &mut scripts);
        for path in scripts {
            let mark = match path.extension().and_then(|extension| extension.to_str()) {
                Some("py") => "\"\"\"",
                Some("js" | "mjs") => "// ",
                Some("sh") => "# ",
                _ => continue,
            };
            let text = std::fs::read_to_string(&path).unwrap();
            let first = text.lines().find(|line| !line.is_empty() && !line.starts_with("#!")).unwrap_or("");
            if !first.starts_with(mark) || first.contains('?') {
                bad.push(format!("{}: {first}", path.display()));
            }
        }
    }
    assert!(bad.is_empty(), "no first line, or a question:\n{}", bad.join("\n"));
}

/// The name of the type that a line defines. Associated types and types inside functions are indented.
fn defined_type(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let keyword = ["struct ", "enum ", "trait ", "type ", "union "];
    let rest = keyword.iter().find_map(|keyword| line.strip_prefix(keyword))?;
    rest.split(|char: char| !char.is_alphanumeric() && char != '_').next()
}

#[test]
fn type_names_are_unique_in_a_crate() {
    let mut twice = Vec::new();
    for (name, files) in crates() {
        let mut places = BTreeMap::<String, Vec<String>>::new();
        for path in files {
            let inside = path.display().to_string();
            let test = path.file_stem().unwrap().to_string_lossy();
            if !inside.contains("/src/")
                || test == "tests"
                || test.ends_with("_tests")
                || test.starts_with("test_")
                // Stand-ins of the same names, for a build without a feature or off Linux.
                || test == "absent"
                || test == "elsewhere"
            {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for defined in shipped_lines(&text).into_iter().filter_map(defined_type) {
                places.entry(defined.to_owned()).or_default().push(inside.clone());
            }
        }
        let several = places.into_iter().filter(|(_, places)| places.len() > 1);
        twice.extend(several.map(|(defined, places)| format!("{name}: {defined} in {}", places.join(", "))));
    }
    assert!(twice.is_empty(), "defined more than once:\n{}", twice.join("\n"));
}

#[test]
fn imports_point_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&root, &mut all);
    for path in all.iter().filter(|path| !path.ends_with("lib.rs") && !path.ends_with("tests.rs")) {
        let inside = path.strip_prefix(&root).unwrap();
        let own = inside.iter().next().unwrap().to_string_lossy();
        let own = own.trim_end_matches(".rs");
        let text = std::fs::read_to_string(path).unwrap();
        for line in shipped_lines(&text) {
            for rest in line.split("crate::").skip(1) {
                let mut names = rest.split(|char: char| !char.is_alphanumeric() && char != '_');
                let used = names.next().unwrap();
                let path = format!("{used}::{}", names.nth(1).unwrap_or(""));
                let lower = layer(&path) < layer(own)
                    || used == own
                    || (layer(&path) == layer(own) && layer(own) != 2);
                assert!(lower, "{} must not use {used}: {line}", inside.display());
            }
        }
    }
}

#[test]
fn every_reward_has_a_page_a_floor_and_a_recipe() {
    let headings =
        ["## What it scores", "## When to use it", "## How it can be gamed", "## Example", "## References"];
    let recipes: Vec<_> =
        shipped().iter().map(|(name, _)| Recipe::named(name).unwrap().plan().unwrap()).collect();
    let mut components = recipes.iter().flat_map(|plan| &plan.branches).flat_map(|branch| &branch.components);
    for entry in RewardEntry::all() {
        let (summary, page) = entry.page();
        let kind_name = entry.name();
        assert!(summary.ends_with('.') && summary.len() < 120, "{kind_name}: {summary}");
        for heading in headings {
            assert!(page.contains(heading), "{kind_name} lacks {heading}");
        }
        let schema = entry.schema();
        for (name, parameter) in schema["properties"].as_object().into_iter().flatten() {
            assert!(parameter["description"].is_string(), "{kind_name}.{name} is not described");
            assert!(!reserved().contains(name), "{kind_name}.{name} is a key of every component");
        }
        if let Some(scorer) = entry.with_defaults() {
            let Properties { range, floor, .. } = scorer.properties();
            assert!(floor.is_finite() && floor <= range.max, "{kind_name}: floor {floor}");
        }
        let used = components.clone().any(|component| component.reward == kind_name);
        assert!(used, "{kind_name} stands in no shipped recipe");
    }
    assert!(components.next().is_some());
}

#[test]
fn names_and_aliases_are_distinct() {
    let mut names: Vec<&str> = RewardEntry::names().collect();
    let before = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), before);
}

#[test]
fn the_example_on_every_page_is_a_good_component() {
    for entry in RewardEntry::all() {
        let page = entry.page().1;
        let example = page.split("```yaml").nth(1).and_then(|rest| rest.split("```").next());
        let example = example.unwrap_or_else(|| panic!("{} has no example", entry.name()));
        let indented: String = example.trim().lines().map(|line| format!("  {line}\n")).collect();
        let judges = match (entry, entry.name()) {
            (RewardEntry::Rule(_), _) => "",
            (_, "reward_model") => "judges: { rm: { kind: classify, base_url: http://h, model: m } }\n",
            _ => "judges: { main: { base_url: http://h, model: m } }\n",
        };
        // An example may show a component that only measures, so another one gives the total.
        let recipe = Recipe::from_yaml(&format!(
            "components:\n  other: {{ reward: length_penalty }}\n{indented}{judges}"
        ))
        .and_then(|recipe| recipe.plan());
        let plan = recipe.unwrap_or_else(|errors| panic!("{}: {errors}", entry.name()));
        assert!(plan.branches[0].components.iter().any(|component| component.reward == entry.name()));
    }
}
