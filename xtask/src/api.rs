//! `api`: the public items of each library, in a file beside its manifest. A change of a signature
//! changes the file, so that no review overlooks it.
//!
//! Implementations of traits are left out. The lint `unreachable_pub` lets only items be `pub` that an application reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Fields, ImplItem, ImplItemFn, Item, ItemEnum, ItemImpl, ItemMod, ItemStruct, ItemTrait, Type,
    Visibility,
};

use crate::program::{relative_path, repository_root};
use crate::repository::{Repository, is_test_file};
use crate::tidy::is_excluded;
use crate::{TaskResult, output};

/// The libraries with a file.
const LIBRARIES: [&str; 10] = [
    "innkeeper",
    "innkeeper-agent",
    "innkeeper-config",
    "innkeeper-gateway",
    "innkeeper-golden",
    "innkeeper-host",
    "innkeeper-process",
    "innkeeper-protocol",
    "innkeeper-schema",
    "innkeeper-toolcall",
];

/// Compares the files with the sources; `--write` writes the files.
///
/// # Errors
///
/// A file differs from the sources, or cannot be written.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let writes = match arguments {
        [] => false,
        ["--write"] => true,
        [other, ..] => return Err(format!("`api` takes no `{other}`")),
    };
    let repository = Repository::load()?;
    for (path, text) in api_files(&repository) {
        output::print_line(format_args!("{:5}  {path}", text.lines().count()));
        let file = repository_root().join(&path);
        if writes {
            fs::write(&file, text)
                .map_err(|error| format!("`{}`: {error}", relative_path(&file)))?;
        }
    }
    let outdated = outdated_files(&repository);
    if writes || outdated.is_empty() {
        return Ok(());
    }
    Err(format!("write again with `cargo xtask api --write`: {}", outdated.join(", ")))
}

/// Returns the paths of the files that differ from the sources.
pub(crate) fn outdated_files(repository: &Repository) -> Vec<String> {
    let files = api_files(repository).into_iter();
    let outdated = files.filter(|(path, text)| repository.text(path) != Some(text));
    outdated.map(|(path, _)| path).collect()
}

/// Returns the files by path. A library without sources has none.
fn api_files(repository: &Repository) -> BTreeMap<String, String> {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, source) in repository.sources().filter(|(path, _)| !is_test_file(path)) {
        let Some((library, inside)) =
            path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        if !LIBRARIES.contains(&library) {
            continue;
        }
        let module = inside.trim_end_matches(".rs").trim_end_matches("lib").replace('/', "::");
        // `cargo check` reports invalid Rust.
        if let Ok(file) = syn::parse_file(&source.text) {
            let mut items = PublicItems { module, lines: BTreeSet::new() };
            items.visit_file(&file);
            files.entry(format!("crates/{library}/api.txt")).or_default().extend(items.lines);
        }
    }
    let files = files.into_iter();
    files.map(|(path, lines)| (path, Vec::from_iter(lines).join("\n") + "\n")).collect()
}

/// The public items of one file, a line each, with the module in front.
struct PublicItems {
    module: String,
    lines: BTreeSet<String>,
}

impl PublicItems {
    /// Adds an item by its source text, on one line.
    fn push(&mut self, owner: &str, item: &impl Spanned) {
        let text = item.span().source_text().unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let places = [&*self.module, owner].into_iter().filter(|place| !place.is_empty());
        let place = places.collect::<Vec<_>>().join("::");
        self.lines.insert(format!("{place}: {text}").trim_start_matches(": ").to_owned());
    }

    fn push_fields(&mut self, owner: &str, fields: &Fields) {
        for (index, field) in fields.iter().enumerate().filter(|(_, field)| is_public(&field.vis)) {
            match &field.ident {
                Some(name) => self.push(&format!("{owner}.{name}"), &field.ty),
                None => self.push(&format!("{owner}.{index}"), &field.ty),
            }
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns the name of a type without its arguments.
fn type_name(owner: &Type) -> String {
    match owner {
        Type::Path(owner) => {
            owner.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default()
        }
        _ => String::new(),
    }
}

impl<'ast> Visit<'ast> for PublicItems {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Fn(item) if is_public(&item.vis) && !is_excluded(&item.attrs) => {
                self.push("", &item.sig);
            }
            Item::Const(item) if is_public(&item.vis) => {
                self.push(&format!("const {}", item.ident), &item.ty);
            }
            Item::Static(item) if is_public(&item.vis) => {
                self.push(&format!("static {}", item.ident), &item.ty);
            }
            Item::Type(item) if is_public(&item.vis) => {
                self.push(&format!("type {}", item.ident), &item.ty);
            }
            Item::Use(item) if is_public(&item.vis) && !is_excluded(&item.attrs) => {
                self.push("", &item.tree);
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if is_excluded(&item.attrs) {
            return;
        }
        if is_public(&item.vis) {
            self.push("mod", &item.ident);
        }
        let inner = format!("{}::{}", self.module, item.ident);
        let outer = std::mem::replace(&mut self.module, inner.trim_start_matches("::").to_owned());
        visit::visit_item_mod(self, item);
        self.module = outer;
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        if is_public(&item.vis) {
            self.push("struct", &item.ident);
            self.push_fields(&item.ident.to_string(), &item.fields);
        }
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        if is_public(&item.vis) {
            self.push("enum", &item.ident);
            for variant in &item.variants {
                self.push(&item.ident.to_string(), &variant.ident);
                for (index, field) in variant.fields.iter().enumerate() {
                    let name = field.ident.as_ref().map_or(index.to_string(), ToString::to_string);
                    self.push(&format!("{}::{}.{name}", item.ident, variant.ident), &field.ty);
                }
            }
        }
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        if is_public(&item.vis) {
            self.push("trait", &item.ident);
            for inner in &item.items {
                match inner {
                    syn::TraitItem::Fn(inner) => self.push(&item.ident.to_string(), &inner.sig),
                    inner => self.push(&item.ident.to_string(), inner),
                }
            }
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if item.trait_.is_some() {
            return;
        }
        let owner = type_name(&item.self_ty);
        for inner in &item.items {
            match inner {
                ImplItem::Fn(ImplItemFn { vis, sig, attrs, .. })
                    if is_public(vis) && !is_excluded(attrs) =>
                {
                    self.push(&owner, sig);
                }
                ImplItem::Const(inner) if is_public(&inner.vis) => {
                    self.push(&format!("{owner}::{}", inner.ident), &inner.ty);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_an_item_is_and_what_it_takes() {
        let mut repository = Repository::default();
        let code = "pub struct Host { pub name: String, secret: u8 }
            impl Host { pub fn call(&self,\n name: &str) -> u8 { 1 } fn own() {} }
            pub enum State { Ready, Failed(String) }
            pub const LIMIT: u8 = 1;
            mod inner { pub use super::Host as Other; }
            pub(crate) fn hidden() {}
            #[cfg(test)] mod tests { pub fn f() {} }";
        repository.insert("crates/innkeeper/src/a/b.rs", code);
        let files = api_files(&repository);
        let lines: Vec<&str> = files["crates/innkeeper/api.txt"].lines().collect();
        let expected = [
            "a::b::Host.name: String",
            "a::b::Host: fn call(&self, name: &str) -> u8",
            "a::b::State: Failed",
            "a::b::State: Ready",
            "a::b::State::Failed.0: String",
            "a::b::const LIMIT: u8",
            "a::b::enum: State",
            "a::b::inner: super::Host as Other",
            "a::b::struct: Host",
        ];
        assert_eq!(lines, expected);
        assert_eq!(outdated_files(&repository), ["crates/innkeeper/api.txt"]);
    }
}
