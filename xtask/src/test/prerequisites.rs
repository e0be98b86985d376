//! Checks for the programs that the tests require.

use crate::TaskResult;
use crate::program::Program;

struct RequiredProgram {
    program: &'static str,
    version_args: &'static str,
    /// The minimum version.
    min_version: &'static [u32],
    /// The installation command for the error message.
    install_hint: &'static str,
}

const fn required(
    program: &'static str,
    version_args: &'static str,
    hint: &'static str,
) -> RequiredProgram {
    RequiredProgram { program, version_args, min_version: &[], install_hint: hint }
}

const REQUIRED_PROGRAMS: &[RequiredProgram] = &[
    required("cargo", "fmt --version", "rustfmt (`rustup component add rustfmt`)"),
    required("cargo", "clippy --version", "clippy (`rustup component add clippy`)"),
    required("cc", "--version", "a C compiler (`apt-get install gcc`)"),
    RequiredProgram {
        program: "python3",
        version_args: "--version",
        min_version: &[3, 11],
        install_hint: "Python 3.11 or later (`apt-get install python3`)",
    },
    required("python3", "-m ensurepip --version", "Python's venv (`apt-get install python3-venv`)"),
    RequiredProgram {
        program: "node",
        version_args: "--version",
        min_version: &[20],
        install_hint: "Node 20 or later (`apt-get install nodejs`)",
    },
    required("npm", "--version", "npm (`apt-get install npm`)"),
    required("openssl", "version", "OpenSSL (`apt-get install openssl`)"),
];

/// Checks all programs at once.
///
/// # Errors
///
/// One line names all missing programs.
pub(super) fn check() -> TaskResult {
    let missing: Vec<String> = REQUIRED_PROGRAMS.iter().filter_map(missing).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("missing: {}", missing.join(", "))) }
}

fn missing(need: &RequiredProgram) -> Option<String> {
    match Program::new(need.program).args(need.version_args).output() {
        Ok(output) if parse_version(&output).as_slice() >= need.min_version => None,
        Ok(output) => Some(format!("{}, found {}", need.install_hint, output.trim())),
        Err(_) => Some(need.install_hint.to_owned()),
    }
}

/// The first dotted number in the version output of a program.
fn parse_version(output: &str) -> Vec<u32> {
    let start = output.find(|character: char| character.is_ascii_digit()).unwrap_or(output.len());
    let number = output[start..].split(|c: char| !c.is_ascii_digit() && c != '.').next();
    number.unwrap_or_default().split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_from_any_output_and_compared_as_numbers() {
        assert_eq!(parse_version("Python 3.9.2\n"), [3, 9, 2]);
        assert_eq!(parse_version("v20.20.2"), [20, 20, 2]);
        assert!(parse_version("Python 3.9.2") < vec![3, 10]);
        assert!(parse_version("Python 3.10") >= vec![3, 10]);
    }

    #[test]
    fn what_is_missing_or_too_old_is_named_with_the_way_to_get_it() {
        let absent = required("no-such-program", "--version", "it (`get it`)");
        assert_eq!(missing(&absent).unwrap(), "it (`get it`)");
        let old = RequiredProgram {
            program: "cargo",
            version_args: "--version",
            min_version: &[999],
            install_hint: "cargo 999",
        };
        assert!(missing(&old).unwrap().starts_with("cargo 999, found cargo 1."));
        assert_eq!(missing(&RequiredProgram { min_version: &[1], ..old }), None);
    }
}
