//! The page of the calls of all clients: those in flight, with a button that cancels, and the last ones.

use std::sync::Arc;

use tokio::time::Instant;

use super::console_calls::ConsoleCall;
use super::html::{Decimal, Html, Link, Name, Time, html};
use super::reply::{Page, Reply};
use super::request::ConsoleRequest;
use crate::call_monitor::{CallEnd, CallInFlight, FinishedCall, MAX_FINISHED_CALLS};
use crate::error::shown_name;

/// Maximum number of calls in flight on the page.
const MAX_ROWS: usize = 200;

pub(super) async fn show(request: &ConsoleRequest<'_>) -> Reply {
    let monitor = &request.gateway.calls.monitor;
    let mut out = Html::new();
    html!(out, "<section id=\"in-flight\" data-refresh=\"3\" aria-label=\"Calls in flight\">\n");
    write_in_flight(&mut out, request, &monitor.in_flight());
    html!(
        out,
        "</section>\n<section id=\"finished\" data-refresh=\"3\" aria-label=\"Finished calls\">\n"
    );
    write_finished(&mut out, &monitor.finished());
    html!(out, "</section>\n");
    write_own(&mut out, &request.calls.of(&request.visitor.principal));
    Page::new("Calls", out).into()
}

/// Cancels a call of a client.
pub(super) async fn cancel(request: &ConsoleRequest<'_>) -> Reply {
    let number = request.form.get("number").and_then(|number| number.parse().ok());
    // A call that has ended in the meantime needs no cancellation.
    if let Some(call) = number.and_then(|number| request.gateway.calls.monitor.find(number)) {
        let subject = &call.subject;
        let text =
            format!("call of `{}` by `{}` cancelled", shown_name(&subject.tool), subject.principal);
        let operator = &request.visitor.principal;
        request.gateway.traffic.audit_log.record("call-cancelled", Some(operator), &text);
        call.cancel();
    }
    Reply::Redirect(Link::to("calls"))
}

fn write_in_flight(out: &mut Html, request: &ConsoleRequest<'_>, calls: &[Arc<CallInFlight>]) {
    html!(out, "<h2>In flight <span class=\"count\">{}</span></h2>\n", calls.len());
    if calls.is_empty() {
        html!(out, "<p class=\"empty\">No call is in flight.</p>");
        return;
    }
    html!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of calls in flight\">\
         <table><thead><tr><th scope=\"col\">Tool</th><th scope=\"col\">Action</th>\
         <th scope=\"col\" class=\"n\">Seconds</th><th scope=\"col\">Client</th>\
         <th scope=\"col\">Server</th><th scope=\"col\">Through</th><th scope=\"col\">Since</th></tr>\
         </thead><tbody>\n"
    );
    let now = Instant::now();
    for call in calls.iter().take(MAX_ROWS) {
        let seconds = now.saturating_duration_since(call.started).as_secs_f64();
        html!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}<input type=\"hidden\" name=\"number\" value=\"{}\">\
             <button id=\"cancel-{}\" class=\"danger small\" aria-label=\"Cancel call {} of {}\">Cancel\
             </button></form></td><td class=\"n\">{}</td><td><code>{}</code></td><td>{}</td><td>{}</td>\
             <td>{}</td></tr>\n",
            Name(&call.subject.tool),
            request.form(&Link::to("calls")),
            call.number,
            call.number,
            call.number,
            Name(&call.subject.tool),
            Decimal(seconds),
            Name(call.subject.principal.id()),
            Name(&call.subject.server),
            call.subject.transport.as_str(),
            Time(call.started_at())
        );
    }
    html!(out, "</tbody></table></div>\n");
    if let Some(more) = calls.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
        html!(out, "<p class=\"hint\">{} more calls are in flight.</p>", more);
    }
}

fn write_finished(out: &mut Html, calls: &[FinishedCall]) {
    html!(out, "<h2>Finished <span class=\"count\">{}</span></h2>\n", calls.len());
    if calls.is_empty() {
        html!(out, "<p class=\"empty\">No call has ended since the start of the gateway.</p>");
        return;
    }
    html!(
        out,
        "<p class=\"hint\">The last {} calls, the newest first. Times are in UTC.</p>\
         <div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"Table of finished calls\">\
         <table><thead><tr><th scope=\"col\">Tool</th><th scope=\"col\">End</th>\
         <th scope=\"col\" class=\"n\">ms</th><th scope=\"col\">Client</th><th scope=\"col\">Server</th>\
         <th scope=\"col\">Through</th><th scope=\"col\">Start</th><th scope=\"col\">Message</th></tr>\
         </thead><tbody>\n",
        MAX_FINISHED_CALLS
    );
    for call in calls {
        let subject = &call.call.subject;
        html!(
            out,
            "<tr><th scope=\"row\">{}</th><td><span class=\"state {}\">{}</span></td>\
             <td class=\"n\">{}</td><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"dim\">{}</td></tr>\n",
            Name(&subject.tool),
            end_class(call.end),
            call.end.as_str(),
            Decimal(call.duration.as_secs_f64() * 1000.0),
            Name(subject.principal.id()),
            Name(&subject.server),
            subject.transport.as_str(),
            Time(call.call.started_at()),
            call.message.as_deref().unwrap_or_default()
        );
    }
    html!(out, "</tbody></table></div>\n");
}

fn end_class(end: CallEnd) -> &'static str {
    match end {
        CallEnd::Ok => "good",
        CallEnd::InputRequired => "busy",
        CallEnd::ToolError | CallEnd::Failed(_) => "bad",
        CallEnd::Cancelled | CallEnd::CancelledByOperator => "muted",
    }
}

/// Writes the links to the results of the operator's own calls.
fn write_own(out: &mut Html, calls: &[Arc<ConsoleCall>]) {
    if calls.is_empty() {
        return;
    }
    html!(out, "<h2>Your calls in the console</h2><ul class=\"tools\">\n");
    for call in calls {
        let state = if call.outcome().is_some() { "ended" } else { "running" };
        html!(
            out,
            "<li><a href=\"{}\">{} {}</a><span class=\"dim\">{}, {}</span></li>\n",
            Link::to("call").with("number", &call.number.to_string()),
            Name(&call.tool),
            call.number,
            Time(call.started_at()),
            state
        );
    }
    html!(out, "</ul>\n");
}
