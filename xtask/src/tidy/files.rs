//! Rules for single files: first line, length, forbidden text.

use super::Violation;
use crate::repository::{Repository, is_test_file};
use crate::source::has_word;

/// Maximum lines of product code in a file.
const MAX_FILE_LINES: usize = 500;
/// Maximum lines of a test module in a product file.
const MAX_TEST_MODULE_LINES: usize = 100;

/// Checks that the first line of a Rust file describes the file.
pub(super) fn check_first_lines(repository: &Repository) -> Vec<Violation> {
    let opens_well = |path: &str, text: &str| {
        let marker = if path.ends_with("/build.rs") { "//" } else { "//! " };
        text.lines().next().is_some_and(|line| line.starts_with(marker))
    };
    repository
        .sources()
        .filter(|(path, source)| !opens_well(path, &source.text))
        .map(|(path, _)| Violation::new(path, 1, "the first line is not a description of the file"))
        .collect()
}

/// Checks the length of files and of their test modules.
pub(super) fn check_lengths(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, source) in repository.sources().filter(|(path, _)| !is_test_file(path)) {
        let (code, tests) =
            (source.code_lines(), source.is_test_line.iter().filter(|line| **line).count());
        if code > MAX_FILE_LINES {
            let message = format!("{code} lines of code, the limit is {MAX_FILE_LINES}");
            violations.push(Violation::new(path, 0, message));
        }
        if tests > MAX_TEST_MODULE_LINES {
            let message =
                format!("{tests} lines of tests in the file, the limit is {MAX_TEST_MODULE_LINES}");
            violations.push(Violation::new(path, 0, message));
        }
    }
    violations
}

/// The files with unsafe code: `fork`, `execve`, new system calls, signal handlers, and the start of
/// a program without libc.
const UNSAFE_FILES: &[&str] = &[
    "crates/innkeeper-supervisor/src/freestanding.rs",
    "crates/innkeeper-supervisor/src/launch.rs",
    "crates/innkeeper-supervisor/src/signals.rs",
    "crates/innkeeper-supervisor/src/system.rs",
];

/// Checks for `unsafe` outside of its files, and for lints that are allowed without a reason.
pub(super) fn check_forbidden_words(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, source) in repository.sources() {
        for (at, line) in source.code.lines().enumerate() {
            for keyword in ["unsafe", "#[allow(", "#![allow("] {
                let is_permitted = keyword == "unsafe" && UNSAFE_FILES.contains(&path);
                if has_word(line, keyword) && !is_permitted {
                    violations.push(Violation::new(path, at + 1, format!("`{keyword}`")));
                }
            }
        }
    }
    violations
}

/// Checks for unfinished code.
pub(super) fn check_unfinished_markers(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, source) in repository.sources() {
        let lines = source.code.lines().zip(source.comments.lines());
        for (at, (code, comment)) in lines.enumerate() {
            let in_code =
                ["todo!", "unimplemented!", "dbg!"].into_iter().filter(|name| has_word(code, name));
            let in_comment =
                ["TODO", "FIXME"].into_iter().filter(|marker| has_word(comment, marker));
            for name in in_code.chain(in_comment) {
                violations.push(Violation::new(path, at + 1, format!("`{name}`")));
            }
        }
    }
    violations
}

/// Split names, so that this file does not violate its own rule.
const REGISTRIES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("npm", "js.org"),
    concat!("npm", "js.com"),
];
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// Checks for registry names and for paths of a single machine.
pub(super) fn check_machine_names(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in repository.texts().filter(|(path, _)| !path.ends_with("Cargo.lock")) {
        for (at, line) in text.lines().enumerate() {
            for host in REGISTRIES.iter().filter(|host| line.contains(**host)) {
                violations.push(Violation::new(
                    path,
                    at + 1,
                    format!("names the registry `{host}`"),
                ));
            }
            for prefix in MACHINE_PATHS.iter().filter(|prefix| starts_path(line, prefix)) {
                violations.push(Violation::new(
                    path,
                    at + 1,
                    format!("contains the machine path `{prefix}`"),
                ));
            }
        }
    }
    violations
}

/// Whether a path in the line starts with the directory.
fn starts_path(line: &str, prefix: &str) -> bool {
    line.match_indices(prefix).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|character| character.is_alphanumeric() || "-_.}".contains(character))
    })
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn a_file_without_an_opening_line_is_caught() {
        let files = [("crates/a/src/x.rs", "use y;\n"), ("crates/a/src/z.rs", "//! Says it.\n")];
        let found = violations(check_first_lines, &files);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/a/src/x.rs:1"));
    }

    #[test]
    fn one_line_over_the_limit_is_caught_and_the_limit_is_not() {
        let long = "let a = 1;\n".repeat(MAX_FILE_LINES);
        let longer = format!("{long}let b = 2;\n// no code\n\n");
        let files =
            [("a/src/x.rs", long.as_str()), ("a/src/y.rs", &longer), ("a/tests/z.rs", &longer)];
        assert_eq!(
            violations(check_lengths, &files),
            ["a/src/y.rs: 501 lines of code, the limit is 500"]
        );
    }

    #[test]
    fn a_long_test_module_inside_a_file_is_caught() {
        let body = "    f();\n".repeat(MAX_TEST_MODULE_LINES - 2);
        let text = format!("#[cfg(test)]\nmod tests {{\n{body}}}\nfn product() {{}}\n");
        assert_eq!(violations(check_lengths, &[("a/src/x.rs", &text)]).len(), 1);
        assert_eq!(
            violations(check_lengths, &[("a/src/x.rs", &text.replacen("    f();\n", "", 1))]).len(),
            0
        );
    }

    #[test]
    fn unsafe_and_allow_are_caught_in_code_alone() {
        let text =
            "//! unsafe\nlet unsafe_code = \"unsafe\";\nunsafe { f() }\n#[allow(dead_code)]\n";
        assert_eq!(
            violations(check_forbidden_words, &[("a/src/x.rs", text)]),
            ["a/src/x.rs:3: `unsafe`", "a/src/x.rs:4: `#[allow(`"]
        );
        assert_eq!(
            violations(check_forbidden_words, &[(UNSAFE_FILES[0], text)]),
            [format!("{}:4: `#[allow(`", UNSAFE_FILES[0])]
        );
    }

    #[test]
    fn what_is_left_for_later_is_caught() {
        let text =
            "//! x\nfn f() { todo!() }\nfn g() { dbg!(1); } // FIXME: soon\nlet a = \"TODO\";\n";
        assert_eq!(violations(check_unfinished_markers, &[("a/src/x.rs", text)]).len(), 3);
    }

    #[test]
    fn registries_and_machine_paths_are_caught_in_any_text() {
        let registry = format!("see https://{}/x\n", REGISTRIES[0]);
        let machine = format!("cd {}main\nls target{}x\n", MACHINE_PATHS[0], MACHINE_PATHS[0]);
        let files = [("a.md", registry.as_str()), ("Cargo.lock", &registry), ("b.sh", &machine)];
        let found = violations(check_machine_names, &files);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("a.md:1") && found[1].starts_with("b.sh:1"));
    }
}
