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

impl Package {
    /// Whether it is named by a place, such as a repository, of which there are no versions.
    pub fn is_address(&self) -> bool {
        is_address(&self.name)
    }
}

/// What the options of a kind of package runner mean.
struct Runners {
    names: &'static [&'static str],
    /// How many numbers an exact version has.
    parts: usize,
    /// Their value is the package, in place of the first word that is no option.
    package: &'static [&'static str],
    /// Their value is one more package, or several with commas between.
    more: &'static [&'static str],
    /// Their value is a text for a shell.
    shell: &'static [&'static str],
    /// Their value is something else.
    other: &'static [&'static str],
}

/// Packages named `name@version`.
const AT: Runners = Runners {
    names: &["npx", "bunx", "pnpx", "dnx", "npm"],
    parts: 3,
    package: &["--package", "-p"],
    more: &[],
    shell: &["--call", "-c"],
    other: &["--workspace", "-w", "--registry", "--cache"],
};

/// Packages named `name==version`.
const EQUALS: Runners = Runners {
    names: &["uvx", "pipx"],
    parts: 1,
    package: &["--from", "--spec"],
    more: &["--with"],
    shell: &[],
    other: &["--python", "-p", "--index-url", "--index", "--directory"],
};

/// What a package runner is told to fetch and run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fetched {
    /// Every package that is named, the server's first.
    pub(crate) packages: Vec<Package>,
    /// Whether a shell is handed a text, in which anything may be named.
    pub(crate) by_shell: bool,
}

/// What is fetched for a server, in the words of the configuration.
pub(crate) fn of_transport(transport: &TransportConfig) -> Fetched {
    let TransportConfig::Stdio { command, args, .. } = transport else { return Fetched::default() };
    let args: Vec<_> = args.iter().map(|arg| arg.as_written().to_owned()).collect();
    of(command.as_written(), &args)
}

/// What a command line has a package runner fetch; nothing where none stands in front.
pub(super) fn of(command: &str, args: &[String]) -> Fetched {
    let name = Path::new(command).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(runners) = [AT, EQUALS].into_iter().find(|runners| runners.names.contains(&name))
    else {
        return Fetched::default();
    };
    let verbs: &[&str] = match name {
        "npm" => &["exec", "x"],
        "pipx" => &["run"],
        _ => return runners.read(args),
    };
    let verb = args.iter().position(|arg| !arg.starts_with('-'));
    let Some(verb) = verb.filter(|at| verbs.contains(&&*args[*at])) else {
        return Fetched::default();
    };
    runners.read(&[&args[..verb], &args[verb + 1..]].concat())
}

impl Runners {
    fn read(&self, args: &[String]) -> Fetched {
        let (mut named, mut more, mut first, mut by_shell) = (vec![], vec![], None, false);
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            let (option, value) = match arg.split_once('=').filter(|_| arg.starts_with("--")) {
                Some((option, value)) => (option, Some(value)),
                None => (arg, None),
            };
            let lists = [self.package, self.more, self.shell, self.other];
            let Some(kind) = lists.into_iter().position(|list| list.contains(&option)) else {
                if arg.starts_with('-') {
                    continue;
                }
                first = Some(arg);
                // What follows is the server's.
                break;
            };
            let value = value.or_else(|| args.next()).unwrap_or_default();
            match kind {
                0 => named.push(value),
                1 => more.extend(value.split(',')),
                2 => by_shell = true,
                _ => {}
            }
        }
        let own = if named.is_empty() { first.into_iter().collect() } else { named };
        let all = own.into_iter().chain(more).filter(|spec| !spec.is_empty());
        Fetched { packages: all.map(|spec| self.package(spec)).collect(), by_shell }
    }

    fn package(&self, spec: &str) -> Package {
        let (name, version) = match spec.split_once("==") {
            _ if is_address(spec) => (spec, None),
            Some((name, version)) => (name, Some(version)),
            None => match spec.rfind('@').filter(|at| *at > 0) {
                Some(at) => (&spec[..at], Some(&spec[at + 1..])),
                None => (spec, None),
            },
        };
        let version = version.filter(|version| is_exact(version, self.parts)).map(str::to_owned);
        Package { name: name.to_owned(), version }
    }
}

/// Whether a package is named by where it is: an address, a repository, a path.
fn is_address(spec: &str) -> bool {
    let hosts = ["git@", "git:", "github:", "gitlab:", "bitbucket:", "gist:", "file:"];
    spec.contains("://")
        || hosts.iter().any(|start| spec.starts_with(start))
        || spec.starts_with(['.', '/', '~'])
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
