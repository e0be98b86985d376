//! Agents of other packages over a host.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{REQUIREMENTS, link_package, pytest_under};
use crate::program::{Program, relative_path, repository_root};
use crate::test::{BUILD_ARGS, install_once, install_venv};
use crate::{TaskResult, output};

/// The packages of our own tests that an environment of a framework has: the framework may not take the
/// versions of the others.
const COMMON_PACKAGES: &[&str] = &["pytest", "coverage"];

/// Tests agent frameworks, each in an environment of its own: no two of them need agree about versions.
pub(super) fn run(names: &[&str]) -> TaskResult {
    Program::cargo(BUILD_ARGS).run()?;
    let packages = link_package()?;
    let lists = package_lists()?;
    if let Some(unknown) = names.iter().find(|name| !lists.contains_key(**name)) {
        let known: Vec<&str> = lists.keys().map(String::as_str).collect();
        return Err(format!("no framework `{unknown}`; known: {}", known.join(", ")));
    }
    let mut failed = Vec::new();
    for (name, list) in &lists {
        if !names.is_empty() && !names.contains(&name.as_str()) {
            continue;
        }
        output::print_line(format_args!("{name}"));
        let result = tests(name, list, "", &packages).and_then(|tests| {
            tests.arg("python/tests/frameworks/test_killed_interpreter.py").run()
        });
        if let Err(problem) = result {
            output::print_error(&problem);
            failed.push(name.as_str());
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        names => Err(format!("failed: {}", names.join(", "))),
    }
}

/// The tests of the frameworks for which the package has modules, in an interpreter with these arguments.
pub(super) fn integration_tests(launcher: &str, packages: &Path) -> TaskResult<Vec<Program>> {
    let lists = package_lists()?;
    let integrations = repository_root().join("python/innkeeper/integrations");
    lists
        .iter()
        .filter(|(name, _)| integrations.join(format!("{}.py", module_name(name))).exists())
        .map(|(name, list)| tests(name, list, launcher, packages))
        .collect()
}

/// The tests of one framework, in its environment.
fn tests(name: &str, list: &str, launcher: &str, packages: &Path) -> TaskResult<Program> {
    let environment = repository_root().join("target/python/frameworks").join(name);
    let common: Vec<&str> = REQUIREMENTS
        .lines()
        .filter(|line| COMMON_PACKAGES.iter().any(|package| line.starts_with(package)))
        .collect();
    let requirements = format!("{}\n{list}", common.join("\n"));
    install_once(&environment, &requirements, |dir| install_venv(dir, &requirements))?;
    let file = format!("python/tests/frameworks/test_{}.py", module_name(name));
    Ok(pytest_under(&environment.join("bin/python"), launcher, Some(packages))
        .env("INNKEEPER_FRAMEWORK_TESTS", &file)
        .arg(&file))
}

fn module_name(framework: &str) -> String {
    framework.replace('-', "_")
}

/// The names of the frameworks, each with its list of packages.
fn package_lists() -> TaskResult<BTreeMap<String, String>> {
    let lists = repository_root().join("xtask/python/frameworks");
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(&lists));
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&lists).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        found.insert(name, fs::read_to_string(&path).map_err(problem)?);
    }
    Ok(found)
}
