//! `bench --gateway`: compares the gateway with a bare handler and with other proxies.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::report::{Samples, format_number};
use super::runs::{BenchRun, FigureColumn};
use super::{BenchArgs, interleave};
use crate::dist::OrderedProgram;
use crate::program::{Program, relative_path, repository_root};
use crate::test::{install_gateway_peers, install_python_clients};
use crate::{TaskResult, figures, output};

/// Default number of rounds.
pub(super) const DEFAULT_ROUNDS: usize = 7;

/// A number of clients with the size of their messages.
pub(super) struct GatewayCase {
    pub(super) name: &'static str,
    clients: usize,
    bytes: usize,
    servers: &'static [BenchServer],
}

/// A program that answers calls over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BenchServer {
    /// An HTTP handler that answers by itself.
    Echo,
    /// An HTTP handler before the pipe of the server: the limit.
    Pipe,
    /// A proxy of the official SDK with JSON responses and without sessions.
    Rmcp,
    /// The same proxy with sessions and event streams.
    RmcpSessions,
    /// A proxy of FastMCP.
    FastMcp,
    /// `mcp-proxy` of npm.
    McpProxy,
    /// `supergateway` of npm, with sessions: one process of the server for each.
    Supergateway,
    Innkeeper,
    /// Innkeeper, with progress, so that each response is an event stream.
    InnkeeperEvents,
    /// Innkeeper, with progress for clients that accept JSON only: the same messages of the server as
    /// with event streams.
    InnkeeperDropped,
}

impl BenchServer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Echo => "HTTP echo",
            Self::Pipe => "limit",
            Self::Rmcp => "rmcp proxy",
            Self::RmcpSessions => "rmcp (sessions)",
            Self::FastMcp => "FastMCP proxy",
            Self::McpProxy => "mcp-proxy",
            Self::Supergateway => "supergateway",
            Self::Innkeeper => "innkeeper",
            Self::InnkeeperEvents => "innkeeper (SSE)",
            Self::InnkeeperDropped => "innkeeper (progress dropped)",
        }
    }
}

const ALL_SERVERS: &[BenchServer] = &[
    BenchServer::Echo,
    BenchServer::Pipe,
    BenchServer::Rmcp,
    BenchServer::RmcpSessions,
    BenchServer::FastMcp,
    BenchServer::McpProxy,
    BenchServer::Supergateway,
    BenchServer::Innkeeper,
    BenchServer::InnkeeperEvents,
    BenchServer::InnkeeperDropped,
];

/// The servers for messages of 1 MB, which `supergateway` refuses.
const LARGE_MESSAGE_SERVERS: &[BenchServer] = &[
    BenchServer::Echo,
    BenchServer::Pipe,
    BenchServer::Rmcp,
    BenchServer::RmcpSessions,
    BenchServer::Innkeeper,
    BenchServer::InnkeeperEvents,
    BenchServer::InnkeeperDropped,
];

/// The ways in which Innkeeper answers.
pub(super) const OWN_SERVERS: &[BenchServer] =
    &[BenchServer::Innkeeper, BenchServer::InnkeeperEvents, BenchServer::InnkeeperDropped];

/// The figures of each case.
pub(super) const COLUMNS: &[FigureColumn] = &[
    FigureColumn { key: "per_second", heading: "thousand calls/s", divisor: 1e3 },
    FigureColumn { key: "p99_us", heading: "99th percentile ms", divisor: 1e3 },
    FigureColumn { key: "peak_rss_kb", heading: "peak memory MB", divisor: 1024.0 },
];

/// The number of calls after which the memory of the gateway is compared with that before them.
const MEMORY_CALLS: &str = "1000000";

/// The calls for the comparison of the memory.
const MEMORY_CASE: GatewayCase =
    GatewayCase { name: "100 B, 64 clients", clients: 64, bytes: 100, servers: ALL_SERVERS };

pub(super) const CASES: &[GatewayCase] = &[
    GatewayCase { name: "100 B, 1 client", clients: 1, bytes: 100, servers: ALL_SERVERS },
    GatewayCase { name: "100 B, 16 clients", clients: 16, bytes: 100, servers: ALL_SERVERS },
    GatewayCase { name: "100 B, 64 clients", clients: 64, bytes: 100, servers: ALL_SERVERS },
    GatewayCase { name: "100 B, 256 clients", clients: 256, bytes: 100, servers: ALL_SERVERS },
    GatewayCase { name: "10 kB, 16 clients", clients: 16, bytes: 10_000, servers: ALL_SERVERS },
    GatewayCase { name: "10 kB, 64 clients", clients: 64, bytes: 10_000, servers: ALL_SERVERS },
    GatewayCase {
        name: "1 MB, 16 clients",
        clients: 16,
        bytes: 1_000_000,
        servers: LARGE_MESSAGE_SERVERS,
    },
    GatewayCase {
        name: "1 MB, 64 clients",
        clients: 64,
        bytes: 1_000_000,
        servers: LARGE_MESSAGE_SERVERS,
    },
];

const BENCH_GATEWAY: &str =
    "--manifest-path bench/gateway/Cargo.toml --package innkeeper-bench-gateway";
const BENCH_SERVERS: &str =
    "--manifest-path bench/Cargo.toml --package innkeeper-bench --no-default-features --bins";

/// Builds the programs, runs the rounds and prints the table; returns the text of the page.
///
/// # Errors
///
/// A program does not build or run, or a response is not a result of the tool.
pub(super) fn run(args: &BenchArgs) -> TaskResult<String> {
    install_python_clients()?;
    install_gateway_peers()?;
    let programs = build(&repository_root(), &[BENCH_GATEWAY, BENCH_SERVERS])?;
    OrderedProgram::CommandLine.build()?;
    let mut samples = Samples::default();
    for round in 0..args.rounds() {
        if !args.json {
            output::print_line(format_args!("round {} of {}", round + 1, args.rounds()));
        }
        for case in CASES {
            for server in interleave(case.servers, round) {
                let entry = BenchRun { case: case.name, peer: server.name(), runtime: "" };
                let length = format!("{}s", args.seconds);
                samples.add(&entry, &measure(&programs, case, *server, &length)?);
            }
        }
    }
    let memory = measure(&programs, &MEMORY_CASE, BenchServer::Innkeeper, MEMORY_CALLS)?;
    let memory = memory_line(&memory);
    let rows = table_rows(&samples);
    if args.json {
        output::print_line(samples.json());
    } else {
        output::print_line(output::format_table(&rows));
        output::print_line(&memory);
    }
    Ok(format!(
        "{}, {} rounds of {} s each, medians.\n\n{}\n\n{memory}",
        figures::describe_machine(),
        args.rounds(),
        args.seconds,
        figures::markdown_table(&rows)
    ))
}

/// Returns the sentence about the memory before and after many calls.
fn memory_line(figures: &Value) -> String {
    let megabytes = |key: &str| figures[key].as_f64().map(|kilobytes| kilobytes / 1024.0);
    format!(
        "Memory of innkeeper with {}: {} MB before and {} MB after {MEMORY_CALLS} calls.",
        MEMORY_CASE.name,
        format_number(megabytes("start_rss_kb")),
        format_number(megabytes("end_rss_kb")),
    )
}

/// Builds all programs of a checkout, to compare it with another one.
pub(super) fn build_all(checkout: &Path) -> TaskResult<PathBuf> {
    build(checkout, &[BENCH_GATEWAY, BENCH_SERVERS, "--package innkeeper-cli"])
}

/// Builds some packages of a checkout and writes the configuration of the gateway; returns their
/// directory.
fn build(checkout: &Path, packages: &[&str]) -> TaskResult<PathBuf> {
    let target = checkout.join("target/bench");
    for package in packages {
        Program::cargo("build --profile dist")
            .args(package)
            .arg("--target-dir")
            .path_arg(&target)
            .current_dir(checkout)
            .run()?;
    }
    let directory = target.join("dist");
    let echo = directory.join("echo");
    let config = json!({ "servers": { "echo": { "command": echo.to_string_lossy() } } });
    let file = directory.join("gateway.json");
    fs::write(&file, config.to_string())
        .map_err(|error| format!("`{}`: {error}", relative_path(&file)))?;
    Ok(directory)
}

/// Returns a free address, for a program that does not print its address.
fn free_address() -> TaskResult<SocketAddr> {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    address.map_err(|error| format!("no free port: {error}"))
}

/// Runs the load against one program.
pub(super) fn measure(
    programs: &Path,
    case: &GatewayCase,
    server: BenchServer,
    length: &str,
) -> TaskResult<Value> {
    let GatewayCase { clients, bytes, .. } = case;
    let (progress, tool) = match server {
        BenchServer::InnkeeperEvents => ("sent", "echo_1"),
        BenchServer::InnkeeperDropped => ("dropped", "echo_1"),
        _ => ("none", "echo"),
    };
    let load = Program::new(programs.join("gateway-load"))
        .args(&format!("{clients} {bytes} {length} {progress} {tool}"));
    let address = match server {
        BenchServer::McpProxy | BenchServer::Supergateway => Some(free_address()?),
        _ => None,
    };
    let port = address.map(|address| address.port()).unwrap_or_default();
    let address = address.map_or("printed".to_owned(), |address| address.to_string());
    let load = load.args(&format!("{address} --"));
    let (echo, servers) = (programs.join("echo"), repository_root().join("target/test-servers"));
    let peers = servers.join("peers/node_modules/.bin");
    let load = match server {
        BenchServer::Echo => load.path_arg(&programs.join("echo-http")),
        BenchServer::Pipe => load.path_arg(&programs.join("gateway-pipe")).path_arg(&echo),
        BenchServer::Rmcp => {
            load.path_arg(&programs.join("gateway-rmcp")).args("json").path_arg(&echo)
        }
        BenchServer::RmcpSessions => {
            load.path_arg(&programs.join("gateway-rmcp")).args("sessions").path_arg(&echo)
        }
        BenchServer::FastMcp => load
            .path_arg(&servers.join("clients-venv/bin/python"))
            .args("bench/gateway/fastmcp_proxy.py")
            .path_arg(&echo),
        BenchServer::McpProxy => load
            .path_arg(&peers.join("mcp-proxy"))
            .args(&format!("--host 127.0.0.1 --port {port} --server stream --"))
            .path_arg(&echo),
        BenchServer::Supergateway => load
            .path_arg(&peers.join("supergateway"))
            .args("--outputTransport streamableHttp --stateful --logLevel none --port")
            .args(&format!("{port} --stdio"))
            .path_arg(&echo),
        BenchServer::Innkeeper | BenchServer::InnkeeperEvents | BenchServer::InnkeeperDropped => {
            load.path_arg(&programs.join("innkeeper"))
                .args("serve --names flat --listen 127.0.0.1:0 --config")
                .path_arg(&programs.join("gateway.json"))
        }
    };
    let line = load.output()?;
    serde_json::from_str(&line)
        .map_err(|error| format!("`{}` printed no figures: {error}", server.name()))
}

/// One row for each case, with the ratios to the limit, the proxy and the JSON responses.
fn table_rows(samples: &Samples) -> Vec<Vec<String>> {
    let mut heading = vec![String::new()];
    heading.extend(ALL_SERVERS.iter().map(|server| server.name().to_owned()));
    heading.extend(["÷ limit", "÷ rmcp proxy", "SSE ÷ JSON", "SSE ÷ dropped"].map(str::to_owned));
    let mut rows = vec![heading];
    for case in CASES {
        for column in COLUMNS {
            let mut row = vec![format!("{}: {}", case.name, column.heading)];
            row.extend(ALL_SERVERS.iter().map(|server| {
                let median = samples.median(case.name, server.name(), "", column.key);
                format_number(median.map(|median| median / column.divisor))
            }));
            let ratio =
                |server: BenchServer| samples.ratio(case.name, server.name(), "", column.key);
            // The ratios of Innkeeper to its event streams, inverted.
            let events = ratio(BenchServer::InnkeeperEvents).map(f64::recip);
            let dropped = ratio(BenchServer::InnkeeperDropped).zip(events);
            let ratios = [
                ratio(BenchServer::Pipe),
                ratio(BenchServer::Rmcp),
                events,
                dropped.map(|(dropped, events)| events * dropped),
            ];
            row.extend(ratios.map(format_number));
            rows.push(row);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_has_a_row_for_each_figure_with_ratios_of_the_same_round() {
        let mut samples = Samples::default();
        for (server, rate) in [(BenchServer::Pipe, 20_000.0), (BenchServer::Innkeeper, 15_000.0)] {
            let entry = BenchRun { case: CASES[0].name, peer: server.name(), runtime: "" };
            samples.add(&entry, &json!({ "per_second": rate }));
        }
        let rows = table_rows(&samples);
        assert_eq!(rows.len(), 1 + 3 * CASES.len());
        let names = ["HTTP echo", "limit", "innkeeper", "÷ limit", "÷ rmcp proxy"];
        assert_eq!(
            names.map(|name| {
                let column = rows[0].iter().position(|title| title == name);
                &*rows[1][column.unwrap()]
            }),
            ["–", "20.0", "15.0", "0.75", "–"]
        );
    }
}
