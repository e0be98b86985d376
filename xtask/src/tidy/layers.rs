//! Checks the dependencies between the modules of a crate against the layers in ARCHITECTURE.md.

mod attribute_kind;
mod crate_modules;
mod drawing;
mod module_file;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use syn::Attribute;

use self::attribute_kind::{AttributeKind, attribute_kind};
use self::crate_modules::{CrateModules, ModuleUse, Used};
use self::drawing::Drawing;
use super::Violation;
use crate::repository::Repository;

const MAP_PATH: &str = "ARCHITECTURE.md";

/// The crates that must have a drawing; every other drawing is optional.
const DRAWN_CRATES: &[&str] = &[
    "innkeeper-agent",
    "innkeeper-cli",
    "innkeeper-config",
    "innkeeper-gateway",
    "innkeeper-host",
    "innkeeper-process",
    "innkeeper-protocol",
    "innkeeper-toolcall",
];

/// Returns whether a crate is there: a library or a program.
fn has_modules(repository: &Repository, name: &str) -> bool {
    ["lib.rs", "main.rs"]
        .iter()
        .any(|root| repository.source(&format!("crates/{name}/src/{root}")).is_some())
}

/// Checks that each module uses only modules of lower layers.
pub(super) fn check_module_layers(repository: &Repository) -> Vec<Violation> {
    let page = repository.text(MAP_PATH).unwrap_or_default();
    let (drawings, mut violations) = Drawing::parse_page(page);
    for name in DRAWN_CRATES {
        if has_modules(repository, name) && !drawings.iter().any(|drawing| drawing.target == *name)
        {
            let message = format!("does not draw the layers of `{name}`");
            violations.push(Violation::new(MAP_PATH, 0, message));
        }
    }
    let mut crates: BTreeMap<&str, CrateModules> = BTreeMap::new();
    for drawing in &drawings {
        let name = drawing.crate_name();
        let source_dir = format!("crates/{name}/src");
        if !has_modules(repository, name) {
            let message = format!("draws the layers of `{name}`, which is no crate");
            violations.push(Violation::new(MAP_PATH, drawing.line, message));
            continue;
        }
        let modules = crates.entry(name).or_insert_with(|| {
            let (modules, problems) = CrateModules::read(repository, &source_dir);
            violations.extend(problems);
            modules
        });
        violations.extend(check_drawing(drawing, modules));
    }
    violations
}

/// Returns whether the product does not contain an item with these attributes.
pub(crate) fn is_excluded(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute_kind(attribute) == AttributeKind::ExcludesNode)
}

/// Returns the pairs of sibling modules of a crate, user and used, that are parts of a cycle, as text.
pub(super) fn cyclic_uses(repository: &Repository, name: &str) -> Vec<String> {
    // `check_module_layers` or the compiler reports the problems of the files.
    let (modules, _) = CrateModules::read(repository, &format!("crates/{name}/src"));
    let pairs = modules.parents().into_iter().flat_map(|parent| {
        let uses = modules.uses_below(parent);
        let used_by = used_by(&uses);
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            used_by.keys().map(|user| (*user, reachable(user, &used_by))).collect();
        let pairs = used_by
            .iter()
            .flat_map(|(user, used)| used.iter().map(move |used| (user, used)))
            .filter(|(user, used)| {
                reached.get(*used).is_some_and(|modules| modules.contains(*user))
            });
        let above = parent.join("::");
        pairs.map(|(user, used)| format!("{above}: {user} uses {used}")).collect::<Vec<_>>()
    });
    pairs.collect()
}

fn check_drawing(drawing: &Drawing, modules: &CrateModules) -> Vec<Violation> {
    let parent = drawing.parent();
    let target = &drawing.target;
    if !modules.contains(&parent) {
        let message = format!("draws the layers of `{target}`, which is no module");
        return vec![Violation::new(MAP_PATH, drawing.line, message)];
    }
    let submodules = modules.submodules(&parent);
    let drawn: BTreeSet<&str> = drawing.layers.keys().map(String::as_str).collect();
    let missing = submodules.difference(&drawn).map(|name| {
        let message = format!("the layers of `{target}` do not contain the module `{name}`");
        Violation::new(MAP_PATH, drawing.line, message)
    });
    let unknown = drawn.difference(&submodules).map(|name| {
        let message = format!("the layers contain `{name}`, which is no module of `{target}`");
        Violation::new(MAP_PATH, drawing.layers[*name], message)
    });
    let mut violations: Vec<Violation> = missing.chain(unknown).collect();
    let uses = modules.uses_below(&parent);
    violations.extend(uses.iter().filter_map(|found| check_use(drawing, found)));
    violations.extend(cycles(&uses).into_iter().map(|cycle| {
        let message = format!("modules of `{target}` use each other in a cycle: {cycle}");
        Violation::new(MAP_PATH, drawing.line, message)
    }));
    violations
}

fn check_use(drawing: &Drawing, found: &ModuleUse<'_>) -> Option<Violation> {
    let ModuleUse { path, line, user, used } = found;
    let Used::Module(used) = used else {
        let message = format!(
            "imports all of `{}`; import each name, so that the used module is known",
            drawing.target
        );
        return Some(Violation::new(path, *line, message));
    };
    // A module outside the drawing is a violation of its own.
    let user_layer = drawing.layers.get(*user)?;
    let used_layer = drawing.layers.get(*used)?;
    let relation = match used_layer.cmp(user_layer) {
        std::cmp::Ordering::Less => "above",
        std::cmp::Ordering::Equal => "beside",
        std::cmp::Ordering::Greater => return None,
    };
    let message =
        format!("uses `{used}`, which is {relation} `{user}` in the layers of {MAP_PATH}");
    Some(Violation::new(path, *line, message))
}

/// The modules of each cycle.
fn cycles(uses: &[ModuleUse<'_>]) -> BTreeSet<String> {
    let used_by = used_by(uses);
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        used_by.keys().map(|user| (*user, reachable(user, &used_by))).collect();
    let in_cycle = reached.iter().filter(|(user, modules)| modules.contains(*user));
    in_cycle
        .map(|(user, modules)| {
            let returns = modules.iter().filter(|module| {
                reached.get(*module).is_some_and(|modules| modules.contains(user))
            });
            let names: Vec<String> = returns.map(|module| format!("`{module}`")).collect();
            names.join(", ")
        })
        .collect()
}

/// The modules that each module uses directly.
fn used_by<'a>(uses: &[ModuleUse<'a>]) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut used_by: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for found in uses {
        if let Used::Module(used) = found.used {
            used_by.entry(found.user).or_default().insert(used);
        }
    }
    used_by
}

/// The modules that a module uses, directly or through other modules.
fn reachable<'a>(from: &str, used_by: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&str> = used_by.get(from).into_iter().flatten().copied().collect();
    while let Some(module) = waiting.pop() {
        if reached.insert(module) {
            waiting.extend(used_by.get(module).into_iter().flatten());
        }
    }
    reached
}
