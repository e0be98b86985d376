//! Checks that applications reach each item that the command line uses through `innkeeper`.

use std::collections::BTreeMap;

use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{ItemUse, UseTree, Visibility};

use super::Violation;
use crate::repository::{Repository, is_test_file};

const FACADE_PATH: &str = "crates/innkeeper/src/lib.rs";
const CLI_DIR: &str = "crates/innkeeper-cli/src/";

/// The crates that applications name themselves: an HTTP server, and parsers without I/O.
const SEPARATE_CRATES: [&str; 3] =
    ["innkeeper_gateway", "innkeeper_protocol", "innkeeper_toolcall"];

/// What our own crates share: its types belong to an HTTP library.
const INTERNAL: [&str; 2] = ["http_client", "HttpClientError"];

/// The segments of a path that begins with a crate.
type CratePath = Vec<String>;

/// Checks that the facade exports each item of the libraries that the command line uses, or a module
/// that contains the item.
pub(super) fn check_facade(repository: &Repository) -> Vec<Violation> {
    let aliases = root_aliases(repository);
    let facade = repository.text(FACADE_PATH).map(PathReader::read).unwrap_or_default();
    let exports: Vec<CratePath> =
        facade.exports.into_iter().map(|(_, path)| resolve(path, &aliases)).collect();
    let mut violations = Vec::new();
    for (path, _) in repository.sources() {
        if !path.starts_with(CLI_DIR) || is_test_file(path) {
            continue;
        }
        let uses = repository.text(path).map(PathReader::read).unwrap_or_default().uses;
        let library_uses = uses.into_iter().filter(|(_, used)| {
            !SEPARATE_CRATES.contains(&&*used[0])
                && !used.last().is_some_and(|name| INTERNAL.contains(&&**name))
        });
        violations.extend(library_uses.filter_map(|(line, used)| {
            let item = resolve(used.clone(), &aliases);
            let is_exported = exports.iter().any(|export| item.starts_with(export));
            let message = format!("uses `{}`, which `innkeeper` does not export", used.join("::"));
            (!is_exported).then(|| Violation::new(path, line, message))
        }));
    }
    violations
}

/// The names that the root of each library exports, with the paths behind the names.
fn root_aliases(repository: &Repository) -> BTreeMap<[String; 2], CratePath> {
    let mut aliases = BTreeMap::new();
    for (path, source) in repository.sources() {
        let dir = path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/src/lib.rs"));
        let Some(name) = dir.map(|dir| dir.replace('-', "_")) else { continue };
        for (alias, mut target) in PathReader::read(&source.text).exports {
            if !is_library(&target[0]) {
                target.insert(0, name.clone());
            }
            aliases.insert([name.clone(), alias], target);
        }
    }
    aliases
}

/// Follows the exports of the roots to the path that defines the item or its module.
fn resolve(mut path: CratePath, aliases: &BTreeMap<[String; 2], CratePath>) -> CratePath {
    // Each export leads to a lower crate or into a module, so few steps suffice.
    for _ in 0..8 {
        let [root, name, rest @ ..] = path.as_slice() else { break };
        match aliases.get(&[root.clone(), name.clone()]) {
            Some(target) if !path.starts_with(target) => path = [target, rest].concat(),
            Some(_) | None => break,
        }
    }
    path
}

fn is_library(segment: &str) -> bool {
    segment.starts_with("innkeeper_")
}

/// The paths of one file.
#[derive(Default)]
struct PathReader {
    /// The paths to libraries, with their lines.
    uses: Vec<(usize, CratePath)>,
    /// The names of all `pub use` declarations, with their paths; a glob has the path of its module.
    exports: Vec<(String, CratePath)>,
}

impl PathReader {
    fn read(text: &str) -> Self {
        let mut reader = Self::default();
        // `cargo check` reports invalid Rust.
        if let Ok(file) = syn::parse_file(text) {
            reader.visit_file(&file);
        }
        reader
    }

    fn push_tree(&mut self, tree: &UseTree, prefix: &[String], is_export: bool) {
        let with = |ident: &Ident| match ident.to_string().as_str() {
            "self" => prefix.to_vec(),
            name => [prefix, &[name.to_owned()]].concat(),
        };
        let (line, path, name) = match tree {
            UseTree::Path(tree) => {
                return self.push_tree(&tree.tree, &with(&tree.ident), is_export);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|item| self.push_tree(item, prefix, is_export));
            }
            UseTree::Name(tree) => (line_of(&tree.ident), with(&tree.ident), None),
            UseTree::Rename(tree) => {
                (line_of(&tree.ident), with(&tree.ident), Some(tree.rename.to_string()))
            }
            UseTree::Glob(_) => (0, prefix.to_vec(), Some("*".to_owned())),
        };
        if path.first().is_some_and(|root| is_library(root)) {
            self.uses.push((line, path.clone()));
        }
        let name = name.or_else(|| path.last().cloned());
        self.exports.extend(name.filter(|_| is_export).map(|name| (name, path)));
    }
}

fn line_of(ident: &Ident) -> usize {
    ident.span().start().line
}

impl Visit<'_> for PathReader {
    fn visit_item_use(&mut self, item: &ItemUse) {
        self.push_tree(&item.tree, &[], matches!(item.vis, Visibility::Public(_)));
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let segments: CratePath =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.len() > 1 && is_library(&segments[0]) {
            self.uses.push((line_of(&path.segments[0].ident), segments));
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    const HOST: &str = "mod name;\npub mod lock;\npub use lock::{Lock, PinPolicy as Policy};\n\
        pub use name::{join, split};\npub use innkeeper_process as process;\n";

    fn violations_of(facade: &str, cli: &str) -> Vec<String> {
        let files = [
            (FACADE_PATH, facade),
            ("crates/innkeeper-host/src/lib.rs", HOST),
            ("crates/innkeeper-cli/src/call.rs", cli),
        ];
        violations(check_facade, &files)
    }

    #[test]
    fn an_item_without_an_export_is_reported_and_one_line_of_the_facade_mends_it() {
        let cli = "use innkeeper_host::{join, split};\n";
        let message = "crates/innkeeper-cli/src/call.rs:1: uses `innkeeper_host::split`, which \
                       `innkeeper` does not export";
        assert_eq!(violations_of("pub use innkeeper_host::join;", cli), [message]);
        assert_eq!(violations_of("use innkeeper_host::split;", cli).len(), 2);
        let facade = "pub mod name { pub use innkeeper_host::{join, split}; }";
        assert!(violations_of(facade, cli).is_empty());
    }

    #[test]
    fn an_exported_module_exports_its_items_under_each_of_their_names() {
        let cli = "fn f() { let x = innkeeper_host::Policy::Refuse; }\n\
                   use innkeeper_host::lock::Package;\nuse innkeeper_host::process::shim;\n";
        assert_eq!(violations_of("", cli).len(), 3);
        let facade = "pub mod lock { pub use innkeeper_host::lock::*; }\n\
                      pub use innkeeper_process as process;";
        assert!(violations_of(facade, cli).is_empty());
    }
}
