//! Finds the attacks that the doc comments of tests describe.

use std::collections::BTreeSet;

use crate::repository::Repository;
use crate::requirements::next_test_name;

/// The start of an annotation in the doc comment of a test, before its cells.
const PREFIX: &str = "/// Attack:";
/// The page with the invariants.
const ARCHITECTURE_PATH: &str = "ARCHITECTURE.md";
/// The heading above the invariants.
const INVARIANTS_HEADING: &str = "## Invariants";

/// The part of the project that an attack reaches first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surface {
    Framing,
    FlowControl,
    Data,
    Processes,
    Sandbox,
    Secrets,
    Remote,
    Terminal,
    Model,
    Files,
}

impl Surface {
    /// All surfaces in the order of the page.
    pub(super) const ALL: [Self; 10] = [
        Self::Framing,
        Self::FlowControl,
        Self::Data,
        Self::Processes,
        Self::Sandbox,
        Self::Secrets,
        Self::Remote,
        Self::Terminal,
        Self::Model,
        Self::Files,
    ];

    /// The word of an annotation.
    fn word(self) -> &'static str {
        match self {
            Self::Framing => "framing",
            Self::FlowControl => "flow control",
            Self::Data => "data",
            Self::Processes => "processes",
            Self::Sandbox => "sandbox",
            Self::Secrets => "secrets",
            Self::Remote => "remote",
            Self::Terminal => "terminal",
            Self::Model => "model",
            Self::Files => "files",
        }
    }

    /// The heading of the page.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Framing => "Framing",
            Self::FlowControl => "Flow control",
            Self::Data => "Definitions and results",
            Self::Processes => "Processes and kills",
            Self::Sandbox => "Sandbox and limits",
            Self::Secrets => "Secrets of the host",
            Self::Remote => "Remote servers and sign-in",
            Self::Terminal => "Terminal output",
            Self::Model => "Model output",
            Self::Files => "Configuration and files of a directory",
        }
    }
}

/// An attack that a test performs.
#[derive(Debug, PartialEq)]
pub(super) struct Attack {
    pub(super) surface: Surface,
    pub(super) attempt: String,
    pub(super) outcome: String,
    pub(super) invariant: String,
    pub(super) path: String,
    pub(super) test_name: String,
}

/// The path, the line and the message of an invalid annotation.
pub(super) type Problem = (String, usize, String);

/// Returns all attacks in the order of their files, and the invalid annotations.
pub(super) fn find_attacks(repository: &Repository) -> (Vec<Attack>, Vec<Problem>) {
    let invariants = invariants(repository.text(ARCHITECTURE_PATH).unwrap_or_default());
    let (mut attacks, mut problems) = (Vec::new(), Vec::new());
    for (path, source) in repository.sources() {
        // Only comments count: the tests of this program quote annotations in literals.
        let lines: Vec<(&str, &str)> = source.comments.lines().zip(source.code.lines()).collect();
        for at in 0..lines.len() {
            if !lines[at].0.trim().starts_with(PREFIX) {
                continue;
            }
            let attack = parse(&text_from(&lines[at..]), &invariants).and_then(|attack| {
                let test_name =
                    next_test_name(&lines[at + 1..]).ok_or("is not above a test".to_owned())?;
                Ok(Attack { path: path.to_owned(), test_name, ..attack })
            });
            match attack {
                Ok(attack) => attacks.push(attack),
                Err(message) => problems.push((path.to_owned(), at + 1, message)),
            }
        }
    }
    (attacks, problems)
}

/// The names of the invariants: the bold start of each item below the heading.
fn invariants(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().skip_while(|line| *line != INVARIANTS_HEADING).skip(1);
    let lines = lines.take_while(|line| !line.starts_with("## "));
    lines.filter_map(|line| Some(line.split_once(". **")?.1.split_once(".**")?.0)).collect()
}

/// The text of the annotation in the first line, with the lines that continue the annotation.
fn text_from(lines: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (at, (comment, _)) in lines.iter().enumerate() {
        let comment = comment.trim();
        let line = match comment.strip_prefix(PREFIX) {
            Some(first) if at == 0 => Some(first),
            Some(_) => None,
            None => comment.strip_prefix("///").filter(|line| !starts_paragraph(line)),
        };
        let Some(line) = line else { break };
        text.push(' ');
        text.push_str(line.trim());
    }
    text
}

/// Whether a line of a doc comment ends the annotation above the line.
fn starts_paragraph(line: &str) -> bool {
    line.trim().is_empty() || line.trim().starts_with("Proves:")
}

fn parse(text: &str, invariants: &BTreeSet<&str>) -> Result<Attack, String> {
    let cells: Vec<&str> = text.split('|').map(str::trim).collect();
    let &[word, attempt, outcome, invariant] = &cells[..] else {
        return Err(format!(
            "an attack has 4 cells (surface | attempt | outcome | invariant), not {}",
            cells.len()
        ));
    };
    let Some(surface) = Surface::ALL.into_iter().find(|surface| surface.word() == word) else {
        let words = Surface::ALL.map(Surface::word).join(", ");
        return Err(format!("no surface `{word}`; known: {words}"));
    };
    if attempt.is_empty() || outcome.is_empty() {
        return Err("the attempt or the outcome is empty".to_owned());
    }
    if !invariants.contains(invariant) {
        return Err(format!("{ARCHITECTURE_PATH} has no invariant `{invariant}`"));
    }
    Ok(Attack {
        surface,
        attempt: attempt.to_owned(),
        outcome: outcome.to_owned(),
        invariant: invariant.to_owned(),
        path: String::new(),
        test_name: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVARIANTS: &str = "**Bold.**\n## Invariants\n1. **Lossless.** Text.\n   **More.**\n10. **No orphan.** Text.\n## Next\n1. **Other.**\n";

    fn scan(text: &str) -> (Vec<Attack>, Vec<Problem>) {
        let mut repository = Repository::default();
        repository.insert(ARCHITECTURE_PATH, INVARIANTS);
        repository.insert("a.rs", text);
        find_attacks(&repository)
    }

    #[test]
    fn an_annotation_wraps_and_ends_at_the_next_paragraph_or_annotation() {
        let text = "/// Words.\n/// Attack: framing | half a line,\n///   then nothing | the call ends\n/// | Lossless\n/// Proves: N1\n/// Attack: flow control | a | b | No orphan\n///\n/// More words.\n#[tokio::test]\nasync fn ends() {}\n";
        let (attacks, problems) = scan(text);
        assert_eq!(problems, []);
        let expected = [
            (Surface::Framing, "half a line, then nothing | the call ends | Lossless | ends"),
            (Surface::FlowControl, "a | b | No orphan | ends"),
        ];
        let expected = expected.map(|(surface, text)| (surface, text.to_owned()));
        assert_eq!(
            attacks
                .iter()
                .map(|attack| {
                    let cells =
                        [&attack.attempt, &attack.outcome, &attack.invariant, &attack.test_name];
                    (attack.surface, cells.map(String::as_str).join(" | "))
                })
                .collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn an_invalid_annotation_is_a_problem_with_its_line() {
        let test = "\n#[test]\nfn ends() {}\n";
        for (annotation, test, expected) in [
            ("framing | a | b", test, "has 4 cells"),
            ("framing | a | b | c | Lossless", test, "not 5"),
            ("nothing | a | b | Lossless", test, "no surface `nothing`; known: framing, "),
            ("framing | | b | Lossless", test, "is empty"),
            ("framing | a | | Lossless", test, "is empty"),
            ("framing | a | b | Other", test, "ARCHITECTURE.md has no invariant `Other`"),
            ("framing | a | b | Bold", test, "no invariant `Bold`"),
            ("framing | a | b | More", test, "no invariant `More`"),
            ("framing | a | b | Lossless", "\nfn no_test() {}\n", "is not above a test"),
            ("framing | a | b | Lossless", "\n\n#[test]\nfn far() {}\n", "is not above a test"),
        ] {
            let (attacks, problems) = scan(&format!("// One.\n/// Attack: {annotation}{test}"));
            assert_eq!(attacks, [], "{annotation}");
            let [(path, line, message)] = &problems[..] else { panic!("{problems:?}") };
            assert_eq!((path.as_str(), *line), ("a.rs", 2), "{annotation}");
            assert!(message.contains(expected), "{annotation}: {message}");
        }
    }
}
