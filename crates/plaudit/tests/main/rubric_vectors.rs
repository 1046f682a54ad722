//! The rubrics of public data sets in the normal form, and the formulas of their graders, against vectors made by the originals.

use crate::golden::lines;
use plaudit::rubric::{self, Item, ItemVerdict, RubricError, RubricFormula, ScoreError};
use serde_json::{Value, json};

/// What a shape comes to: the items, or why there are none. A row without a rubric is no error of the reader's.
fn read(vector: &Value) -> Result<Option<Vec<Item>>, RubricError> {
    let row = &vector["row"];
    if vector["shape"] == "verifiers_file" {
        let text = |key: &str| row[key].as_str().expect("text").to_owned();
        return rubric::parse_file(&text("name"), &text("text")).map(Some);
    }
    Ok(rubric::find(row.as_object().expect("a row"))?.map(|(_, items)| items))
}

#[test]
fn every_published_shape_is_read_or_refused_with_its_place() {
    let mut wrong = Vec::new();
    for vector in lines("rubric_shapes.jsonl") {
        let mut found = match read(&vector) {
            Ok(Some(items)) => serde_json::to_value(items).expect("JSON"),
            Ok(None) => json!({ "error": "no rubric" }),
            Err(RubricError { error, place }) => json!({ "error": error, "where": place }),
        };
        let mut expected = vector["expected"].clone();
        if expected["error"] == "no rubric" {
            expected.as_object_mut().expect("an error").remove("where");
        }
        let number = |value: &mut Value| {
            for item in value.as_array_mut().into_iter().flatten() {
                item["weight"] = json!(item["weight"].as_f64());
            }
        };
        number(&mut expected);
        // Tags are a set.
        let sorted = |value: &mut Value| {
            for item in value.as_array_mut().into_iter().flatten() {
                item["tags"].as_array_mut().expect("tags").sort_by_key(Value::to_string);
            }
        };
        sorted(&mut expected);
        sorted(&mut found);
        if found != expected {
            wrong.push(format!("{}: {found} instead of {expected}", vector["id"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn aggregate(source: &str) -> RubricFormula {
    match source.strip_prefix("nemo_gym_verifif_").or(source.strip_prefix("nemo_gym_")).unwrap_or(source) {
        "healthbench" | "healthbench_clipped" => RubricFormula::Healthbench,
        "rar_explicit" | "verifiers" | "weighted" => RubricFormula::Weighted,
        "open_instruct" => RubricFormula::Signed,
        "mean" | "agentif_csr" | "advancedif_rate" | "tinker" => RubricFormula::Mean,
        "all" | "agentif_isr" | "advancedif" => RubricFormula::All,
        "any" => RubricFormula::Any,
        "min" => RubricFormula::Min,
        "max" => RubricFormula::Max,
        other => panic!("{other}"),
    }
}

/// An item of a vector with answers that its verdict is one of, and the verdict.
fn item_of(vector: &Value, at: usize) -> (Item, ItemVerdict) {
    let (item, verdict) = (&vector["items"][at], &vector["verdicts"][at]);
    let levels = |count: usize| Some((0..count).map(|level| level.to_string()).collect::<Vec<_>>());
    let mut choices: Option<Vec<String>> = match vector["source"].as_str() {
        Some("open_instruct") => levels(3),
        Some("tinker") => levels(1001),
        _ => None,
    };
    if let Some(own) = item["choices"].as_array() {
        choices = Some(own.iter().map(|choice| choice.as_str().expect("text").to_owned()).collect());
    }
    let place = |word: &str| {
        choices
            .as_ref()
            .map_or(usize::from(word == "yes"), |own| own.iter().position(|one| one == word).expect(word))
    };
    let verdict = match verdict {
        Value::Null => ItemVerdict::NotApplicable,
        Value::Bool(met) => ItemVerdict::Answer(usize::from(*met)),
        Value::String(failed) if failed == "failed" => ItemVerdict::Missing,
        Value::String(choice) => ItemVerdict::Answer(place(choice)),
        Value::Number(number) if vector["source"] == "tinker" => {
            ItemVerdict::Answer((number.as_f64().expect("a number") * 1000.0).round() as usize)
        }
        Value::Number(number) => ItemVerdict::Answer(number.as_u64().expect("a level") as usize),
        other => panic!("{other}"),
    };
    let weight = item["weight"].as_f64().expect("a weight");
    let negative = weight < 0.0 || item["pass_criteria"] == "NO";
    let criterion = item["text"].as_str().expect("text").to_owned();
    (Item { criterion, weight, negative, choices, tags: Vec::new() }, verdict)
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-12 * expected.abs().max(1.0)
}

#[test]
fn every_formula_gives_the_number_of_its_original_or_its_range() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for vector in lines("rubric_formulas.jsonl") {
        // What verifiers refuses is refused when it is read, which the shapes test.
        if vector["expected"]["error"] == "refused rubric"
            || vector["note"].as_str().is_some_and(|note| note.contains("choice is refused"))
        {
            continue;
        }
        let source = vector["source"].as_str().expect("a source");
        let count = vector["items"].as_array().expect("items").len();
        let (items, verdicts): (Vec<Item>, Vec<ItemVerdict>) =
            (0..count).map(|at| item_of(&vector, at)).unzip();
        let found = aggregate(source).bounds(&items, &verdicts, false);
        let clip =
            |number: f64| if source == "healthbench_clipped" { number.clamp(0.0, 1.0) } else { number };
        let expected = if vector["kind"] == "failure" && !vector["range"].is_null() {
            &vector["range"]
        } else {
            &vector["expected"]
        };
        let right = match (&found, expected) {
            (Ok(bounds), Value::Number(number)) => {
                let number = number.as_f64().expect("a number");
                bounds.low == bounds.high && close(clip(bounds.middle()), number)
            }
            (Ok(bounds), Value::Array(range)) => {
                close(clip(bounds.low), range[0].as_f64().expect("low"))
                    && close(clip(bounds.high), range[1].as_f64().expect("high"))
            }
            (Err(ScoreError::Weights | ScoreError::NothingApplies), Value::Object(_)) => true,
            _ => false,
        };
        seen += 1;
        if !right {
            wrong.push(format!("{}: {found:?} instead of {expected} ({})", vector["id"], vector["note"]));
        }
    }
    assert!(wrong.is_empty() && seen > 600, "{seen}\n{}", wrong.join("\n"));
}
