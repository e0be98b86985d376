//! Tests of the search over the tools of an endpoint.

use serde_json::json;

use super::*;
use crate::item_names::ItemNames;

const TOOLS: [(&str, &str); 4] = [
    ("fs.read", "Reads a file. Slowly."),
    ("fs.remove", "Removes a file."),
    ("web.fetch", "Loads a page."),
    ("call_tool", "Calls a person."),
];

fn item((name, description): (&str, &str)) -> ListItem {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let text = format!(
        r#"{{"name":"{name}", "description":"{description}","inputSchema":{schema},"big":1.50}}"#
    );
    ListItem { name: name.into(), text }
}

fn tool_search() -> ToolSearch {
    ToolSearch { tools: TOOLS.map(item).into(), indexes: Mutex::default() }
}

fn query(text: &str) -> SearchArguments {
    SearchArguments::parse(&json!({ "query": text }).to_string()).unwrap()
}

fn found(search: &ToolSearch, text: &str, permits: impl Fn(&str) -> bool) -> Value {
    serde_json::from_str(&search.search(&query(text), search.permitted(permits))).unwrap()
}

#[test]
fn an_endpoint_with_a_search_lists_the_gateways_tools_and_the_pinned_tools() {
    let endpoint = EndpointOptions {
        search: true,
        pinned: vec!["web.*".to_owned(), "call_*".to_owned()],
        ..EndpointOptions::default()
    };
    let mut omitted = Vec::new();
    let is_pinned = |tool: &ListItem| endpoint.is_pinned(&ItemNames::single(&tool.name));
    let (listed, search) = listed_tools(TOOLS.map(item).into(), &endpoint, is_pinned, &mut omitted);
    let names: Vec<&str> = listed.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["search_tools", "describe_tools", "call_tool", "web.fetch"]);
    assert_eq!(listed[3], item(TOOLS[2]));
    assert!(listed[2].text.contains("search_tools"), "the gateway's own tool");
    let omitted = omitted.join("\n");
    assert!(
        omitted.contains("`call_tool` is left out") && omitted.contains("`call_tool` calls it")
    );
    let search = search.unwrap();
    assert_eq!(found(&search, "call a person", |_| true)["tools"][0]["name"], "call_tool");
}

#[test]
fn an_endpoint_without_a_search_leaves_out_a_tool_with_the_name_of_a_gateways_tool() {
    let endpoint =
        EndpointOptions { large_results: Some(Default::default()), ..EndpointOptions::default() };
    let tools = vec![item(("read_result", "")), item(("call_tool", ""))];
    let mut omitted = Vec::new();
    let (listed, search) = listed_tools(tools, &endpoint, |_| false, &mut omitted);
    assert!(search.is_none());
    let names: Vec<&str> = listed.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["read_result", "search_result", "select_result", "call_tool"]);
    assert_eq!(omitted.len(), 1);
}

#[test]
fn a_search_returns_names_with_the_first_sentence() {
    let search = tool_search();
    let read = json!({ "name": "fs.read", "description": "Reads a file." });
    let result = found(&search, "read a file", |_| true);
    assert_eq!(result["tools"][0], read);
    assert_eq!(result["searchedTools"], 4);
    assert!(found(&search, "paint", |_| true)["hint"].is_string());
}

/// Attack: remote | a client searches, describes and misspells a tool that it may not use | each
/// result equals the result of an endpoint without the tool | Isolation
#[test]
fn a_tool_that_a_client_may_not_use_changes_no_result() {
    let permits = |name: &str| name != "fs.remove";
    let (all, mut without) = (tool_search(), tool_search());
    without.tools.retain(|tool| permits(&tool.name));
    for text in ["removes a file", "file", "fs.remove", "read"] {
        assert_eq!(found(&all, text, permits), found(&without, text, |_| true), "{text}");
        assert_ne!(found(&all, text, |_| true), found(&without, text, |_| true), "{text}");
    }
    for name in ["fs.remove", "fs.remov", "fs.rea"] {
        let described = all.describe(&[name, "fs.read"], permits);
        assert_eq!(described, without.describe(&[name, "fs.read"], |_| true), "{name}");
        assert_eq!(all.similar_names(name, permits), without.similar_names(name, |_| true));
    }
}

#[test]
fn a_description_has_the_definitions_byte_for_byte_and_names_unknown_tools() {
    let search = tool_search();
    let (text, is_error) = search.describe(&["fs.read", "fs.raed"], |_| true);
    let definition = item(TOOLS[0]).text;
    assert!(text.starts_with(&format!("{{\"tools\":[{definition}],")), "{text}");
    let described: Value = serde_json::from_str(&text).unwrap();
    let similar = json!([{ "name": "fs.raed", "similarNames": ["fs.read"] }]);
    assert_eq!((&described["unknownNames"], is_error), (&similar, false));
    assert!(search.describe(&["x"], |_| true).1);
}

#[test]
fn clients_with_the_same_permitted_tools_share_one_index() {
    let search = tool_search();
    for _ in 0..2 {
        found(&search, "file", |_| true);
        found(&search, "file", |name| name != "fs.read");
        found(&search, "page", |name| name != "fs.read");
    }
    assert_eq!(search.indexes.lock().unwrap().len(), 2);
}

#[test]
fn the_number_of_indexes_has_a_limit() {
    let tools: Vec<ListItem> =
        (0..=MAX_INDEXES).map(|number| item((&format!("t{number}"), "x"))).collect();
    let search = ToolSearch { tools, indexes: Mutex::default() };
    for number in 0..=MAX_INDEXES {
        let name = format!("t{number}");
        assert_eq!(found(&search, "x", |tool| tool == name)["tools"][0]["name"], *name);
        let indexes = search.indexes.lock().unwrap().len();
        assert_eq!(indexes, (number + 1).min(MAX_INDEXES));
    }
    assert_eq!(found(&search, "x", |tool| tool == "t0")["tools"][0]["name"], "t0");
}

#[test]
fn a_description_leaves_out_definitions_above_its_size() {
    let large = |name: &str, bytes: usize| {
        let mut tool = item((name, ""));
        let padding = bytes - tool.text.len();
        tool.text = tool.text.replace("\"big\":", &format!("\"big\":{}", " ".repeat(padding)));
        assert_eq!(tool.text.len(), bytes);
        tool
    };
    let described = |sizes: [usize; 2]| {
        let tools = vec![large("a", sizes[0]), large("b", sizes[1])];
        let search = ToolSearch { tools, indexes: Mutex::default() };
        let text = search.describe(&["a", "b"], |_| true).0;
        let described: Value = serde_json::from_str(&text).unwrap();
        (described["tools"].as_array().unwrap().len(), described["leftOutNames"].clone())
    };
    let half = MAX_DESCRIPTION_BYTES / 2;
    assert_eq!(described([half, half]), (2, Value::Null));
    assert_eq!(described([half, half + 1]), (1, json!(["b"])));
    assert_eq!(described([MAX_DESCRIPTION_BYTES + 1, half]), (1, json!(["b"])), "the first fits");
}
