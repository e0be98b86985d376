//! Rules about modules: none is forgotten, and a crate links one test binary.

use std::collections::BTreeMap;

use super::Offence;
use crate::repository::Repository;

/// Every Rust file is the root of something or declared by its parent.
pub(super) fn every_file_is_declared(repository: &Repository) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (path, _) in repository.sources() {
        let Some((name, parents)) = parents(path) else { continue };
        let declared = |parent: &String| {
            repository.source(parent).is_some_and(|source| source.declares(&name))
        };
        if !parents.iter().any(declared) {
            let there = parents.iter().find(|parent| repository.source(parent).is_some());
            let parent = there.unwrap_or(&parents[0]);
            let what = format!("`{parent}` does not declare it: it is never compiled");
            offences.push(Offence::new(path, 0, what));
        }
    }
    offences
}

/// The module's name and the files that may declare it; none for a root.
fn parents(path: &str) -> Option<(String, Vec<String>)> {
    let (folder, file) = path.rsplit_once('/')?;
    let name = file.strip_suffix(".rs")?;
    let (above, last) = folder.rsplit_once('/').unwrap_or(("", folder));
    let is_root = match name {
        "lib" | "main" | "build" => true,
        _ => ["bin", "tests", "examples", "benches", "fuzz_targets"].contains(&last),
    };
    // `foo/tests.rs` and the files beside `tests/it/main.rs` are modules; `tests/it.rs` is a root.
    if is_root {
        return None;
    }
    let parents = match last {
        "src" => vec![format!("{folder}/lib.rs"), format!("{folder}/main.rs")],
        _ => vec![
            format!("{above}/{last}.rs"),
            format!("{folder}/mod.rs"),
            format!("{folder}/main.rs"),
        ],
    };
    Some((name.to_owned(), parents))
}

/// Integration tests of a crate are modules of one binary.
pub(super) fn one_test_binary_each(repository: &Repository) -> Vec<Offence> {
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
            Offence::new(paths[1], 0, format!("a second test binary beside `{}`", paths[0]))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::offences;
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
        let found = offences(every_file_is_declared, &files);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("a/src/x/lost.rs") && found[1].starts_with("a/tests/it/two.rs")
        );
    }

    #[test]
    fn a_second_test_binary_is_caught() {
        let one =
            [("a/tests/it/main.rs", "mod x;"), ("a/tests/it/x.rs", ""), ("b/tests/it.rs", "")];
        assert!(offences(one_test_binary_each, &one).is_empty());
        let two = [("a/tests/it/main.rs", ""), ("a/tests/other.rs", "")];
        assert_eq!(offences(one_test_binary_each, &two).len(), 1);
    }
}
