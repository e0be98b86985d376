//! docs/rows.tsv: the requirements by id, each with the issue that brings it.

use std::collections::BTreeSet;

use crate::Chore;

/// Where the table is.
pub(super) const FILE: &str = "docs/rows.tsv";

/// The owner of rows that go beyond the plan.
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

/// One requirement.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) owner: String,
    pub(super) title: String,
    /// What proves it where no test can.
    pub(super) command: Option<String>,
}

/// Reads the table: a heading, then one row a line.
///
/// # Errors
///
/// The line that is not a row, or the id that is there twice.
pub(super) fn parse(text: &str) -> Chore<Vec<Row>> {
    let mut ids = BTreeSet::new();
    let mut rows = Vec::new();
    for (at, line) in text.lines().enumerate().skip(1) {
        let wrong = |what: &str| format!("{FILE}:{}: {what}", at + 1);
        let (id, kind, owner, title, command) = match *line.split('\t').collect::<Vec<_>>() {
            [id, kind, owner, title] => (id, kind, owner, title, None),
            [id, kind, owner, title, command] => (id, kind, owner, title, Some(command)),
            _ => return Err(wrong("has not four or five cells")),
        };
        if !["c", "b"].contains(&kind) || !OWNERS.contains(&owner) || title.is_empty() {
            return Err(wrong("has an unknown kind or owner, or no title"));
        }
        if !ids.insert(id) {
            return Err(wrong("is a second row of this id"));
        }
        rows.push(Row {
            id: id.to_owned(),
            owner: owner.to_owned(),
            title: title.to_owned(),
            command: command.map(str::to_owned),
        });
    }
    if rows.is_empty() { Err(format!("{FILE} has no rows")) } else { Ok(rows) }
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
