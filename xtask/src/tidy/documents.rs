//! Rules about documents: the map names every room, decisions are numbered without gaps.

use std::collections::BTreeSet;

use super::Offence;
use crate::repository::Repository;

const MAP: &str = "ARCHITECTURE.md";
const HOST: &str = "crates/innkeeper-host/src/lib.rs";

/// ARCHITECTURE.md names every crate and every room of the host.
pub(super) fn the_map_is_true(repository: &Repository) -> Vec<Offence> {
    let map = repository.text(MAP).unwrap_or_default();
    let named = |name: &str| map.contains(&format!("`{name}`"));
    let mut offences = Vec::new();
    for (path, _) in repository.texts() {
        let member = path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml"));
        if let Some(member) = member.filter(|member| !named(member)) {
            offences.push(Offence::new(MAP, 0, format!("does not name the crate `{member}`")));
        }
    }
    let rooms = repository.source(HOST).into_iter().flat_map(|source| source.modules());
    for room in rooms.filter(|room| !named(&format!("{room}.rs"))) {
        offences.push(Offence::new(
            MAP,
            0,
            format!("does not name the room `{room}.rs` of the host"),
        ));
    }
    offences
}

/// Decision pages are numbered from one without gaps or doubles.
pub(super) fn decisions_are_numbered(repository: &Repository) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut seen = BTreeSet::new();
    for (path, _) in repository.texts().filter(|(path, _)| path.starts_with("docs/decisions/")) {
        let file = path.rsplit('/').next().unwrap_or(path);
        let number = file.split_once('-').and_then(|(digits, _)| digits.parse::<usize>().ok());
        match number {
            Some(number) if seen.insert(number) => {}
            Some(number) => {
                offences.push(Offence::new(path, 0, format!("a second decision {number}")));
            }
            None => offences.push(Offence::new(path, 0, "has no number in front")),
        }
    }
    let gaps = (1..=seen.last().copied().unwrap_or(0)).filter(|number| !seen.contains(number));
    offences.extend(
        gaps.map(|gap| Offence::new("docs/decisions", 0, format!("decision {gap} is missing"))),
    );
    offences
}

#[cfg(test)]
mod tests {
    use super::super::offences;
    use super::*;

    #[test]
    fn a_room_the_map_does_not_know_is_caught() {
        let files = [
            (MAP, "`innkeeper-host` has `call.rs`."),
            ("crates/innkeeper-host/Cargo.toml", ""),
            ("crates/innkeeper-new/Cargo.toml", ""),
            (HOST, "mod call;\npub mod secret;\n"),
        ];
        let found = offences(the_map_is_true, &files);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`innkeeper-new`") && found[1].contains("`secret.rs`"));
    }

    #[test]
    fn a_gap_a_double_and_a_page_without_number_are_caught() {
        let page = |name: &'static str| (name, "text");
        let good = [page("docs/decisions/0001-a.md"), page("docs/decisions/0002-b.md")];
        assert!(offences(decisions_are_numbered, &good).is_empty());
        let bad = [
            page("docs/decisions/0001-a.md"),
            page("docs/decisions/0001-b.md"),
            page("docs/decisions/0003-c.md"),
            page("docs/decisions/idea.md"),
        ];
        assert_eq!(offences(decisions_are_numbered, &bad).len(), 3);
    }
}
