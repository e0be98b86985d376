//! The rule about retired names: no declaration of the product takes one back.

use super::Violation;
use crate::repository::{Repository, is_test_file};
use crate::source::{SourceFile, is_identifier_char};

/// Columns: crate, kind of declaration, retired name, name that replaced it.
const TABLE_PATH: &str = "xtask/retired-names.tsv";

/// Maximum number of entries in [`KEPT`].
const MAX_KEPT: usize = 10;

/// Retired names that have another meaning today: crate, kind, name, reason.
const KEPT: &[(&str, Kind, &str, &str)] = &[
    ("innkeeper-agent", Kind::Function, "run", "`Agent::run` starts a run"),
    ("innkeeper-agent", Kind::Variant, "Ask", "the value `ask` of `--approve`"),
    ("innkeeper-agent", Kind::Variant, "Native", "the value `native` of `--tool-calling`"),
    ("innkeeper-host", Kind::Field, "took", "a key of JSON output"),
    ("innkeeper-host", Kind::Function, "authorize", "OAuth's word for the request to a user agent"),
    ("innkeeper-host", Kind::Function, "token_store", "sets the application's `TokenStore`"),
    ("innkeeper-host", Kind::Type, "Guard", "a definition of the published JSON Schema"),
    (
        "innkeeper-host",
        Kind::Variant,
        "Suspicious",
        "a class of changes that `lock --check` prints",
    ),
    ("innkeeper-testkit", Kind::Field, "answer", "a key of the scripts of a scripted model"),
    ("innkeeper-toolcall", Kind::Function, "union", "the union of two sets"),
];

/// The kind of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Type,
    Function,
    Constant,
    Module,
    Variant,
    Field,
}

impl Kind {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "type" => Self::Type,
            "function" => Self::Function,
            "constant" => Self::Constant,
            "module" => Self::Module,
            "variant" => Self::Variant,
            "field" => Self::Field,
            _ => return None,
        })
    }

    /// The kind of the item that a keyword declares.
    fn of_keyword(word: &str) -> Option<Self> {
        Some(match word {
            "struct" | "enum" | "trait" | "type" | "union" => Self::Type,
            "fn" => Self::Function,
            "const" | "static" => Self::Constant,
            "mod" => Self::Module,
            _ => return None,
        })
    }
}

/// Checks that no declaration outside tests has a name that its crate retired.
pub(super) fn check_retired_names(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    if KEPT.len() > MAX_KEPT {
        let text = format!("{} retired names are kept, the limit is {MAX_KEPT}", KEPT.len());
        violations.push(Violation::new(TABLE_PATH, 0, text));
    }
    let table = repository.text(TABLE_PATH).unwrap_or_default();
    let mut retired = Vec::new();
    for (at, line) in table.lines().enumerate().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        match (cells.as_slice(), cells.get(1).and_then(|word| Kind::parse(word))) {
            ([package, _, name, replacement], Some(kind)) => {
                retired.push((*package, kind, *name, *replacement));
            }
            _ => violations.push(Violation::new(TABLE_PATH, at + 1, "is not a row of four cells")),
        }
    }
    for (path, source) in repository.sources().filter(|(path, _)| !is_test_file(path)) {
        let package = package_name(path);
        for (line, kind, name) in declarations(source) {
            let is_kept = KEPT.iter().any(|kept| (kept.0, kept.1, kept.2) == (package, kind, name));
            let row = retired.iter().find(|row| (row.0, row.1, row.2) == (package, kind, name));
            if let Some((_, _, _, replacement)) = row.filter(|_| !is_kept) {
                let text =
                    format!("`{name}` is a retired name: use `{replacement}` or another word");
                violations.push(Violation::new(path, line, text));
            }
        }
    }
    violations
}

fn package_name(path: &str) -> &str {
    path.strip_prefix("crates/").unwrap_or(path).split('/').next().unwrap_or(path)
}

/// The declarations of a file outside `#[cfg(test)]`: line, kind, name.
fn declarations(source: &SourceFile) -> Vec<(usize, Kind, &str)> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    // The kind of the members of the innermost type declaration, and the depth of its body.
    let mut body: Option<(Kind, usize)> = None;
    for (number, line) in source.product_lines() {
        if let Some((kind, body_depth)) = body {
            let name = member_name(line, kind).filter(|_| depth == body_depth);
            found.extend(name.map(|name| (number, kind, name)));
        }
        let words: Vec<&str> = line
            .split(|character| !is_identifier_char(character))
            .filter(|word| !word.is_empty())
            .collect();
        let item = words.windows(2).find_map(|pair| Some((Kind::of_keyword(pair[0])?, pair)));
        if let Some((kind, pair)) = item.filter(|(_, pair)| Kind::of_keyword(pair[1]).is_none()) {
            found.push((number, kind, pair[1]));
            let members = match pair[0] {
                "enum" => Some(Kind::Variant),
                "struct" => Some(Kind::Field),
                _ => None,
            };
            body = members.map(|members| (members, depth + 1));
        } else if let Some(pair) = words.windows(2).find(|pair| pair == &["const", "fn"]) {
            let name = words.iter().skip_while(|word| **word != pair[1]).nth(1);
            found.extend(name.map(|name| (number, Kind::Function, *name)));
        }
        for character in line.chars() {
            match character {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if body.is_some_and(|(_, body_depth)| depth < body_depth && line.contains(['}', ';'])) {
            body = None;
        }
    }
    found
}

/// The name of a variant or a field that starts in this line.
fn member_name(line: &str, kind: Kind) -> Option<&str> {
    let text = line.trim_start();
    let text = match text.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) if rest.starts_with(' ') => rest.trim_start(),
        _ => text,
    };
    let length = text.find(|character| !is_identifier_char(character)).unwrap_or(text.len());
    let (name, rest) = text.split_at(length);
    let starts_upper = name.chars().next()?.is_uppercase();
    match kind {
        Kind::Variant => starts_upper.then_some(name),
        _ => (!starts_upper && rest.starts_with(':')).then_some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    const TABLE: (&str, &str) = (
        TABLE_PATH,
        "crate\tkind\tname\treplacement\n\
         innkeeper-host\ttype\tShelf\tCatalogEntry\n\
         innkeeper-host\tfunction\tsip\tread_limit\n\
         innkeeper-host\tvariant\tNoise\tInvalidMessages\n\
         innkeeper-host\tfield\tfar\tprogress\n\
         innkeeper-host\tconstant\tSHOWN\tMAX_SHOWN_CHARS\n\
         innkeeper-host\tmodule\trevive\trestart\n\
         innkeeper-agent\tfunction\trun\tcall_tool\n",
    );

    fn violation_count(path: &str, text: &str) -> usize {
        violations(check_retired_names, &[TABLE, (path, text)]).len()
    }

    #[test]
    fn a_retired_name_is_caught_in_each_kind_of_declaration() {
        let path = "crates/innkeeper-host/src/a.rs";
        for text in [
            "pub(crate) struct Shelf {\n    x: u8,\n}\n",
            "impl A {\n    pub(crate) const fn sip(&self) {}\n}\n",
            "enum Lost {\n    /// Noise.\n    Noise,\n}\n",
            "struct A {\n    pub(super) far: u8,\n}\n",
            "const SHOWN: usize = 1;\n",
            "mod revive;\n",
        ] {
            assert_eq!(violation_count(path, text), 1, "{text}");
        }
    }

    #[test]
    fn uses_tests_other_crates_and_kept_names_are_not_caught() {
        let path = "crates/innkeeper-host/src/a.rs";
        let uses = "fn a() {\n    let far: u8 = 1;\n    let x = B { far: 2 };\n    x.sip(Noise, SHOWN);\n}\n";
        assert_eq!(violation_count(path, uses), 0);
        assert_eq!(violation_count(path, "#[cfg(test)]\nmod tests {\n    fn sip() {}\n}\n"), 0);
        assert_eq!(violation_count("crates/innkeeper-cli/src/a.rs", "fn sip() {}\n"), 0);
        assert_eq!(violation_count("crates/innkeeper-agent/src/agent.rs", "fn run() {}\n"), 0);
    }

    #[test]
    fn a_broken_row_of_the_table_is_caught() {
        let table = (TABLE_PATH, "crate\tkind\tname\treplacement\na\tverb\tb\tc\na\ttype\n");
        assert_eq!(violations(check_retired_names, &[table]).len(), 2);
    }
}
