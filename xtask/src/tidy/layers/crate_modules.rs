//! The modules of one crate, with what each module uses of the others.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Violation;
use super::module_file::{DeclaredModule, GLOB, ModuleFile, PathUse};
use crate::repository::{Repository, is_test_file};

/// The modules of a crate and their paths, without test code.
#[derive(Debug, Default)]
pub(super) struct CrateModules {
    modules: BTreeSet<Vec<String>>,
    /// Each used path with the file that contains the path.
    uses: Vec<(String, PathUse)>,
}

/// One place where a submodule uses something of the same parent.
#[derive(Debug)]
pub(super) struct ModuleUse<'a> {
    pub(super) path: &'a str,
    pub(super) line: usize,
    pub(super) user: &'a str,
    pub(super) used: Used<'a>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Used<'a> {
    Module(&'a str),
    /// The import of the parent as a whole; nothing says which submodules the code uses.
    Parent,
}

impl CrateModules {
    /// Reads the library in `source_dir`, or the program if there is none, with the problems of its
    /// files.
    pub(super) fn read(repository: &Repository, source_dir: &str) -> (Self, Vec<Violation>) {
        let (mut modules, mut violations) = (Self::default(), Vec::new());
        let roots = ["lib.rs", "main.rs"].map(|root| format!("{source_dir}/{root}"));
        let root = roots.into_iter().find(|root| repository.source(root).is_some());
        let mut waiting = vec![(root.unwrap_or_default(), Vec::new())];
        while let Some((path, module)) = waiting.pop() {
            let text = repository.text(&path).unwrap_or_default();
            let file = match ModuleFile::parse(text, &module) {
                Ok(file) => file,
                Err(error) => {
                    let line = error.span().start().line;
                    violations.push(Violation::new(&path, line, format!("is not Rust: {error}")));
                    continue;
                }
            };
            for DeclaredModule { line, path: module, is_inline } in file.modules {
                if !is_inline {
                    let base = format!("{source_dir}/{}", module.join("/"));
                    let files = [format!("{base}.rs"), format!("{base}/mod.rs")];
                    match files.into_iter().find(|file| repository.source(file).is_some()) {
                        Some(file) if is_test_file(&file) => continue,
                        Some(file) => waiting.push((file, module.clone())),
                        None => {
                            let message = format!("declares a module without the file `{base}.rs`");
                            violations.push(Violation::new(&path, line, message));
                        }
                    }
                }
                modules.modules.insert(module);
            }
            modules.uses.extend(file.uses.into_iter().map(|found| (path.clone(), found)));
        }
        (modules, violations)
    }

    /// Whether the module exists; the crate itself has an empty path.
    pub(super) fn contains(&self, module: &[String]) -> bool {
        module.is_empty() || self.modules.contains(module)
    }

    /// The crate and all of its modules that declare others.
    pub(super) fn parents(&self) -> BTreeSet<&[String]> {
        self.modules.iter().filter_map(|path| Some(path.split_last()?.1)).collect()
    }

    /// The modules that `parent` declares.
    pub(super) fn submodules(&self, parent: &[String]) -> BTreeSet<&str> {
        let paths = self.modules.iter().filter_map(|path| path.strip_prefix(parent));
        let names = paths.filter_map(|rest| if let [name] = rest { Some(name) } else { None });
        names.map(String::as_str).collect()
    }

    /// What the submodules of `parent` use of each other, in the order of the lines of each file.
    ///
    /// The parent itself is exempt: a name that it imports stands for the submodule behind the
    /// name.
    pub(super) fn uses_below(&self, parent: &[String]) -> Vec<ModuleUse<'_>> {
        let submodules = self.submodules(parent);
        let imports = self.imports(parent, &submodules);
        let mut found = BTreeSet::new();
        for (path, written) in &self.uses {
            let Some([user, ..]) = written.module.strip_prefix(parent) else { continue };
            let Some(target) = written.path.strip_prefix(parent) else { continue };
            for used in used_items(target, &submodules, &imports) {
                if used != Used::Module(user) {
                    found.insert((path.as_str(), written.line, user.as_str(), used));
                }
            }
        }
        let uses = found.into_iter();
        uses.map(|(path, line, user, used)| ModuleUse { path, line, user, used }).collect()
    }

    /// The names that `parent` imports from its submodules, each with the submodules.
    fn imports<'a>(
        &'a self,
        parent: &[String],
        submodules: &BTreeSet<&'a str>,
    ) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let mut imports: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (_, written) in self.uses.iter().filter(|(_, written)| written.module == parent) {
            if let Some(name) = &written.name
                && let Some([module, ..]) = written.path.strip_prefix(parent)
                && submodules.contains(module.as_str())
            {
                imports.entry(name).or_default().insert(module);
            }
        }
        imports
    }
}

/// What a path uses: `target` are the segments after the parent.
fn used_items<'a>(
    target: &'a [String],
    submodules: &BTreeSet<&'a str>,
    imports: &BTreeMap<&'a str, BTreeSet<&'a str>>,
) -> BTreeSet<Used<'a>> {
    let Some((name, rest)) = target.split_first() else { return BTreeSet::from([Used::Parent]) };
    if name == GLOB {
        return BTreeSet::from([Used::Parent]);
    }
    let mut modules = BTreeSet::new();
    if let Some(module) = submodules.get(name.as_str()) {
        modules.insert(*module);
    }
    // A function can have the name of a module; a path that goes on leads through the module.
    if rest.is_empty() || modules.is_empty() {
        modules.extend(imports.get(name.as_str()).into_iter().flatten());
    }
    // Any submodule of a glob import can contain an unknown name.
    if modules.is_empty() {
        modules.extend(imports.get(GLOB).into_iter().flatten());
    }
    modules.into_iter().map(Used::Module).collect()
}
