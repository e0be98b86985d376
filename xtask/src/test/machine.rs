//! What the machine must have before anything starts.

use crate::Chore;
use crate::program::Program;

struct Need {
    program: &'static str,
    question: &'static str,
    /// The lowest version that will do.
    lowest: &'static [u32],
    /// What to say when it is not there.
    words: &'static str,
}

const fn need(program: &'static str, question: &'static str, words: &'static str) -> Need {
    Need { program, question, lowest: &[], words }
}

const NEEDED: &[Need] = &[
    need("cargo", "fmt --version", "rustfmt (`rustup component add rustfmt`)"),
    need("cargo", "clippy --version", "clippy (`rustup component add clippy`)"),
    need("cc", "--version", "a C compiler (`apt-get install gcc`)"),
    Need {
        program: "python3",
        question: "--version",
        lowest: &[3, 10],
        words: "Python 3.10 or later (`apt-get install python3`)",
    },
    need("python3", "-m ensurepip --version", "Python's venv (`apt-get install python3-venv`)"),
    Need {
        program: "node",
        question: "--version",
        lowest: &[20],
        words: "Node 20 or later (`apt-get install nodejs`)",
    },
    need("npm", "--version", "npm (`apt-get install npm`)"),
];

/// Asks for everything at once.
///
/// # Errors
///
/// One line that names all that is missing.
pub(super) fn check() -> Chore {
    let missing: Vec<String> = NEEDED.iter().filter_map(lack).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("missing: {}", missing.join(", "))) }
}

fn lack(need: &Need) -> Option<String> {
    match Program::new(need.program).line(need.question).output() {
        Ok(answer) if version(&answer).as_slice() >= need.lowest => None,
        Ok(answer) => Some(format!("{}, this is {}", need.words, answer.trim())),
        Err(_) => Some(need.words.to_owned()),
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
    fn what_is_missing_or_too_old_is_named_with_the_way_to_get_it() {
        let absent = need("no-such-program", "--version", "it (`get it`)");
        assert_eq!(lack(&absent).unwrap(), "it (`get it`)");
        let old =
            Need { program: "cargo", question: "--version", lowest: &[999], words: "cargo 999" };
        assert!(lack(&old).unwrap().starts_with("cargo 999, this is cargo 1."));
        assert_eq!(lack(&Need { lowest: &[1], ..old }), None);
    }
}
