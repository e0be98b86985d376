//! What the machine must have before anything starts.

use crate::Chore;
use crate::program::Program;

/// A program, how it is asked for its version, and the lowest that will do.
const NEEDED: &[(&str, &str, &[u32])] = &[
    ("cargo", "fmt --version", &[]),
    ("cargo", "clippy --version", &[]),
    ("cc", "--version", &[]),
    ("python3", "--version", &[3, 10]),
    ("python3", "-m pip --version", &[]),
    ("python3", "-m venv --help", &[]),
    ("node", "--version", &[20]),
    ("npm", "--version", &[]),
];

/// Asks for everything at once.
///
/// # Errors
///
/// One line that names all that is missing.
pub(super) fn check() -> Chore {
    let missing: Vec<String> = NEEDED.iter().filter_map(|need| lack(*need)).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("missing: {}", missing.join(", "))) }
}

fn lack((program, question, lowest): (&str, &str, &[u32])) -> Option<String> {
    let wish = wish(program, question, lowest);
    match Program::new(program).line(question).output() {
        Ok(answer) if version(&answer).as_slice() >= lowest => None,
        Ok(answer) => Some(format!("{wish} (this is {})", answer.trim())),
        Err(_) => Some(wish),
    }
}

fn wish(program: &str, question: &str, lowest: &[u32]) -> String {
    let part = question.trim_start_matches("-m ").split(' ').next().unwrap_or_default();
    let part = if part.starts_with("--") { String::new() } else { format!(" {part}") };
    let numbers: Vec<String> = lowest.iter().map(u32::to_string).collect();
    match numbers.join(".").as_str() {
        "" => format!("`{program}{part}`"),
        version => format!("`{program}` {version} or later"),
    }
}

/// The first dotted number in what a program says of itself.
fn version(answer: &str) -> Vec<u32> {
    let start = answer.find(|character: char| character.is_ascii_digit()).unwrap_or(answer.len());
    let number = answer[start..].split(|c: char| !c.is_ascii_digit() && c != '.').next();
    number.unwrap_or_default().split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_any_greeting_and_compared_as_numbers() {
        assert_eq!(version("Python 3.9.2\n"), [3, 9, 2]);
        assert_eq!(version("v20.20.2"), [20, 20, 2]);
        assert!(version("Python 3.9.2") < vec![3, 10]);
        assert!(version("Python 3.10") >= vec![3, 10]);
    }

    #[test]
    fn what_is_missing_is_named_with_its_lowest_version() {
        assert_eq!(
            lack(("no-such-program", "--version", &[20])).unwrap(),
            "`no-such-program` 20 or later"
        );
        assert_eq!(
            lack(("no-such-program", "-m pip --version", &[])).unwrap(),
            "`no-such-program pip`"
        );
        assert!(
            lack(("cargo", "--version", &[999])).unwrap().contains("999 or later (this is cargo")
        );
        assert_eq!(lack(("cargo", "--version", &[1])), None);
    }
}
