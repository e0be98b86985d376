//! The accepted licences and duplicates of `xtask/dependencies.toml`, each with its reason.

use std::collections::BTreeMap;
use std::fs;

use toml::{Table, Value};

use crate::TaskResult;
use crate::program::repository_root;

/// The file with the decisions.
pub(super) const POLICY_FILE: &str = "xtask/dependencies.toml";

/// What the project accepts.
#[derive(Debug)]
pub(super) struct Policy {
    /// The identifiers of the accepted licences.
    pub(super) licences: Vec<String>,
    /// The accepted versions of packages with several versions.
    pub(super) duplicates: BTreeMap<String, Vec<String>>,
}

impl Policy {
    /// Reads the file of the repository.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is invalid.
    pub(super) fn load() -> TaskResult<Self> {
        let text = fs::read_to_string(repository_root().join(POLICY_FILE))
            .map_err(|error| format!("`{POLICY_FILE}`: {error}"))?;
        Self::parse(&text)
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    ///
    /// The text is invalid, or an entry has no reason.
    pub(super) fn parse(text: &str) -> TaskResult<Self> {
        let file: Table = text.parse().map_err(|error| format!("`{POLICY_FILE}`: {error}"))?;
        let mut licences = Vec::new();
        for (id, reason) in entries(&file, "licences")? {
            require_reason(id, Some(reason))?;
            licences.push(id.clone());
        }
        let mut duplicates = BTreeMap::new();
        for (name, entry) in entries(&file, "duplicates")? {
            require_reason(name, entry.get("reason"))?;
            let versions = entry.get("versions").and_then(Value::as_array);
            let versions: Vec<String> = versions
                .into_iter()
                .flatten()
                .filter_map(|version| version.as_str().map(str::to_owned))
                .collect();
            if versions.len() < 2 {
                return Err(format!("`{POLICY_FILE}`: `{name}` needs two or more `versions`"));
            }
            duplicates.insert(name.clone(), versions);
        }
        Ok(Self { licences, duplicates })
    }
}

fn entries<'a>(file: &'a Table, key: &str) -> TaskResult<&'a Table> {
    let table = file.get(key).and_then(Value::as_table);
    table.ok_or_else(|| format!("`{POLICY_FILE}` has no table `{key}`"))
}

fn require_reason(entry: &str, reason: Option<&Value>) -> TaskResult {
    match reason.and_then(Value::as_str) {
        Some(reason) if !reason.trim().is_empty() => Ok(()),
        Some(_) | None => Err(format!("`{POLICY_FILE}`: `{entry}` has no reason")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_needs_a_reason_and_a_duplicate_needs_versions() {
        let parse = |licence: &str, duplicate: &str| {
            Policy::parse(&format!("[licences]\nMIT = {licence}\n[duplicates]\n{duplicate}"))
        };
        let rand = r#"rand = { versions = ["0.8", "0.9"], reason = "x" }"#;
        let policy = parse("\"permissive\"", rand).unwrap();
        assert_eq!(policy.licences, ["MIT"]);
        assert_eq!(policy.duplicates["rand"], ["0.8", "0.9"]);
        for (licence, duplicate, entry) in [
            ("\" \"", rand, "`MIT` has no reason"),
            ("\"x\"", r#"rand = { versions = ["0.8", "0.9"] }"#, "`rand` has no reason"),
            ("\"x\"", r#"rand = { versions = ["0.8"], reason = "x" }"#, "`rand` needs two"),
        ] {
            let error = parse(licence, duplicate).unwrap_err();
            assert!(error.contains(entry), "{error}");
        }
        assert!(Policy::parse("[licences]\n").unwrap_err().contains("no table `duplicates`"));
    }
}
