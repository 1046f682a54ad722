//! A journal written by an earlier build replays to the same bytes: keys of judgments, prompts and formats are stable.

use crate::support::{Folder, run};
use std::path::Path;

/// A finished run: pairwise with a prior, listwise, pointwise, a custom prompt and reward models, against judge-sim.
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/journal-1");

#[test]
fn an_old_journal_replays_to_the_same_bytes() {
    let folder = Folder::new("journal-fixture");
    let files = std::fs::read_dir(Path::new(FIXTURE).join("state")).unwrap();
    for file in files.map(|file| file.unwrap().path()) {
        let name = file.file_name().unwrap().to_str().unwrap();
        folder.file(name, std::fs::read(&file).unwrap());
    }
    let ran = run(&["replay", "--state", &folder.path(""), "--quiet"]);
    assert_eq!(ran.code, 0, "{}", ran.talk);
    let expected = std::fs::read_to_string(Path::new(FIXTURE).join("results.jsonl")).unwrap();
    // Results say since then whether an answer is right, and these rewards do not tell.
    assert_eq!(ran.out.matches("\"correct\":null,").count(), expected.lines().count());
    assert_eq!(ran.out.replace("\"correct\":null,", ""), expected);
}
