//! The page of all servers: state, latency, processes, and who shares them.

use std::sync::Arc;
use std::time::SystemTime;

use indexmap::IndexMap;
use innkeeper_host::config::Share;
use innkeeper_host::{ProcessTable, ProcessUsage, ServerMetrics, ServerState, ServerStatus};
use innkeeper_protocol::{Era, Revision};
use tokio::task::spawn_blocking;

use super::html::{Decimal, Html, Link, Name, html};
use super::reply::{Page, Reply};
use super::request::ConsoleRequest;
use crate::principal::Principal;
use crate::servers::SharedHost;
use crate::state::GatewayState;
use crate::upstream::Upstream;

/// Maximum number of rows of the page.
const MAX_ROWS: usize = 500;

/// Number of lines of stderr in the table.
const SHOWN_STDERR_LINES: usize = 2;

/// A server of a running host.
pub(super) struct ServerRow {
    pub(super) name: Arc<str>,
    pub(super) share: Share,
    pub(super) client: Option<Principal>,
    pub(super) upstream: Arc<Upstream>,
    pub(super) status: ServerStatus,
    pub(super) metrics: ServerMetrics,
    /// `None` on systems that do not report it.
    pub(super) usage: Option<ProcessUsage>,
    /// Whether the server has no process until its next use.
    pub(super) is_idle: bool,
}

impl ServerRow {
    pub(super) fn state(&self) -> &'static str {
        if self.is_idle { "idle" } else { self.status.state.as_str() }
    }

    pub(super) fn state_class(&self) -> &'static str {
        match self.status.state {
            _ if self.is_idle => "muted",
            ServerState::Ready => "good",
            ServerState::Starting => "busy",
            ServerState::Unavailable => "bad",
            ServerState::Shutdown => "muted",
        }
    }

    /// Returns the revision and the era of the protocol.
    pub(super) fn protocol(&self) -> Option<(&'static str, &'static str)> {
        let version = self.upstream.host.catalog().server(&self.name)?.protocol_version()?;
        let revision: Revision = version.parse().ok()?;
        Some((
            version,
            match revision.era() {
                Era::Legacy => "legacy",
                Era::Modern => "modern",
            },
        ))
    }

    pub(super) fn link(&self) -> Link {
        Link::to("server").with("name", &self.name).with("host", &self.upstream.number.to_string())
    }
}

/// Returns the servers of all running hosts. Reads the processes of the system.
pub(super) async fn server_rows(gateway: &GatewayState) -> Vec<ServerRow> {
    // Without a table, the numbers of the processes are unknown.
    let table = spawn_blocking(ProcessTable::read).await.ok().flatten();
    let hosts = gateway.servers.shared_hosts().into_iter();
    hosts.flat_map(|host| rows_of_host(&host, table.as_ref())).collect()
}

fn rows_of_host(host: &SharedHost, table: Option<&ProcessTable>) -> Vec<ServerRow> {
    let SharedHost { share, client, upstream } = host;
    let mut metrics = upstream.host.metrics();
    let usage = table.map(|table| upstream.host.process_usage(table));
    let rows = upstream.host.status().into_iter().map(|(name, status)| ServerRow {
        share: *share,
        client: client.clone(),
        upstream: upstream.clone(),
        metrics: metrics.swap_remove(&name).unwrap_or_default(),
        usage: usage.as_ref().map(|usage| usage.get(&name).copied().unwrap_or_default()),
        // The next use starts it.
        is_idle: upstream.dormant.is_stopped(&name)
            || (upstream.dormant.is_unstarted(&name) && status.state == ServerState::Shutdown),
        status,
        name,
    });
    rows.collect()
}

pub(super) async fn show(request: &ConsoleRequest<'_>) -> Reply {
    let rows = server_rows(request.gateway).await;
    let mut out = Html::new();
    html!(out, "<section id=\"servers\" data-refresh=\"5\" aria-label=\"Servers\">\n");
    if rows.is_empty() {
        html!(out, "<p class=\"empty\">The configuration has no server.</p>");
    } else {
        write_table(&mut out, &rows);
    }
    write_private(&mut out, request.gateway, &rows);
    html!(out, "</section>");
    Page::new("Servers", out).into()
}

fn write_table(out: &mut Html, rows: &[ServerRow]) {
    html!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of servers\">\
         <table><thead><tr><th scope=\"col\">Server</th><th scope=\"col\">State</th>\
         <th scope=\"col\">Protocol</th><th scope=\"col\">Shared by</th>\
         <th scope=\"col\" class=\"n\">Calls</th><th scope=\"col\" class=\"n\">In flight</th>\
         <th scope=\"col\" class=\"n\">Errors</th><th scope=\"col\" class=\"n\">p50 ms</th>\
         <th scope=\"col\" class=\"n\">p95 ms</th><th scope=\"col\" class=\"n\">Processes</th>\
         <th scope=\"col\" class=\"n\">Memory MiB</th><th scope=\"col\">Last output</th></tr></thead>\
         <tbody>\n"
    );
    for row in rows.iter().take(MAX_ROWS) {
        write_row(out, row);
    }
    html!(out, "</tbody></table></div>\n");
    if let Some(more) = rows.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
        html!(out, "<p class=\"hint\">{} more servers are not shown.</p>", more);
    }
}

fn write_row(out: &mut Html, row: &ServerRow) {
    let metrics = &row.metrics;
    html!(
        out,
        "<tr><th scope=\"row\"><a href=\"{}\">{}</a></th><td><span class=\"state {}\">{}</span></td>",
        row.link(),
        Name(&row.name),
        row.state_class(),
        row.state()
    );
    match row.protocol() {
        Some((version, era)) => {
            html!(out, "<td class=\"w\">{} <span class=\"dim\">{}</span></td>", version, era);
        }
        None => html!(out, "<td class=\"dim\">–</td>"),
    }
    html!(out, "<td>{}</td>", shared_by(row));
    html!(
        out,
        "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>",
        metrics.request_count,
        row.status.in_flight,
        metrics.error_count
    );
    let has_latency = metrics.success_count + metrics.error_count > 0;
    if has_latency {
        let p50 = Decimal(metrics.latency.p50);
        let p95 = Decimal(metrics.latency.p95);
        html!(out, "<td class=\"n\">{}</td><td class=\"n\">{}</td>", p50, p95);
    } else {
        html!(out, "<td class=\"n dim\">–</td><td class=\"n dim\">–</td>");
    }
    match row.usage {
        Some(ProcessUsage { processes, resident_bytes }) if processes > 0 => {
            let mebibytes = Decimal(resident_bytes as f64 / f64::from(1 << 20));
            html!(out, "<td class=\"n\">{}</td><td class=\"n\">{}</td>", processes, mebibytes);
        }
        _ => html!(out, "<td class=\"n dim\">–</td><td class=\"n dim\">–</td>"),
    }
    html!(out, "<td class=\"tail\">{}</td></tr>\n", last_output(row));
}

/// Returns who shares a server.
pub(super) fn shared_by(row: &ServerRow) -> Html {
    let mut out = Html::new();
    match &row.client {
        None if row.share == Share::Singleton => html!(out, "all clients of all replicas"),
        None => html!(out, "all clients"),
        Some(principal) => {
            html!(out, "{} of <code>{}</code>", row.share.as_str(), Name(principal.id()));
        }
    }
    out
}

/// Returns the reason of a failure, or the last lines of stderr.
fn last_output(row: &ServerRow) -> Html {
    let mut out = Html::new();
    if let Some(reason) = row.status.reason.as_deref().filter(|_| !row.is_idle) {
        html!(out, "<span class=\"bad\">{}</span>", Name(reason));
        return out;
    }
    let lines: Vec<&str> = row.status.stderr.lines().collect();
    let first = lines.len().saturating_sub(SHOWN_STDERR_LINES);
    for line in lines.iter().skip(first) {
        html!(out, "<span class=\"line\">{}</span>", Name(line));
    }
    out
}

/// Writes the servers that start for each principal or session, with the number that runs.
fn write_private(out: &mut Html, gateway: &GatewayState, rows: &[ServerRow]) {
    let mut private = gateway.servers.private().list();
    private.retain(|(_, share)| *share != Share::Singleton);
    if private.is_empty() {
        return;
    }
    let mut running: IndexMap<&str, usize> = IndexMap::new();
    for row in rows.iter().filter(|row| row.client.is_some()) {
        *running.entry(&row.name).or_default() += 1;
    }
    html!(
        out,
        "<h2>Private servers</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Table of private servers\"><table><thead><tr><th scope=\"col\">Server</th>\
         <th scope=\"col\">Starts for each</th><th scope=\"col\" class=\"n\">Running</th></tr></thead>\
         <tbody>\n"
    );
    for (name, share) in private {
        let count = running.get(name).copied().unwrap_or_default();
        html!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td></tr>\n",
            Name(name),
            share.as_str(),
            count
        );
    }
    html!(out, "</tbody></table></div>\n");
}

/// Returns a past time as the seconds since then.
pub(super) fn seconds_since(time: SystemTime) -> u64 {
    SystemTime::now().duration_since(time).map_or(0, |age| age.as_secs())
}
