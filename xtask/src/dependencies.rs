//! `dependencies`: checks the packages of other authors: source, licence, duplicates, advisories.

mod advisories;
mod duplicates;
mod licences;
mod policy;
mod resolved;
mod sources;

use std::fs;

use crate::program::{Program, repository_root};
use crate::{TaskResult, output};

pub(crate) use advisories::{check as check_advisories, problem as advisories_problem};
use policy::Policy;
use resolved::PackageGraph;
use sources::LockFile;

/// The directory of each workspace with a lock file; empty for the root.
const WORKSPACES: [&str; 3] = ["", "bench/", "fuzz/"];

/// The packages that users install or depend on. Their trees, without the dependencies of tests,
/// are what the project ships.
const SHIPPED_PACKAGES: [&str; 3] = ["innkeeper", "innkeeper-cli", "innkeeper-mcp-client"];

/// Checks the packages, and the advisories if this machine has them.
///
/// # Errors
///
/// A package violates a rule or has an advisory, or cargo fails.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    if let Some(argument) = arguments.first() {
        return Err(format!("`dependencies` takes no `{argument}`"));
    }
    check_packages()?;
    match advisories::problem() {
        Some(reason) => output::print_line(format_args!("SKIPPED: {reason}")),
        None => advisories::check()?,
    }
    Ok(())
}

/// Checks the sources of all packages, and the licences and versions of the shipped packages.
///
/// # Errors
///
/// A package violates a rule, a file is invalid, or cargo fails.
pub(crate) fn check_packages() -> TaskResult {
    let locks = WORKSPACES
        .iter()
        .map(|workspace| {
            let path = format!("{workspace}Cargo.lock");
            let text = fs::read_to_string(repository_root().join(&path));
            LockFile::parse(&path, &text.map_err(|error| format!("`{path}`: {error}"))?)
        })
        .collect::<TaskResult<Vec<_>>>()?;
    let registry = locks.iter().find_map(LockFile::registry).ok_or("no package has a registry")?;
    let mut problems: Vec<String> = locks.iter().flat_map(|lock| lock.check(registry)).collect();
    for workspace in WORKSPACES {
        // Fails if the lock file does not match the manifests.
        let metadata = "metadata --locked --format-version 1 --manifest-path";
        let metadata = Program::cargo(metadata).arg(format!("{workspace}Cargo.toml")).output();
        match metadata {
            Ok(metadata) if workspace.is_empty() => {
                let graph = PackageGraph::parse(&metadata, &SHIPPED_PACKAGES)?;
                let policy = Policy::load()?;
                problems.extend(licences::check(&graph, &policy));
                problems.extend(duplicates::check(&graph, &policy));
            }
            Ok(_) => {}
            Err(error) => problems.push(error),
        }
    }
    for problem in &problems {
        output::print_line(problem);
    }
    if problems.is_empty() {
        let packages: usize = locks.iter().map(|lock| lock.packages.len()).sum();
        output::print_line(format_args!(
            "{packages} packages of {} lock files checked",
            locks.len()
        ));
        return Ok(());
    }
    Err(format!("{} problems of dependencies", problems.len()))
}
