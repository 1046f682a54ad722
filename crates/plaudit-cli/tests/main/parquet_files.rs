//! Parquet files: read as JSON lines are, and written so that others read them.

use crate::support::{Folder, LENGTH, run};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::RowAccessor as _;
use parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};
use std::fs::File;
use std::sync::Arc;

const SCHEMA: &str = "message rollouts {
    required binary id (UTF8);
    optional group prompt (LIST) { repeated group list { optional group element {
        optional binary role (UTF8); optional binary content (UTF8); } } }
    required binary response;
    optional int64 tokens;
}";

/// Writes rollouts whose prompts are two chat messages; the response of the third is not UTF-8.
pub(crate) fn write(path: &str, rows: usize) {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let texts =
        |of: &dyn Fn(usize) -> Vec<u8>| (0..rows).map(|at| ByteArray::from(of(at))).collect::<Vec<_>>();
    let messages =
        |of: &dyn Fn(usize) -> Vec<u8>| (0..2 * rows).map(|at| ByteArray::from(of(at))).collect::<Vec<_>>();
    let (defined, repeated) = (vec![4; 2 * rows], [0, 1].repeat(rows));
    let columns: [(Vec<ByteArray>, bool); 4] = [
        (texts(&|at| format!("r{at}").into()), false),
        (messages(&|at| if at % 2 == 0 { "system".into() } else { "user".into() }), true),
        (messages(&|at| format!("message {at}").into()), true),
        (texts(&|at| if at == 2 { vec![0xff] } else { "é ".repeat(at).into() }), false),
    ];
    for (values, nested) in columns {
        let mut column = group.next_column().unwrap().unwrap();
        let levels = nested.then_some((defined.as_slice(), repeated.as_slice()));
        column
            .typed::<ByteArrayType>()
            .write_batch(&values, levels.map(|(d, _)| d), levels.map(|(_, r)| r))
            .unwrap();
        column.close().unwrap();
    }
    let mut column = group.next_column().unwrap().unwrap();
    let numbers = column.typed::<Int64Type>();
    let present: Vec<i16> = (0..rows).map(|at| i16::from(at % 2 == 0)).collect();
    let values: Vec<i64> = (0..rows as i64).filter(|at| at % 2 == 0).collect();
    numbers.write_batch(&values, Some(&present), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

/// The same rollouts as JSON lines, without the third.
fn lines(rows: usize) -> String {
    let line = |at: usize| {
        let message =
            |which: usize, role: &str| json!({ "role": role, "content": format!("message {which}") });
        let tokens = if at.is_multiple_of(2) { json!(at) } else { Value::Null };
        json!({
            "id": format!("r{at}"),
            "prompt": [message(2 * at, "system"), message(2 * at + 1, "user")],
            "response": "é ".repeat(at),
            "tokens": tokens,
        })
    };
    (0..rows).filter(|at| *at != 2).map(|at| format!("{}\n", line(at))).collect()
}

#[test]
fn a_table_is_read_as_its_lines_would_be() {
    let folder = Folder::new("table-in");
    let recipe = folder.file("recipe.yaml", LENGTH);
    // The name does not matter: the first bytes say what it is.
    let table = folder.path("table.data");
    write(&table, 2000);
    let of_table = run(&["score", &table, "-r", &recipe]);
    let of_lines = run(&["score", &folder.file("lines.jsonl", lines(2000)), "-r", &recipe]);
    assert_eq!((of_table.code, of_lines.code), (1, 0));
    assert!(
        of_table.talk.contains("row 3: column \"response\": the bytes are not UTF-8 text (input.utf8)"),
        "{}",
        of_table.talk
    );
    assert_eq!(of_table.out, of_lines.out);
}

#[test]
fn a_table_gives_the_same_bytes_at_any_parallelism() {
    let folder = Folder::new("table-parallel");
    let recipe = folder.file("recipe.yaml", LENGTH);
    let table = folder.path("table.parquet");
    write(&table, 3000);
    let scored = |parallel: usize| {
        let set = format!("groups.parallel={parallel}");
        let ran = run(&["score", &table, "-r", &recipe, "--set", &set, "-q"]);
        assert_eq!(ran.code, 1, "{}", ran.talk);
        ran.out
    };
    let one = scored(1);
    assert_eq!(one.lines().count(), 2999);
    assert!([2, 3, 8, 16].iter().all(|parallel| scored(*parallel) == one));
}

/// What writes one column.
type Column<'c> = &'c dyn Fn(&mut SerializedRowGroupWriter<'_, File>);

/// Writes a table of required columns.
fn table(path: &str, schema: &str, columns: &[Column<'_>]) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    columns.iter().for_each(|column| column(&mut group));
    group.close().unwrap();
    writer.close().unwrap();
}

fn column<T: DataType>(values: Vec<T::T>) -> impl Fn(&mut SerializedRowGroupWriter<'_, File>) {
    move |group| {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    }
}

fn bytes(all: &[&[u8]]) -> Vec<ByteArray> {
    all.iter().map(|one| ByteArray::from(one.to_vec())).collect()
}

/// Writes a table of responses.
#[cfg(debug_assertions)]
pub(crate) fn write_responses(path: &str, responses: &[&str]) {
    let texts: Vec<&[u8]> = responses.iter().map(|text| text.as_bytes()).collect();
    let schema = "message m { required binary response (UTF8); }";
    table(path, schema, &[&column::<ByteArrayType>(bytes(&texts))]);
}

#[test]
fn numbers_and_images_of_a_table_are_read() {
    let folder = Folder::new("table-kinds");
    let recipe = folder.file("recipe.yaml", LENGTH);
    let path = folder.path("table.parquet");
    let schema = "message m { required int64 id; required int64 group; required binary response (UTF8);
        required double reference; required double tokens; required binary photo; required float rate;
        required group image { required binary bytes; required binary path (UTF8); } }";
    table(
        &path,
        schema,
        &[
            &column::<Int64Type>(vec![7, -8]),
            &column::<Int64Type>(vec![1, 1]),
            &column::<ByteArrayType>(bytes(&[b"one", b"two"])),
            &column::<DoubleType>(vec![0.5, 42.0]),
            &column::<DoubleType>(vec![3.0, 4.0]),
            &column::<ByteArrayType>(bytes(&[b"\x89PNG\xff", b"\xff\xd8"])),
            &column::<FloatType>(vec![0.1, 0.2]),
            &column::<ByteArrayType>(bytes(&[b"\xff", b"\xfe"])),
            &column::<ByteArrayType>(bytes(&[b"a.png", b"b.png"])),
        ],
    );
    let ran = run(&["rank", &path, "--keep", "2", "-r", &recipe, "-q"]);
    assert_eq!(ran.code, 0, "{}", ran.talk);
    let rows: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown = |row: &Value| json!([row["id"], row["group"], row["reference"], row["tokens"], row["extra"]]);
    assert_eq!(shown(&rows[0]), json!(["7", "1", "0.5", 3, { "image": { "path": "a.png" }, "rate": 0.1 }]));
    assert_eq!(shown(&rows[1]), json!(["-8", "1", "42", 4, { "image": { "path": "b.png" }, "rate": 0.2 }]));
    for name in ["photo", "image"] {
        let told = format!("warning: the column {name:?} holds bytes that are not text; they are left out");
        assert_eq!(ran.talk.matches(&told).count(), 1, "{}", ran.talk);
    }
}

#[test]
fn what_is_wrong_with_a_cell_names_its_column() {
    let folder = Folder::new("table-wrong");
    let recipe = folder.file("recipe.yaml", LENGTH);
    let path = folder.path("table.parquet");
    let schema = "message m { required double id; required binary response (UTF8); required double score; }";
    table(
        &path,
        schema,
        &[
            &column::<DoubleType>(vec![1.0, 2.5]),
            &column::<ByteArrayType>(bytes(&[b"one", b"two"])),
            &column::<DoubleType>(vec![f64::NAN, 0.5]),
        ],
    );
    let ran = run(&["score", &path, "-r", &recipe, "-q"]);
    assert_eq!(ran.code, 1, "{}", ran.talk);
    assert!(
        ran.talk.contains("row 1: column \"score\": a number is not finite (input.number)"),
        "{}",
        ran.talk
    );
    let wanted = "row 2: id: text or a whole number is wanted, found the number 2.5 (input.id)";
    assert!(ran.talk.contains(wanted), "{}", ran.talk);
}

#[test]
fn a_table_of_results_holds_what_the_lines_hold() {
    let folder = Folder::new("table-out");
    let recipe = folder.file(
        "recipe.yaml",
        "components: { length: { reward: length_penalty }, right: { reward: accuracy, weight: 2 } }\n\
         route: { by: extra.kind, cases: { maths: math } }\n",
    );
    let line = |at: usize| {
        let reference = if at.is_multiple_of(3) { "" } else { ",\"reference\":\"r\"" };
        let kind = if at.is_multiple_of(5) { ",\"kind\":\"maths\"" } else { "" };
        format!("{{\"id\":\"i{at}\",\"group\":\"g{}\",\"response\":\"r{at}\"{reference}{kind}}}\n", at / 4)
    };
    let input = folder.file("in.jsonl", (0..3000).map(line).collect::<String>());
    let expected = run(&["score", &input, "-r", &recipe]);
    let out = folder.path("out.parquet");
    assert_eq!(run(&["score", &input, "-r", &recipe, "--out", &out]).code, expected.code);
    let reader = SerializedFileReader::new(File::open(&out).unwrap()).unwrap();
    let mut count = 0;
    for (row, line) in reader.get_row_iter(None).unwrap().zip(expected.out.lines()) {
        let (row, line) = (row.unwrap(), serde_json::from_str::<Value>(line).unwrap());
        let names: Vec<&String> = row.get_column_iter().map(|(name, _)| name).collect();
        let at = |name: &str| names.iter().position(|known| *known == name).unwrap();
        let text = |name: &str| row.get_string(at(name)).ok().map(String::as_str);
        assert_eq!(text("id"), line["id"].as_str());
        assert_eq!(text("group"), line["group"].as_str());
        assert_eq!(text("outcome"), line["outcome"].as_str());
        assert_eq!(row.get_double(at("total")).ok(), line["total"].as_f64());
        assert_eq!(text("reason_code"), line["reason"]["code"].as_str());
        for name in ["length", "right", "format", "accuracy"] {
            let component = &line["components"][name];
            assert_eq!(row.get_double(at(&format!("{name}.value"))).ok(), component["value"].as_f64());
            assert_eq!(text(&format!("{name}.outcome")), component["outcome"].as_str());
            assert_eq!(text(&format!("{name}.reason_code")), component["reason"]["code"].as_str());
            let info = text(&format!("{name}.info")).map(|info| serde_json::from_str::<Value>(info).unwrap());
            assert_eq!(info.as_ref(), component.get("info"));
        }
        count += 1;
    }
    assert_eq!(count, 3000);
}

#[test]
fn a_broken_table_is_refused() {
    let folder = Folder::new("table-broken");
    let table = folder.path("table.parquet");
    write(&table, 500);
    let whole = std::fs::read(&table).unwrap();
    for cut in [4, 5, 100, whole.len() / 2, whole.len() - 1] {
        let ran = run(&["score", &folder.file("cut.parquet", &whole[..cut]), "-q"]);
        assert!(ran.code == 2 && ran.talk.contains("input.parquet"), "{cut}: {}", ran.talk);
    }
    // Whatever is wrong inside, the run ends with an answer.
    for at in (4..whole.len()).step_by(whole.len() / 20) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x5a;
        assert!((0..=2).contains(&run(&["score", &folder.file("flip.parquet", &bytes), "-q"]).code));
    }
}
