//! The page of one server.

use innkeeper_host::SecurityWarning;

use super::html::{Decimal, Html, Link, Name, html};
use super::reply::{Page, Reply};
use super::request::{ConsoleRequest, Fields};
use super::servers::{ServerRow, seconds_since, server_rows, shared_by};
use crate::error::shown_name;

/// Returns the server that a query or a form names.
async fn find_row(request: &ConsoleRequest<'_>, fields: &Fields) -> Option<ServerRow> {
    let name = fields.get("name");
    let host = fields.get("host");
    let host = host.and_then(|number| number.parse::<u64>().ok());
    server_rows(request.gateway).await.into_iter().find(|row| {
        Some(&*row.name) == name && host.is_none_or(|number| row.upstream.number == number)
    })
}

fn unknown_server() -> Reply {
    Page::not_found("No running host has this server.").into()
}

/// Restarts a server. The restart goes on without the operator, and the page shows its state.
pub(super) async fn restart(request: &ConsoleRequest<'_>) -> Reply {
    let Some(row) = find_row(request, &request.form).await else { return unknown_server() };
    let text = format!("restart of the server `{}`", shown_name(&row.name));
    request.gateway.traffic.audit_log.record(
        "server-restart",
        Some(&request.visitor.principal),
        &text,
    );
    let host = row.upstream.host.clone();
    let name = row.name.clone();
    request.gateway.tasks.spawn(async move {
        if let Err(error) = host.restart_server(&name).await {
            tracing::warn!(server = &*name, %error, "server not restarted");
        }
    });
    Reply::Redirect(row.link())
}

pub(super) async fn show(request: &ConsoleRequest<'_>) -> Reply {
    let Some(row) = find_row(request, &request.query).await else { return unknown_server() };
    let row = &row;
    let mut out = Html::new();
    html!(out, "<p><a href=\"{}\">All servers</a></p>", Link::to("servers"));
    html!(out, "<section id=\"server\" data-refresh=\"5\" aria-label=\"Server\">\n");
    write_facts(&mut out, row);
    // The next use starts an idle server.
    if !row.is_idle {
        html!(
            out,
            "{}<input type=\"hidden\" name=\"name\" value=\"{}\">\
             <input type=\"hidden\" name=\"host\" value=\"{}\">\
             <button id=\"restart\" class=\"danger\">Restart the server</button></form>\
             <p class=\"hint\">Calls in flight at this server fail.</p>\n",
            request.form(&Link::to("server")),
            row.name,
            row.upstream.number
        );
    }
    write_items(&mut out, row);
    write_warnings(&mut out, row);
    html!(out, "<h2>Last output on stderr</h2>\n");
    if row.status.stderr.is_empty() {
        html!(out, "<p class=\"empty\">No output.</p>");
    } else {
        html!(
            out,
            "<pre class=\"log\" tabindex=\"0\" role=\"region\" aria-label=\"stderr\">{}</pre>",
            row.status.stderr
        );
    }
    html!(out, "</section>");
    let mut title = String::from("Server ");
    title.push_str(&row.name);
    Page::new(title, out).into()
}

fn write_facts(out: &mut Html, row: &ServerRow) {
    let status = &row.status;
    html!(out, "<dl class=\"facts\">");
    html!(
        out,
        "<div><dt>State</dt><dd><span class=\"state {}\">{}</span></dd></div>",
        row.state_class(),
        row.state()
    );
    if let Some(reason) = &status.reason {
        html!(out, "<div class=\"wide\"><dt>Reason</dt><dd>{}</dd></div>", reason);
    }
    if let Some(hint) = &status.start_hint {
        html!(out, "<div class=\"wide\"><dt>Hint</dt><dd>{}</dd></div>", hint);
    }
    if let Some((version, era)) = row.protocol() {
        html!(out, "<div><dt>Protocol</dt><dd>{}, {} era</dd></div>", version, era);
    }
    let catalog = row.upstream.host.catalog();
    let server = catalog.server(&row.name);
    if let Some(server) = server {
        html!(out, "<div><dt>Transport</dt><dd>{}</dd></div>", server.transport());
    }
    html!(out, "<div><dt>Shared by</dt><dd>{}</dd></div>", shared_by(row));
    if let Some(pid) = status.pid {
        html!(out, "<div><dt>Process id</dt><dd>{}</dd></div>", pid);
    }
    if let Some(usage) = row.usage.filter(|usage| usage.processes > 0) {
        let mebibytes = Decimal(usage.resident_bytes as f64 / f64::from(1 << 20));
        html!(
            out,
            "<div><dt>Processes</dt><dd>{}</dd></div><div><dt>Memory</dt><dd>{} MiB</dd></div>",
            usage.processes,
            mebibytes
        );
    }
    let metrics = &row.metrics;
    html!(
        out,
        "<div><dt>Calls</dt><dd>{}</dd></div><div><dt>In flight</dt><dd>{}</dd></div>\
         <div><dt>Errors</dt><dd>{} <span class=\"dim\">of tools: {}</span></dd></div>\
         <div><dt>Cancelled</dt><dd>{}</dd></div>",
        metrics.request_count,
        status.in_flight,
        metrics.error_count,
        metrics.tool_error_count,
        metrics.cancelled_count
    );
    if metrics.success_count + metrics.error_count > 0 {
        html!(
            out,
            "<div><dt>Latency p50, p95, p99</dt><dd>{}, {}, {} ms</dd></div>",
            Decimal(metrics.latency.p50),
            Decimal(metrics.latency.p95),
            Decimal(metrics.latency.p99)
        );
    }
    if let Some(time) = status.last_success {
        html!(out, "<div><dt>Last success</dt><dd>{} s ago</dd></div>", seconds_since(time));
    }
    for key in &status.pending_restart {
        html!(out, "<div><dt>Waits for a restart</dt><dd><code>{}</code></dd></div>", *key);
    }
    html!(out, "</dl>\n");
    if let Some(info) = server.and_then(|server| server.server_info()) {
        html!(
            out,
            "<details><summary>Server information</summary><pre>{}</pre></details>",
            info.get()
        );
    }
    if let Some(text) = server.and_then(|server| server.instructions()) {
        html!(out, "<details><summary>Instructions</summary><pre>{}</pre></details>", text);
    }
}

fn write_items(out: &mut Html, row: &ServerRow) {
    let catalog = row.upstream.host.catalog();
    let Some(listing) = catalog.server(&row.name).and_then(|server| server.listing()) else {
        return;
    };
    html!(
        out,
        "<h2>Items</h2><p>{} tools, {} prompts, {} resources, {} resource templates. \
         <a href=\"{}\">Show the tools</a></p>\n",
        listing.tools.len(),
        listing.prompts.len(),
        listing.resources.len(),
        listing.resource_templates.len(),
        Link::to("tools").with("server", &row.name)
    );
    if !row.status.excluded_tools.is_empty() {
        html!(out, "<h3>Excluded tools</h3><ul>");
        for (tool, reason) in &row.status.excluded_tools {
            html!(out, "<li><code>{}</code>: {}</li>", Name(tool), Name(reason));
        }
        html!(out, "</ul>\n");
    }
}

fn write_warnings(out: &mut Html, row: &ServerRow) {
    let catalog = row.upstream.host.catalog();
    let mut warnings = catalog.warnings();
    warnings.extend(catalog.guard_findings());
    warnings.retain(|warning| warning.server == row.name);
    if warnings.is_empty() {
        return;
    }
    html!(out, "<h2>Warnings</h2><ul>");
    for SecurityWarning { tool, item, reason, .. } in &warnings {
        let subject = tool.as_deref().or(item.as_deref()).unwrap_or("instructions");
        html!(out, "<li><code>{}</code>: {}</li>", Name(subject), reason);
    }
    html!(out, "</ul>\n");
}
