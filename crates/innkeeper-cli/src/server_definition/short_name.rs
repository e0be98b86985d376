//! Short names of servers from their package, program or URL.

use std::path::Path;

use url::{Host, Url};

/// Name of a server whose package, program or host has no usable name.
const FALLBACK_NAME: &str = "server";

/// Words around the name of a server in the name of its package; a longer word precedes its parts.
const PACKAGE_PREFIXES: [&str; 3] = ["mcp-server-", "server-", "mcp-"];
const PACKAGE_SUFFIXES: [&str; 4] = ["-mcp-server", "-server-mcp", "-mcp", "-server"];

/// Package names that say only what the package is; the scope then has the name.
const GENERIC_PACKAGES: [&str; 4] = ["mcp", "server", "mcp-server", "server-mcp"];

/// File names of programs that say nothing about the server.
const GENERIC_FILES: [&str; 6] = ["index", "main", "server", "cli", "run", "__main__"];

/// Directories between a project and its program.
const BUILD_DIRECTORIES: [&str; 8] =
    ["dist", "build", "src", "lib", "bin", "out", "target", "release"];

/// Programs that run the file in their first argument.
const INTERPRETERS: [&str; 7] = ["node", "python", "python3", "bun", "deno", "ruby", "tsx"];

/// Labels of a host name in front of the name of the service.
const SHORT_PUBLIC_SUFFIXES: [&str; 6] = ["co", "com", "org", "net", "ac", "gov"];

/// Returns the short name of a package: `@scope/server-files@1.2.3` becomes `files`.
pub(crate) fn name_from_package(package: &str) -> String {
    let package = package.split(['#', '?', '[']).next().unwrap_or_default();
    let package = package.trim_end_matches('/');
    let (scope, name) = match package.rsplit_once('/') {
        Some((scope, name)) => (scope.rsplit('/').next().unwrap_or_default(), name),
        None => ("", package),
    };
    let name = name.trim_end_matches(".git").replace('_', "-");
    let name = name.split_once('@').map_or(&*name, |(name, _)| name);
    if GENERIC_PACKAGES.contains(&name) {
        return to_server_name(scope.trim_start_matches('@'));
    }
    let without_prefix =
        PACKAGE_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let short = PACKAGE_SUFFIXES.iter().find_map(|suffix| without_prefix.strip_suffix(suffix));
    to_server_name(short.unwrap_or(without_prefix))
}

/// Returns the short name of a command without a package: the program, or the module or file that
/// an interpreter runs.
pub(crate) fn name_from_command(command: &[String]) -> String {
    let Some((program, args)) = command.split_first() else { return FALLBACK_NAME.to_owned() };
    let program_name = file_stem(program);
    if !INTERPRETERS.contains(&&*program_name) {
        return name_from_file(program);
    }
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-m" => return args.next().map_or(program_name, |module| name_from_package(module)),
            // A command of the interpreter, such as `deno run`.
            "run" => {}
            option if option.starts_with('-') => {}
            file => return name_from_file(file),
        }
    }
    to_server_name(&program_name)
}

/// Returns the name of a program file, or of its project if the file has a generic name.
fn name_from_file(file: &str) -> String {
    let stem = file_stem(file);
    if !GENERIC_FILES.contains(&&*stem) {
        return name_from_package(&stem);
    }
    let directories = Path::new(file).ancestors().skip(1).filter_map(Path::file_name);
    let mut names = directories.map(|name| name.to_string_lossy());
    let project = names.find(|name| !BUILD_DIRECTORIES.contains(&&**name));
    project.map_or_else(|| to_server_name(&stem), |project| name_from_package(&project))
}

fn file_stem(file: &str) -> String {
    let stem = Path::new(file).file_stem();
    stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// Returns the short name of a host: `https://mcp.example.com/mcp` becomes `example`.
pub(crate) fn name_from_url(url: &str) -> String {
    let Ok(url) = Url::parse(url) else { return FALLBACK_NAME.to_owned() };
    match url.host() {
        Some(Host::Domain(domain)) => to_server_name(domain_name(domain)),
        Some(Host::Ipv4(address)) if address.is_loopback() => "localhost".to_owned(),
        Some(Host::Ipv6(address)) if address.is_loopback() => "localhost".to_owned(),
        Some(Host::Ipv4(address)) => to_server_name(&address.to_string()),
        Some(Host::Ipv6(address)) => to_server_name(&address.to_string()),
        // The path of a socket.
        None => name_from_package(&file_stem(url.path())),
    }
}

/// Returns the label of a domain name that names the service: the last label before the public
/// suffix.
fn domain_name(domain: &str) -> &str {
    let labels: Vec<&str> = domain.split('.').filter(|label| !label.is_empty()).collect();
    match &labels[..] {
        [.., name, second, _] if SHORT_PUBLIC_SUFFIXES.contains(second) => name,
        [.., name, _] => name,
        [only] => only,
        [] => "",
    }
}

/// Replaces each character that a server name cannot have; a dot would look like the separator of a
/// tool.
fn to_server_name(text: &str) -> String {
    let name: String = text
        .chars()
        .take(64)
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .collect();
    let name = name.trim_matches('-');
    if name.is_empty() { FALLBACK_NAME.to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_gives_its_name_without_scope_version_and_the_word_server() {
        for (package, name) in [
            ("@modelcontextprotocol/server-everything", "everything"),
            ("@modelcontextprotocol/server-filesystem@2026.8.31", "filesystem"),
            ("mcp-server-time", "time"),
            ("mcp_server_git", "git"),
            ("@brave/brave-search-mcp-server@2.1.4", "brave-search"),
            ("@playwright/mcp@latest", "playwright"),
            ("mcp[cli]", "server"),
            ("git+https://git.example/ada/notes-mcp.git", "notes"),
            ("github:ada/notes", "notes"),
            ("files", "files"),
            ("", "server"),
        ] {
            assert_eq!(name_from_package(package), name, "{package}");
        }
    }

    #[test]
    fn a_command_gives_the_program_or_what_an_interpreter_runs() {
        for (command, name) in [
            ("./bin/notes-server --port 1", "notes"),
            ("/opt/weather/dist/index.js", "weather"),
            ("node --no-warnings /srv/weather/dist/index.js /tmp", "weather"),
            ("python3 -u -m mcp_server_time", "time"),
            ("python3 server.py", "server"),
            ("deno run -A notes.ts", "notes"),
            ("docker run -i --rm mcp/time", "docker"),
            ("node", "node"),
        ] {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(name_from_command(&words), name, "{command}");
        }
    }

    #[test]
    fn a_url_gives_the_name_of_its_host() {
        for (url, name) in [
            ("https://mcp.example.com/mcp", "example"),
            ("https://example.com", "example"),
            ("https://docs.mcp.example.co.uk/mcp", "example"),
            ("http://localhost:3000/mcp", "localhost"),
            ("http://127.0.0.1:8080/mcp", "localhost"),
            ("http://[::1]:8080/mcp", "localhost"),
            ("http://192.0.2.7/mcp", "192-0-2-7"),
            ("wss://prices.example.org/", "example"),
            ("unix:///run/notes.sock", "notes"),
            ("${SERVER}/mcp", "server"),
        ] {
            assert_eq!(name_from_url(url), name, "{url}");
        }
    }
}
