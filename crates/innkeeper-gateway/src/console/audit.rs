//! The page of the last security-relevant events.

use super::html::{Html, Name, Time, html};
use super::reply::{Page, Reply};
use super::request::ConsoleRequest;
use crate::audit_log::{AuditEvent, MAX_AUDIT_EVENTS};

pub(super) async fn show(request: &ConsoleRequest<'_>) -> Reply {
    let events = request.gateway.traffic.audit_log.events();
    let mut out = Html::new();
    html!(
        out,
        "<p class=\"hint\">The last {} events of clients and of servers since the start of the gateway, \
         the newest first. The log has them too. Times are in UTC.</p>\n\
         <section id=\"audit\" data-refresh=\"5\" aria-label=\"Events\">\n",
        MAX_AUDIT_EVENTS
    );
    if events.is_empty() {
        html!(out, "<p class=\"empty\">No event since the start of the gateway.</p>");
    } else {
        write_table(&mut out, &events);
    }
    html!(out, "</section>");
    Page::new("Audit", out).into()
}

fn write_table(out: &mut Html, events: &[AuditEvent]) {
    html!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of events\">\
         <table><thead><tr><th scope=\"col\">Time</th><th scope=\"col\">Event</th>\
         <th scope=\"col\">Client</th><th scope=\"col\">Server</th><th scope=\"col\">Text</th>\
         <th scope=\"col\" class=\"n\">Count</th></tr></thead><tbody>\n"
    );
    for event in events {
        let client = event.principal.as_ref().map_or("–", |principal| principal.id());
        html!(
            out,
            "<tr><td>{}</td><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"n\">{}</td></tr>\n",
            Time(event.at),
            event.kind,
            Name(client),
            Name(event.server.as_deref().unwrap_or("–")),
            event.text,
            event.count
        );
    }
    html!(out, "</tbody></table></div>\n");
}
