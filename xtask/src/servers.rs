//! `servers`: lists, calls and stops published servers, beside two other hosts.

mod daily_tasks;
mod host;
mod leftovers;
mod list;
mod report;

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Program, relative_path, repository_root};
use crate::test::{install_once, install_uv};
use crate::{TaskResult, figures, output};
use host::{FIRST_TIME_LIMIT, HostProgram, Listing, TIME_LIMIT};
use leftovers::RunMarker;
use list::PublishedServer;
use report::ServerRow;

/// The other hosts, at exact versions.
const PEERS_PACKAGE_JSON: &str = include_str!("../published_servers/package.json");

/// The page with the table.
const PAGE: &str = "docs/reports/servers.md";

/// Number of measured listings of each host; the table has the median.
const ROUNDS: usize = 3;

/// Runs all servers of the list, or those with the given names, and prints the table; `--tasks` runs
/// the everyday tasks instead; `--write` replaces the table of the page.
///
/// # Errors
///
/// A prerequisite cannot be installed, a name is not in the list, or a process is left behind.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let is_written = arguments.contains(&"--write");
    let has_tasks = arguments.contains(&"--tasks");
    let names: Vec<&str> =
        arguments.iter().copied().filter(|argument| !argument.starts_with("--")).collect();
    let servers = list::read(&names)?;
    let tools = Tools::install()?;
    if has_tasks {
        return daily_tasks::run(&tools, is_written);
    }
    let mut rows = Vec::new();
    for server in &servers {
        let row = run_server(&tools, server)?;
        output::print_line(row.summary());
        rows.push(row);
    }
    let text = report::markdown(&rows);
    output::print_line(&text);
    if is_written {
        figures::write_to_page(PAGE, "servers", &text)?;
    }
    let left: usize = rows.iter().map(|row| row.innkeeper_leftovers).sum();
    if left == 0 { Ok(()) } else { Err(format!("{left} processes were left behind")) }
}

/// The installed programs.
#[derive(Debug)]
struct Tools {
    home: PathBuf,
    hosts: Vec<HostProgram>,
    /// `PATH` with `uvx`.
    path: String,
}

impl Tools {
    /// Installs the other hosts and `uvx`, and builds the command line.
    #[expect(clippy::disallowed_methods, reason = "servers find their runner in PATH")]
    fn install() -> TaskResult<Self> {
        let home = repository_root().join("target/published-servers");
        create_dir(&home)?;
        let peers = home.join("peers");
        install_once(&peers, PEERS_PACKAGE_JSON, install_peers)?;
        let uv = install_uv()?;
        Program::cargo("build --locked --release --package innkeeper-cli").run()?;
        let path = std::env::var("PATH").map_err(|error| format!("`PATH`: {error}"))?;
        let path = format!("{}:{path}", uv.display());
        let bin = peers.join("node_modules/.bin");
        let hosts = vec![
            HostProgram::innkeeper(&repository_root().join("target/release/innkeeper")),
            HostProgram::mcporter(&bin.join("mcporter")),
            HostProgram::inspector(&bin.join("mcp-inspector")),
        ];
        Ok(Self { home, hosts, path })
    }
}

fn install_peers(dir: &Path) -> TaskResult {
    let file = dir.join("package.json");
    fs::write(&file, PEERS_PACKAGE_JSON)
        .map_err(|error| format!("`{}`: {error}", relative_path(&file)))?;
    let line = "install --ignore-scripts --no-audit --no-fund --loglevel=error";
    Program::new("npm").args(line).current_dir(dir).run_with_log(&dir.join("install.log"))
}

/// Lists a server with each host, and calls it once with this host.
fn run_server(tools: &Tools, server: &PublishedServer) -> TaskResult<ServerRow> {
    let dir = tools.home.join("work").join(&server.name);
    if dir.exists() {
        fs::remove_dir_all(&dir).map_err(|error| format!("`{}`: {error}", relative_path(&dir)))?;
    }
    create_dir(&dir)?;
    let marker = RunMarker::new(&server.name);
    let config = dir.join("mcp.json");
    let text = server.config(&dir, &tools.home.join("cache"), &marker).to_string();
    fs::write(&config, text).map_err(|error| format!("`{}`: {error}", relative_path(&config)))?;
    let run = |host: &HostProgram, arguments: &[String], time_limit| {
        host.run(&config, arguments, &dir, &tools.path, time_limit)
    };
    // The first run fills the caches of the package runners and is not measured.
    let innkeeper = &tools.hosts[0];
    run(innkeeper, &innkeeper.list_arguments(&server.name), FIRST_TIME_LIMIT)?;
    marker.kill_leftovers();
    let mut listings: Vec<Listing> = tools.hosts.iter().map(|_| Listing::default()).collect();
    for _ in 0..ROUNDS {
        for (host, listing) in tools.hosts.iter().zip(&mut listings) {
            let measured = run(host, &host.list_arguments(&server.name), TIME_LIMIT)?;
            listing.add(host, &server.name, &measured);
            listing.leftovers = listing.leftovers.max(marker.kill_leftovers());
        }
    }
    let call = match server.call(&dir) {
        Some(call) if listings[0].tools.is_some() => {
            let measured =
                run(innkeeper, &innkeeper.call_arguments(&server.name, &call), TIME_LIMIT)?;
            listings[0].leftovers += marker.kill_leftovers();
            let outcome = host::describe_call(&measured);
            Some(outcome.replace(&dir.display().to_string(), "`{dir}`"))
        }
        _ => None,
    };
    Ok(ServerRow::new(server, listings, call))
}

fn create_dir(dir: &Path) -> TaskResult {
    fs::create_dir_all(dir).map_err(|error| format!("`{}`: {error}", relative_path(dir)))
}
