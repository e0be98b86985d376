//! Rules about single files: how they open, how long they are, what they must not say.

use super::Offence;
use crate::repository::{Repository, is_test_file};
use crate::source::has_word;

/// Lines of product code in one file.
const LONGEST_FILE: usize = 500;
/// Lines of a test module inside a product file.
const LONGEST_TEST_MODULE: usize = 100;

/// The first line of a Rust file says what the file is for.
pub(super) fn first_lines(repository: &Repository) -> Vec<Offence> {
    let opens_well = |path: &str, text: &str| {
        let marker = if path.ends_with("/build.rs") { "//" } else { "//! " };
        text.lines().next().is_some_and(|line| line.starts_with(marker))
    };
    repository
        .sources()
        .filter(|(path, source)| !opens_well(path, &source.text))
        .map(|(path, _)| Offence::new(path, 1, "the first line does not say what the file is for"))
        .collect()
}

/// Files and the test modules inside them stay short.
pub(super) fn lengths(repository: &Repository) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (path, source) in repository.sources().filter(|(path, _)| !is_test_file(path)) {
        let (code, tests) =
            (source.code_lines(), source.in_test.iter().filter(|line| **line).count());
        if code > LONGEST_FILE {
            let what = format!("{code} lines of code, {LONGEST_FILE} are the limit");
            offences.push(Offence::new(path, 0, what));
        }
        if tests > LONGEST_TEST_MODULE {
            let what =
                format!("{tests} lines of tests inside, {LONGEST_TEST_MODULE} are the limit");
            offences.push(Offence::new(path, 0, what));
        }
    }
    offences
}

/// No `unsafe`, and no lint switched off without a reason.
pub(super) fn forbidden_words(repository: &Repository) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (path, source) in repository.sources() {
        for (at, line) in source.code.lines().enumerate() {
            for word in ["unsafe", "#[allow(", "#![allow("] {
                if has_word(line, word) {
                    offences.push(Offence::new(path, at + 1, format!("`{word}`")));
                }
            }
        }
    }
    offences
}

/// Nothing is left for later inside the code.
pub(super) fn unfinished_business(repository: &Repository) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (path, source) in repository.sources() {
        let lines = source.code.lines().zip(source.comments.lines());
        for (at, (code, comment)) in lines.enumerate() {
            let in_code =
                ["todo!", "unimplemented!", "dbg!"].into_iter().filter(|word| has_word(code, word));
            let in_comment = ["TODO", "FIXME"].into_iter().filter(|word| has_word(comment, word));
            for word in in_code.chain(in_comment) {
                offences.push(Offence::new(path, at + 1, format!("`{word}`")));
            }
        }
    }
    offences
}

/// Spelled in halves, so that this file does not offend against its own rule.
const REGISTRIES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("npm", "js.org"),
    concat!("npm", "js.com"),
];
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// No file knows where packages come from or what machine it was written on.
pub(super) fn foreign_names(repository: &Repository) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (path, text) in repository.texts().filter(|(path, _)| !path.ends_with("Cargo.lock")) {
        for (at, line) in text.lines().enumerate() {
            for host in REGISTRIES.iter().filter(|host| line.contains(**host)) {
                offences.push(Offence::new(path, at + 1, format!("names the registry `{host}`")));
            }
            for folder in MACHINE_PATHS.iter().filter(|folder| opens_path(line, folder)) {
                offences.push(Offence::new(
                    path,
                    at + 1,
                    format!("`{folder}` is a path of one machine"),
                ));
            }
        }
    }
    offences
}

/// Whether the folder stands at the start of a path, not inside one.
fn opens_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|character| character.is_alphanumeric() || "-_.}".contains(character))
    })
}

#[cfg(test)]
mod tests {
    use super::super::offences;
    use super::*;

    #[test]
    fn a_file_without_an_opening_line_is_caught() {
        let files = [("crates/a/src/x.rs", "use y;\n"), ("crates/a/src/z.rs", "//! Says it.\n")];
        let found = offences(first_lines, &files);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/a/src/x.rs:1"));
    }

    #[test]
    fn one_line_over_the_limit_is_caught_and_the_limit_is_not() {
        let long = "let a = 1;\n".repeat(LONGEST_FILE);
        let longer = format!("{long}let b = 2;\n// no code\n\n");
        let files =
            [("a/src/x.rs", long.as_str()), ("a/src/y.rs", &longer), ("a/tests/z.rs", &longer)];
        assert_eq!(offences(lengths, &files), ["a/src/y.rs: 501 lines of code, 500 are the limit"]);
    }

    #[test]
    fn a_long_test_module_inside_a_file_is_caught() {
        let body = "    f();\n".repeat(LONGEST_TEST_MODULE - 2);
        let text = format!("#[cfg(test)]\nmod tests {{\n{body}}}\nfn product() {{}}\n");
        assert_eq!(offences(lengths, &[("a/src/x.rs", &text)]).len(), 1);
        assert_eq!(
            offences(lengths, &[("a/src/x.rs", &text.replacen("    f();\n", "", 1))]).len(),
            0
        );
    }

    #[test]
    fn unsafe_and_allow_are_caught_in_code_alone() {
        let text =
            "//! unsafe\nlet unsafe_code = \"unsafe\";\nunsafe { f() }\n#[allow(dead_code)]\n";
        assert_eq!(
            offences(forbidden_words, &[("a/src/x.rs", text)]),
            ["a/src/x.rs:3: `unsafe`", "a/src/x.rs:4: `#[allow(`"]
        );
    }

    #[test]
    fn what_is_left_for_later_is_caught() {
        let text =
            "//! x\nfn f() { todo!() }\nfn g() { dbg!(1); } // FIXME: soon\nlet a = \"TODO\";\n";
        assert_eq!(offences(unfinished_business, &[("a/src/x.rs", text)]).len(), 3);
    }

    #[test]
    fn registries_and_machine_paths_are_caught_in_any_text() {
        let registry = format!("see https://{}/x\n", REGISTRIES[0]);
        let machine = format!("cd {}main\nls target{}x\n", MACHINE_PATHS[0], MACHINE_PATHS[0]);
        let files = [("a.md", registry.as_str()), ("Cargo.lock", &registry), ("b.sh", &machine)];
        let found = offences(foreign_names, &files);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("a.md:1") && found[1].starts_with("b.sh:1"));
    }
}
