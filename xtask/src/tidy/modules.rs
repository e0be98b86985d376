//! Rules for modules: every file is declared, a crate has one test binary.

use std::collections::BTreeMap;

use super::Violation;
use crate::repository::Repository;

/// Checks that every Rust file is a crate root or declared by its parent.
pub(super) fn check_files_declared(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, _) in repository.sources() {
        let Some((name, parents)) = parent_modules(path) else { continue };
        let is_declared = |parent: &String| {
            repository.source(parent).is_some_and(|source| source.declares(&name))
        };
        if !parents.iter().any(is_declared) {
            let existing = parents.iter().find(|parent| repository.source(parent).is_some());
            let parent = existing.unwrap_or(&parents[0]);
            let message = format!("`{parent}` does not declare this file, so it is never compiled");
            violations.push(Violation::new(path, 0, message));
        }
    }
    violations
}

/// The module's name and the files that may declare it; none for a crate root.
fn parent_modules(path: &str) -> Option<(String, Vec<String>)> {
    let (dir, file) = path.rsplit_once('/')?;
    let name = file.strip_suffix(".rs")?;
    let (above, last) = dir.rsplit_once('/').unwrap_or(("", dir));
    let is_root = match name {
        "lib" | "main" | "build" => true,
        _ => ["bin", "tests", "examples", "benches", "fuzz_targets"].contains(&last),
    };
    // `foo/tests.rs` and the files in `tests/it/` are modules; `tests/it.rs` is a root.
    if is_root {
        return None;
    }
    let parents = match last {
        "src" => vec![format!("{dir}/lib.rs"), format!("{dir}/main.rs")],
        _ => vec![format!("{above}/{last}.rs"), format!("{dir}/mod.rs"), format!("{dir}/main.rs")],
    };
    Some((name.to_owned(), parents))
}

/// Checks that the integration tests of a crate are modules of one binary.
pub(super) fn check_single_test_binary(repository: &Repository) -> Vec<Violation> {
    let mut binaries: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, _) in repository.sources() {
        let Some((member, rest)) = path.split_once("/tests/") else { continue };
        let own_file = !rest.contains('/');
        let own_folder = rest.matches('/').count() == 1 && rest.ends_with("/main.rs");
        if !member.contains("/src") && (own_file || own_folder) {
            binaries.entry(member).or_default().push(path);
        }
    }
    binaries
        .into_values()
        .filter(|paths| paths.len() > 1)
        .map(|paths| {
            Violation::new(paths[1], 0, format!("second test binary besides `{}`", paths[0]))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn a_forgotten_module_is_caught() {
        let files = [
            ("a/src/lib.rs", "mod x;\nmod y;\n"),
            ("a/src/x.rs", "mod deep;\n#[cfg(test)]\nmod tests;\n"),
            ("a/src/x/deep.rs", ""),
            ("a/src/x/tests.rs", ""),
            ("a/src/x/lost.rs", ""),
            ("a/src/y.rs", "// mod z;"),
            ("a/tests/it/main.rs", "mod one;"),
            ("a/tests/it/one.rs", ""),
            ("a/tests/it/two.rs", ""),
            ("a/src/bin/tool.rs", ""),
        ];
        let found = violations(check_files_declared, &files);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("a/src/x/lost.rs") && found[1].starts_with("a/tests/it/two.rs")
        );
    }

    #[test]
    fn a_second_test_binary_is_caught() {
        let single_binary =
            [("a/tests/it/main.rs", "mod x;"), ("a/tests/it/x.rs", ""), ("b/tests/it.rs", "")];
        assert!(violations(check_single_test_binary, &single_binary).is_empty());
        let two = [("a/tests/it/main.rs", ""), ("a/tests/other.rs", "")];
        assert_eq!(violations(check_single_test_binary, &two).len(), 1);
    }
}
