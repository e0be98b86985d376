//! Formats the attacks as a Markdown page.

use super::annotation::{Attack, Surface};

const INTRODUCTION: &str = "\
# Attacks

This page lists the attacks that the tests perform: the attempt, the outcome, and the invariant that the test verifies.
`cargo xtask attacks --write` generates the page from the [annotations of the tests](testing.md#attacks).
[Architecture](../ARCHITECTURE.md#invariants) defines the invariants; [security](security.md) lists the threats, the
mechanisms and their limits.
";

/// Returns the page: a table per surface, with the tests in the order of their files.
pub(super) fn to_markdown(attacks: &[Attack]) -> String {
    let mut text = format!("{INTRODUCTION}\n| surface | attacks |\n| --- | ---: |\n");
    let of = |surface| attacks.iter().filter(move |attack| attack.surface == surface);
    for surface in Surface::ALL {
        let heading = surface.heading();
        let anchor = heading.to_lowercase().replace(' ', "-");
        text.push_str(&format!("| [{heading}](#{anchor}) | {} |\n", of(surface).count()));
    }
    text.push_str(&format!("| all | {} |\n", attacks.len()));
    for surface in Surface::ALL {
        text.push_str(&format!("\n## {}\n\n", surface.heading()));
        text.push_str("| attempt | outcome | invariant | test |\n| --- | --- | --- | --- |\n");
        for Attack { attempt, outcome, invariant, path, test_name, .. } in of(surface) {
            let test = format!("[`{test_name}`](../{path})");
            text.push_str(&format!("| {attempt} | {outcome} | {invariant} | {test} |\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_surface_has_its_rows_and_each_row_a_link_to_its_test() {
        let attack = |surface, attempt: &str| Attack {
            surface,
            attempt: attempt.to_owned(),
            outcome: "nothing".to_owned(),
            invariant: "Lossless".to_owned(),
            path: "crates/a/src/tests.rs".to_owned(),
            test_name: "it_holds".to_owned(),
        };
        let attacks = [attack(Surface::Terminal, "an escape"), attack(Surface::Framing, "a line")];
        let text = to_markdown(&attacks);
        assert!(text.contains("| [Flow control](#flow-control) | 0 |\n"), "{text}");
        assert!(text.contains("| all | 2 |\n"), "{text}");
        let row = "| nothing | Lossless | [`it_holds`](../crates/a/src/tests.rs) |\n";
        let (framing, terminal) = text.split_once("\n## Terminal output\n").unwrap();
        let (_, framing) = framing.split_once("\n## Framing\n").unwrap();
        assert!(framing.contains(&format!("| a line {row}")), "{text}");
        assert!(terminal.contains(&format!("| an escape {row}")), "{text}");
    }
}
