//! The package that a package runner starts, with its version.

use std::path::Path;

use innkeeper_config::TransportConfig;
use serde::{Deserialize, Serialize};

/// A package that is downloaded at the start of its server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Name, as passed to the package runner.
    pub name: String,
    /// Exact version; `None` if the package runner chooses a version.
    pub version: Option<String>,
}

impl Package {
    /// Returns whether the name is a location, such as a repository, which has no versions.
    pub fn is_location(&self) -> bool {
        is_location(&self.name)
    }
}

struct PackageRunnerOptions {
    names: &'static [&'static str],
    /// Number of components in an exact version.
    version_parts: usize,
    /// Options whose value is the package, in place of the first positional argument.
    package_options: &'static [&'static str],
    /// Options whose value is an additional package, or several separated by commas.
    extra_package_options: &'static [&'static str],
    /// Options whose value is a shell command.
    shell_options: &'static [&'static str],
    value_options: &'static [&'static str],
}

/// Runners with packages as `name@version`.
const AT_VERSION_RUNNERS: PackageRunnerOptions = PackageRunnerOptions {
    names: &["npx", "bunx", "pnpx", "dnx", "npm"],
    version_parts: 3,
    package_options: &["--package", "-p"],
    extra_package_options: &[],
    shell_options: &["--call", "-c"],
    value_options: &["--workspace", "-w", "--registry", "--cache"],
};

/// Runners with packages as `name==version`.
const EQUALS_VERSION_RUNNERS: PackageRunnerOptions = PackageRunnerOptions {
    names: &["uvx", "pipx"],
    version_parts: 1,
    package_options: &["--from", "--spec"],
    extra_package_options: &["--with"],
    shell_options: &[],
    value_options: &["--python", "-p", "--index-url", "--index", "--directory"],
};

/// The packages that a package runner downloads and runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunnerPackages {
    /// All named packages, the server's package first.
    pub packages: Vec<Package>,
    /// Whether the runner passes a command to a shell (`npx -c`), which may name any package.
    pub uses_shell: bool,
}

/// Returns the packages of a server, as written in the configuration.
pub(crate) fn packages_for_transport(transport: &TransportConfig) -> RunnerPackages {
    let TransportConfig::Stdio { command, args, .. } = transport else {
        return RunnerPackages::default();
    };
    let args: Vec<_> = args.iter().map(|arg| arg.as_written().to_owned()).collect();
    packages_for_command(command.as_written(), &args)
}

/// Returns the packages of a command line; empty if it does not start with a package runner.
pub(super) fn packages_for_command(command: &str, args: &[String]) -> RunnerPackages {
    let name = Path::new(command).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(runners) = [AT_VERSION_RUNNERS, EQUALS_VERSION_RUNNERS]
        .into_iter()
        .find(|runners| runners.names.contains(&name))
    else {
        return RunnerPackages::default();
    };
    let subcommands: &[&str] = match name {
        "npm" => &["exec", "x"],
        "pipx" => &["run"],
        _ => return runners.parse_args(args),
    };
    let subcommand = args.iter().position(|arg| !arg.starts_with('-'));
    let Some(subcommand) = subcommand.filter(|at| subcommands.contains(&&*args[*at])) else {
        return RunnerPackages::default();
    };
    runners.parse_args(&[&args[..subcommand], &args[subcommand + 1..]].concat())
}

impl PackageRunnerOptions {
    fn parse_args(&self, args: &[String]) -> RunnerPackages {
        let mut named = vec![];
        let mut more = vec![];
        let mut first = None;
        let mut uses_shell = false;
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            let (option, value) = match arg.split_once('=').filter(|_| arg.starts_with("--")) {
                Some((option, value)) => (option, Some(value)),
                None => (arg, None),
            };
            let lists = [
                self.package_options,
                self.extra_package_options,
                self.shell_options,
                self.value_options,
            ];
            let Some(kind) = lists.into_iter().position(|list| list.contains(&option)) else {
                if arg.starts_with('-') {
                    continue;
                }
                first = Some(arg);
                // The remaining arguments belong to the server.
                break;
            };
            let value = value.or_else(|| args.next()).unwrap_or_default();
            match kind {
                0 => named.push(value),
                1 => more.extend(value.split(',')),
                2 => uses_shell = true,
                _ => {}
            }
        }
        let own = if named.is_empty() { first.into_iter().collect() } else { named };
        let all = own.into_iter().chain(more).filter(|spec| !spec.is_empty());
        RunnerPackages { packages: all.map(|spec| self.parse_package(spec)).collect(), uses_shell }
    }

    fn parse_package(&self, spec: &str) -> Package {
        let (name, version) = match spec.split_once("==") {
            _ if is_location(spec) => (spec, None),
            Some((name, version)) => (name, Some(version)),
            None => match spec.rfind('@').filter(|at| *at > 0) {
                Some(at) => (&spec[..at], Some(&spec[at + 1..])),
                None => (spec, None),
            },
        };
        let version =
            version.filter(|version| is_exact(version, self.version_parts)).map(str::to_owned);
        Package { name: name.to_owned(), version }
    }
}

/// Returns whether a package spec is a URL, a repository or a path.
fn is_location(spec: &str) -> bool {
    let hosts = ["git@", "git:", "github:", "gitlab:", "bitbucket:", "gist:", "file:"];
    spec.contains("://")
        || hosts.iter().any(|start| spec.starts_with(start))
        || spec.starts_with(['.', '/', '~'])
}

/// Returns whether a version is exact: at least `parts` numbers separated by dots, then optionally
/// a pre-release or build suffix.
fn is_exact(version: &str, parts: usize) -> bool {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = core.split('.').take(parts);
    version.chars().all(|c| c.is_ascii_alphanumeric() || "._-+!".contains(c))
        && core.split('.').count() >= parts
        && numbers.all(|part| part.starts_with(|c: char| c.is_ascii_digit()))
}
