//! `plaudit token`: creates, lists and revokes the API tokens in the file that the service reads.

use crate::console::{Style, printable};
use crate::error::CliError;
use crate::rewards::print;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use plaudit_serve::token_file::{NewToken, Scope, TokenEntry, TokenFile, now};
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  plaudit token create trainer --file tokens.json
  plaudit token create dashboard --scope read --expires 30d --file tokens.json
  plaudit token list --file tokens.json
  plaudit token revoke trainer --file tokens.json";

/// Make, list and revoke the tokens that `plaudit serve --token-file` lets in
///
/// A running service sees changes within a second.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Token {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a token and print it, this once; only its hash is kept
    Create(Create),
    /// List the tokens
    List(List),
    /// Take a token back
    Revoke(Revoke),
}

#[derive(Debug, Args)]
struct Create {
    /// Whom it is for: up to 64 letters, digits, dots, hyphens and underscores
    name: String,
    /// The file of tokens; it is made where there is none
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// What it allows: score hands rollouts in, read looks at runs, admin does everything
    #[arg(long = "scope", value_name = "SCOPE", default_values = ["score", "read"], value_parser = scope())]
    scopes: Vec<Scope>,
    /// For how long it is worth something, such as 12h or 30d [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    expires: Option<u64>,
    /// The most requests a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// The most rollouts that may be under way at once
    #[arg(long, value_name = "N", value_parser = some)]
    waiting: Option<usize>,
}

#[derive(Debug, Args)]
struct List {
    /// The file of tokens
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// As data
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Revoke {
    /// Its name or its id
    token: String,
    /// The file of tokens
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
}

impl Token {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        match &self.action {
            Action::Create(create) => {
                let new = NewToken {
                    name: create.name.clone(),
                    scopes: create.scopes.clone(),
                    expires: create.expires.map(|seconds| now().saturating_add(seconds)),
                    rate: create.rate,
                    waiting: create.waiting,
                };
                let (token, _) = TokenFile::at(&create.file).create(new)?;
                print(&token)
            }
            Action::List(list) => {
                let entries = TokenFile::at(&list.file).list()?;
                match list.json {
                    true => print(&format!("{:#}", json!(entries.iter().map(data).collect::<Vec<_>>()))),
                    false => print(&table(&entries)),
                }
            }
            Action::Revoke(revoke) => {
                let revoked = TokenFile::at(&revoke.file).revoke(&revoke.token)?;
                print(&format!("{} ({}) is revoked", printable(&revoked.name), revoked.id))
            }
        }
    }
}

/// A token without its hash.
fn data(entry: &TokenEntry) -> serde_json::Value {
    json!({
        "id": entry.id, "name": entry.name, "scopes": entry.scopes, "created": entry.created,
        "expires": entry.expires, "rate": entry.rate, "waiting": entry.waiting,
    })
}

fn table(entries: &[TokenEntry]) -> String {
    if entries.is_empty() {
        return "there are no tokens: nobody is let in".to_owned();
    }
    let style = Style::of_stdout();
    let width = entries.iter().map(|entry| printable(&entry.name).chars().count()).max().unwrap_or(0);
    let row = |entry: &TokenEntry| {
        let scopes: Vec<&str> = entry.scopes.iter().map(|scope| word(*scope)).collect();
        let left = match entry.expires {
            None => "until revoked".to_owned(),
            Some(_) if !entry.is_valid() => "expired".to_owned(),
            Some(expires) => format!("{} h left", expires.saturating_sub(now()).div_ceil(3600)),
        };
        let name = printable(&entry.name);
        let padding = width - name.chars().count();
        let rate = entry.rate.map(|rate| format!("{rate} requests a second"));
        let waiting = entry.waiting.map(|most| format!("{most} rollouts at once"));
        let terms: Vec<String> = [Some(left), rate, waiting].into_iter().flatten().collect();
        let (scopes, terms) = (scopes.join(","), terms.join(", "));
        format!("{}  {name}{:padding$}  {scopes:16}  {terms}", style.dim(&entry.id), "")
    };
    entries.iter().map(row).collect::<Vec<_>>().join("\n")
}

fn word(scope: Scope) -> &'static str {
    match scope {
        Scope::Score => "score",
        Scope::Read => "read",
        Scope::Admin => "admin",
    }
}

/// The parser of a scope.
fn scope() -> impl TypedValueParser<Value = Scope> {
    let values = [
        PossibleValue::new("score").help("Handing in rollouts, and asking for jobs of one's own"),
        PossibleValue::new("read").help("Looking at runs, judges and metrics"),
        PossibleValue::new("admin").help("Everything, also of others"),
    ];
    PossibleValuesParser::new(values).map(|word| match word.as_str() {
        "score" => Scope::Score,
        "read" => Scope::Read,
        _ => Scope::Admin,
    })
}

/// A time such as 90s, 15m, 12h or 30d.
fn seconds(text: &str) -> Result<u64, String> {
    let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];
    let found = units.iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*seconds)
    });
    match found {
        Some(0) => Err("such a token would be worth nothing".to_owned()),
        found => found.ok_or_else(|| "a time such as 12h or 30d is wanted".to_owned()),
    }
}

/// A number of which 0 is none.
fn some(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "a number from 1 on is wanted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn times_are_read() {
        assert_eq!(seconds("30d"), Ok(2_592_000));
        assert_eq!(seconds("12h"), Ok(43_200));
        assert!(seconds("soon").is_err() && seconds("5").is_err());
        assert!(seconds("0s").is_err() && seconds("0d").is_err());
        assert!(super::some("0").is_err() && super::some("-1").is_err() && super::some("1") == Ok(1));
    }
}
