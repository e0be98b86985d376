//! The four lists, in pages, with the faults a list can have.

use serde_json::{Value, json};

use super::message::{Answer, Request, code};
use super::server::Server;

impl Server {
    /// Answers one page of `tools/list`, `prompts/list`, `resources/list` or the templates.
    pub(super) fn list(&mut self, request: &Request) -> Answer {
        let switches = &self.switches;
        let member = match request.method.as_str() {
            "tools/list" => "tools",
            "prompts/list" => "prompts",
            "resources/list" => "resources",
            _ => "resourceTemplates",
        };
        if let Some(code) = switches.number("--list-error") {
            return Answer::error(code, "listing failed as asked");
        }
        let absent = match member {
            "tools" => false,
            "prompts" => switches.on("--no-prompts"),
            _ => switches.on("--no-resources"),
        };
        let refused = (absent && switches.on("--undeclared"))
            || (member != "tools" && switches.on("--declares-but-32601"));
        if refused {
            let message = format!("unknown method `{}`", request.method);
            return Answer::error(code::METHOD_NOT_FOUND, message);
        }
        if member == "tools" && switches.on("--wrong-list") {
            return Answer::Result(json!({"tools": {"echo": "a tool"}}));
        }
        let items = if absent { Vec::new() } else { self.items(member) };
        self.page(member, items, request.params.get("cursor").and_then(Value::as_str))
    }

    /// What follows an answer of its own accord.
    pub(super) fn after_answer(&mut self, method: &str) {
        if method == "tools/list" && self.switches.on("--relist-loop") {
            self.tell_list_changed("tools");
        }
    }

    fn items(&self, member: &str) -> Vec<Value> {
        match member {
            "tools" => self.tools(),
            "prompts" => self.catalog.prompts.clone(),
            "resources" => self.catalog.resources.clone(),
            _ => self.catalog.templates.clone(),
        }
    }

    fn tools(&self) -> Vec<Value> {
        let switches = &self.switches;
        let mut tools = self.catalog.tools.clone();
        if switches.on("--bad-tool") {
            let bad = json!({"name": 7, "inputSchema": "no schema at all"});
            tools.insert(tools.len().min(1), bad);
        }
        if switches.on("--dup-tool") {
            tools.push(json!({
                "name": "echo", "description": "The second of its name.",
                "inputSchema": {"type": "object"},
            }));
        }
        if switches.on("--odd-names") {
            let long = "x".repeat(10 * 1024);
            for name in ["", "with space", "line\nbreak", "esc\u{1b}[31m", "ünï", &long] {
                tools.push(json!({"name": name, "inputSchema": {"type": "object"}}));
            }
        }
        for number in 0..switches.count("--many-tools") {
            let name = format!("many_{number}");
            tools.push(json!({"name": name, "inputSchema": {"type": "object"}}));
        }
        if switches.on("--task") {
            for tool in &mut tools {
                tool["execution"] = json!({"taskSupport": "required"});
            }
        }
        tools
    }

    fn page(&self, member: &str, mut items: Vec<Value>, cursor: Option<&str>) -> Answer {
        let switches = &self.switches;
        if member == "tools" && switches.on("--same-cursor") {
            return Answer::Result(json!({member: items, "nextCursor": "again"}));
        }
        if member == "tools" && switches.on("--endless-cursor") {
            let page = page_number(cursor).unwrap_or(0);
            if page > 0 {
                let name = format!("endless_{page}");
                items = vec![json!({"name": name, "inputSchema": {"type": "object"}})];
            }
            let next = format!("page-{}", page + 1);
            return Answer::Result(json!({member: items, "nextCursor": next}));
        }
        let pages = switches.count("--pages").max(1);
        let Some(page) = page_number(cursor).filter(|page| *page < pages) else {
            return Answer::error(code::INVALID_PARAMS, "invalid cursor");
        };
        let range = page * items.len() / pages..(page + 1) * items.len() / pages;
        let mut result = json!({member: items[range]});
        if page + 1 < pages {
            let padding = "x".repeat(switches.count("--big-cursor"));
            let empty = page == 0 && switches.on("--empty-cursor");
            let next = format!("page-{}{padding}", page + 1);
            result["nextCursor"] = json!(if empty { "" } else { next.as_str() });
        }
        Answer::Result(result)
    }
}

/// The page a cursor stands for; an empty cursor is one like any other, for the second page.
fn page_number(cursor: Option<&str>) -> Option<usize> {
    match cursor {
        None => Some(0),
        Some("") => Some(1),
        Some(cursor) => cursor.strip_prefix("page-")?.trim_end_matches('x').parse().ok(),
    }
}
