//! Parser of `docs/requirements.tsv`.

use std::collections::BTreeSet;

use crate::TaskResult;

/// The path of the table.
pub(super) const TABLE_PATH: &str = "docs/requirements.tsv";

/// The owner of requirements outside the plan.
pub(super) const NOT_PLANNED: &str = "not-planned";

const OWNERS: &[&str] = &[
    "SPINE",
    "PROMISES",
    "TOOLCALL",
    "PROVIDERS",
    "GHOST",
    "GOLDENS",
    "GATEWAY",
    "PYTHON",
    NOT_PLANNED,
];

/// A requirement with the issue that implements it.
#[derive(Debug)]
pub(super) struct Requirement {
    pub(super) id: String,
    pub(super) owner: String,
    pub(super) title: String,
    /// The command that verifies the requirement where no test can; CI runs it.
    pub(super) command: Option<String>,
    /// Whether nothing verifies the requirement yet.
    pub(super) is_open: bool,
}

/// The last cell of a requirement that nothing verifies yet.
pub(super) const OPEN: &str = "open";

/// Parses the table: a heading, then one requirement per line.
///
/// # Errors
///
/// A line is not a requirement, or an id occurs twice.
pub(super) fn parse(text: &str) -> TaskResult<Vec<Requirement>> {
    let mut ids = BTreeSet::new();
    let mut rows = Vec::new();
    for (at, line) in text.lines().enumerate().skip(1) {
        let wrong = |problem: &str| format!("{TABLE_PATH}:{}: {problem}", at + 1);
        let (id, kind, owner, title, command) = match *line.split('\t').collect::<Vec<_>>() {
            [id, kind, owner, title] => (id, kind, owner, title, None),
            [id, kind, owner, title, command] => (id, kind, owner, title, Some(command)),
            _ => return Err(wrong("expected four or five cells")),
        };
        if !["c", "b"].contains(&kind) || !OWNERS.contains(&owner) || title.is_empty() {
            return Err(wrong("unknown kind or owner, or no title"));
        }
        if !ids.insert(id) {
            return Err(wrong("duplicate id"));
        }
        rows.push(Requirement {
            id: id.to_owned(),
            owner: owner.to_owned(),
            title: title.to_owned(),
            command: command.filter(|command| *command != OPEN).map(str::to_owned),
            is_open: command == Some(OPEN),
        });
    }
    if rows.is_empty() { Err(format!("{TABLE_PATH} has no requirements")) } else { Ok(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_ids_unknown_owners_and_short_lines_are_refused() {
        let heading = "id\tkind\towner\ttitle\tcommand\n";
        for bad in [
            "N1\tc\tSPINE",
            "N1\tc\tNOBODY\tx",
            "N1\td\tSPINE\tx",
            "N1\tc\tSPINE\tx\nN1\tc\tSPINE\tx",
        ] {
            assert!(parse(&format!("{heading}{bad}\n")).is_err(), "{bad}");
        }
        assert!(parse(heading).is_err());
        assert_eq!(parse(&format!("{heading}N1\tc\tSPINE\tx\n")).unwrap().len(), 1);
    }
}
