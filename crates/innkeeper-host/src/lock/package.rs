//! The package that a package runner is told to run, and whether its version is said.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::config::TransportConfig;

/// A package that is fetched when its server is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Its name as the runner is told it.
    pub name: String,
    /// The one version the runner may fetch; `None` where it takes whatever is newest or fits.
    pub version: Option<String>,
}

/// Runners of packages named `name@version`, and the options of theirs that take a value. A value
/// of the first two is the package.
const AT: (&[&str], &[&str]) = (
    &["npx", "bunx", "pnpx", "dnx"],
    &["--package", "-p", "--call", "-c", "--workspace", "-w", "--registry", "--cache"],
);

/// Runners of packages named `name==version`, as above.
const EQUALS: (&[&str], &[&str]) = (
    &["uvx", "pipx"],
    &["--from", "--spec", "--python", "-p", "--with", "--index-url", "--index", "--directory"],
);

/// The package that a server comes from, in the words of the configuration.
pub(crate) fn of_transport(transport: &TransportConfig) -> Option<Package> {
    let TransportConfig::Stdio { command, args, .. } = transport else { return None };
    let args: Vec<_> = args.iter().map(|arg| arg.as_written().to_owned()).collect();
    of(command.as_written(), &args)
}

/// The package of a command line; `None` where no package runner stands in front.
pub(super) fn of(command: &str, args: &[String]) -> Option<Package> {
    let runner = Path::new(command).file_stem()?.to_str()?;
    let (_, valued) = [AT, EQUALS].into_iter().find(|(runners, _)| runners.contains(&runner))?;
    let spec = spec(args, valued)?;
    let (name, version) = match spec.split_once("==") {
        Some((name, version)) => (name, Some(version)),
        None => match spec.rfind('@').filter(|at| *at > 0) {
            Some(at) => (&spec[..at], Some(&spec[at + 1..])),
            None => (spec, None),
        },
    };
    let parts = if AT.0.contains(&runner) { 3 } else { 1 };
    let version = version.filter(|version| is_exact(version, parts)).map(str::to_owned);
    Some(Package { name: name.to_owned(), version })
}

/// The package among the arguments: where an option names it, else the first that is none.
fn spec<'a>(args: &'a [String], valued: &[&str]) -> Option<&'a str> {
    let mut args = args.iter().map(String::as_str);
    let mut first = None;
    while let Some(arg) = args.next() {
        if let Some((option, value)) = arg.split_once('=').filter(|_| arg.starts_with("--")) {
            if valued[..2].contains(&option) {
                return Some(value);
            }
        } else if valued.contains(&arg) {
            let value = args.next();
            if valued[..2].contains(&arg) {
                return value;
            }
        } else if !arg.starts_with('-') && arg != "run" {
            first = Some(arg);
            break;
        }
    }
    first
}

/// Whether a version allows one version only: at least so many numbers with dots between, and then
/// what marks a release before or a build.
fn is_exact(version: &str, parts: usize) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-+!".contains(c);
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = core.split('.').take(parts);
    version.chars().all(allowed)
        && core.split('.').count() >= parts
        && numbers.all(|part| part.starts_with(|c: char| c.is_ascii_digit()))
}
