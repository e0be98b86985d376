//! Paged lists of the fixture server, with list faults.

use serde_json::{Value, json};

use super::message::{Request, Response, error_code};
use super::server::FixtureServer;

impl FixtureServer {
    /// Responds to one page of `tools/list`, `prompts/list`, `resources/list` or the templates.
    pub(super) fn list(&mut self, request: &Request) -> Response {
        let switches = &self.switches;
        let member = match request.method.as_str() {
            "tools/list" => "tools",
            "prompts/list" => "prompts",
            "resources/list" => "resources",
            _ => "resourceTemplates",
        };
        if let Some(code) = switches.number("--list-error")
            && self.has_list_fault(&request.method)
        {
            return Response::error(code, switches.error_text("listing failed as asked"));
        }
        let absent = match member {
            "tools" => false,
            "prompts" => switches.is_set("--no-prompts"),
            _ => switches.is_set("--no-resources"),
        };
        let is_refused = (absent && switches.is_set("--undeclared"))
            || (member != "tools" && switches.is_set("--declares-but-32601"));
        if is_refused {
            let message = format!("unknown method `{}`", request.method);
            return Response::error(error_code::METHOD_NOT_FOUND, message);
        }
        if member == "tools" && switches.is_set("--wrong-list") {
            return Response::Result(json!({"tools": {"echo": "a tool"}}));
        }
        let items = if absent { Vec::new() } else { self.list_items(member) };
        self.list_page(member, items, request.params.get("cursor").and_then(Value::as_str))
    }

    /// Responds with the values of `--completions` that start with the typed value.
    pub(super) fn complete_argument(&self, request: &Request) -> Response {
        let argument = &request.params["argument"];
        let typed = argument["value"].as_str().unwrap_or_default();
        let known = self.switches.json("--completions").unwrap_or_default();
        let values = known[argument["name"].as_str().unwrap_or_default()].as_array().cloned();
        let values: Vec<Value> = values
            .unwrap_or_default()
            .into_iter()
            .filter(|value| value.as_str().is_some_and(|value| value.starts_with(typed)))
            .collect();
        Response::Result(json!({"completion": {"values": values}}))
    }

    /// Whether the switches for list faults apply to the list with this method now.
    pub(super) fn has_list_fault(&self, method: &str) -> bool {
        let is_chosen = self
            .switches
            .value("--faulty-lists")
            .is_none_or(|methods| methods.split(',').any(|chosen| chosen == method));
        let is_active = self
            .switches
            .value("--list-faults-while")
            .is_none_or(|file| std::path::Path::new(file).exists());
        is_chosen && is_active
    }

    /// Sends the notifications that follow a response.
    pub(super) fn after_response(&mut self, method: &str) {
        if method == "tools/list" && self.switches.is_set("--relist-loop") {
            self.notify_list_changed("tools");
        }
    }

    fn list_items(&self, member: &str) -> Vec<Value> {
        match member {
            "tools" => self.listed_tools(),
            "prompts" => self.catalog.prompts.clone(),
            "resources" => self.catalog.resources.clone(),
            _ => self.catalog.templates.clone(),
        }
    }

    fn listed_tools(&self) -> Vec<Value> {
        let switches = &self.switches;
        let mut tools = self.catalog.tools.clone();
        if switches.is_set("--bad-tool") {
            let bad = json!({"name": 7, "inputSchema": "no schema at all"});
            tools.insert(tools.len().min(1), bad);
        }
        if switches.is_set("--dup-tool") {
            tools.push(json!({
                "name": "echo", "description": "The second of its name.",
                "inputSchema": {"type": "object"},
            }));
        }
        if switches.is_set("--odd-names") {
            let long = "x".repeat(10 * 1024);
            for name in ["", "with space", "line\nbreak", "esc\u{1b}[31m", "ünï", &long] {
                tools.push(json!({"name": name, "inputSchema": {"type": "object"}}));
            }
        }
        for number in 0..switches.count("--many-tools") {
            let name = format!("many_{number}");
            tools.push(json!({"name": name, "inputSchema": {"type": "object"}}));
        }
        if switches.is_set("--task") {
            for tool in &mut tools {
                tool["execution"] = json!({"taskSupport": "required"});
            }
        }
        tools
    }

    fn list_page(&self, member: &str, mut items: Vec<Value>, cursor: Option<&str>) -> Response {
        let switches = &self.switches;
        if member == "tools" && switches.is_set("--same-cursor") {
            return Response::Result(json!({member: items, "nextCursor": "again"}));
        }
        if member == "tools" && switches.is_set("--endless-cursor") {
            let page = page_number(cursor).unwrap_or(0);
            if page > 0 {
                let name = format!("endless_{page}");
                items = vec![json!({"name": name, "inputSchema": {"type": "object"}})];
            }
            let next = format!("page-{}", page + 1);
            return Response::Result(json!({member: items, "nextCursor": next}));
        }
        let pages = switches.count("--pages").max(1);
        let Some(page) = page_number(cursor).filter(|page| *page < pages) else {
            return Response::error(error_code::INVALID_PARAMS, "invalid cursor");
        };
        let range = page * items.len() / pages..(page + 1) * items.len() / pages;
        let mut result = json!({member: items[range]});
        if page + 1 < pages {
            let padding = "x".repeat(switches.count("--big-cursor"));
            let empty = page == 0 && switches.is_set("--empty-cursor");
            let next = format!("page-{}{padding}", page + 1);
            result["nextCursor"] = json!(if empty { "" } else { next.as_str() });
        }
        Response::Result(result)
    }
}

/// The page of a cursor; the empty cursor stands for the second page.
fn page_number(cursor: Option<&str>) -> Option<usize> {
    match cursor {
        None => Some(0),
        Some("") => Some(1),
        Some(cursor) => cursor.strip_prefix("page-")?.trim_end_matches('x').parse().ok(),
    }
}
