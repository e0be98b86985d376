//! The page of all tools that the operator may call.

use innkeeper_protocol::skim;

use super::console_calls::caller;
use super::html::{FieldValue, Html, Link, Name, html};
use super::reply::{Page, Reply};
use super::request::ConsoleRequest;
use crate::offering::{ListItem, ListKind};

/// Maximum number of tools on the page.
const MAX_ROWS: usize = 500;

/// Maximum number of characters of a description in the list.
const MAX_SUMMARY_CHARS: usize = 160;

pub(super) async fn show(request: &ConsoleRequest<'_>) -> Reply {
    let query = request.query.get("q");
    let server = request.query.get("server");
    let query = query.unwrap_or_default().trim();
    let server = server.unwrap_or_default();
    let principal = &request.visitor.principal;
    let offering = match request.gateway.offers.offering(&caller(principal)).await {
        Ok(offering) => offering,
        Err(error) => {
            let status = http::StatusCode::BAD_GATEWAY;
            return Page::message(status, "Tools", &error.message).into();
        }
    };
    let found: Vec<&ListItem> = offering
        .list(ListKind::Tools)
        .items()
        .iter()
        .filter(|item| {
            let words = query.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
            let text = format!("{} {}", item.name, description(item)).to_lowercase();
            request.gateway.offers.permitted_tool(principal, &offering, &item.name).is_some()
                && (server.is_empty()
                    || offering.tool(&item.name).is_some_and(|tool| *tool.server.name == *server))
                && words.iter().all(|word| text.contains(word))
        })
        .collect();
    let mut out = Html::new();
    write_search(&mut out, query, server);
    if found.is_empty() {
        html!(out, "<p class=\"empty\" role=\"status\">No tool matches.</p>");
    } else {
        html!(
            out,
            "<p class=\"hint\" role=\"status\">{} tools</p>\n<ul class=\"tools\">\n",
            found.len()
        );
    }
    for item in found.iter().take(MAX_ROWS) {
        let summary: String = description(item).chars().take(MAX_SUMMARY_CHARS).collect();
        html!(
            out,
            "<li><a href=\"{}\">{}</a><span class=\"dim\">{}</span></li>\n",
            Link::to("tool").with("name", &item.name),
            Name(&item.name),
            summary
        );
    }
    if !found.is_empty() {
        html!(out, "</ul>\n");
    }
    if let Some(more) = found.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
        html!(out, "<p class=\"hint\">{} more tools are not shown: search for a name.</p>", more);
    }
    Page::new("Tools", out).into()
}

fn write_search(out: &mut Html, query: &str, server: &str) {
    html!(
        out,
        "<form class=\"search\" method=\"get\" action=\"{}\" role=\"search\">\
         <label for=\"q\">Name or description</label>\
         <input id=\"q\" name=\"q\" type=\"search\" value=\"{}\" autocomplete=\"off\">",
        Link::to("tools"),
        FieldValue(query)
    );
    if !server.is_empty() {
        html!(out, "<label for=\"server\">Server</label>");
        html!(out, "<input id=\"server\" name=\"server\" value=\"{}\">", FieldValue(server));
    }
    html!(out, "<button>Search</button></form>\n");
}

/// Returns the first line of the description of a tool.
fn description(item: &ListItem) -> String {
    let text = skim::member(&item.text, "description").and_then(skim::decode_string);
    text.unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}
