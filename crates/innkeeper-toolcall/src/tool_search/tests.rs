//! Tests of the search for tools.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::tool::Tool;

fn index(tools: &[(&str, &str, Value)]) -> ToolIndex {
    let tool = |(name, description, schema): &(&str, &str, Value)| {
        Tool::new(*name, *description, schema.clone())
    };
    ToolIndex::new(&tools.iter().map(tool).collect())
}

fn named_tools(names: &[&str]) -> ToolIndex {
    index(&names.iter().map(|name| (*name, "", json!({}))).collect::<Vec<_>>())
}

#[test]
fn a_tool_is_found_by_its_name_its_description_and_its_parameters() {
    let schema = json!({"properties": {"postcode": {"description": "Of the destination", "enum": ["Graz"]}}});
    let index = index(&[
        ("mail.sendParcel", "Ships goods.", schema),
        ("clock.now", "Returns the time.", json!({})),
    ]);
    for query in ["parcel", "send parcels", "shipping", "the postcode", "destination?", "GRAZ"] {
        assert_eq!(index.search(query, 5), ["mail.sendParcel"], "{query}");
    }
    for query in ["", "the", "unrelated", "?!"] {
        assert!(index.search(query, 5).is_empty(), "{query}");
    }
}

#[test]
fn a_word_of_the_name_counts_more_than_a_word_of_the_description() {
    let index = index(&[
        ("a.list", "Lists invoices of the last year.", json!({})),
        ("b.invoices", "Lists the last year.", json!({})),
    ]);
    assert_eq!(index.search("invoices", 5), ["b.invoices", "a.list"]);
}

#[test]
fn a_rare_word_counts_more_than_a_frequent_word() {
    let index = named_tools(&["file.read", "file.write", "file.move", "file.checksum"]);
    assert_eq!(index.search("file checksum", 1), ["file.checksum"]);
}

#[test]
fn words_are_found_with_and_without_a_space_between_them() {
    let index = named_tools(&["to_do.add", "timesheet.add", "GitHub.add"]);
    for (query, name) in
        [("todo", "to_do.add"), ("time sheet", "timesheet.add"), ("github", "GitHub.add")]
    {
        assert_eq!(index.search(query, 1), [name], "{query}");
    }
}

#[test]
fn a_tool_whose_whole_name_is_in_the_query_comes_first() {
    let index = named_tools(&["rename.disk.label", "rename.disk", "other"]);
    let scores = |bonus: f64| Score { sum: 2.0, name_share: bonus }.total();
    assert!(scores(1.0) > scores(0.5) && scores(2.0) == scores(1.0));
    assert_eq!(index.search("rename disk", 1), ["rename.disk"]);
}

#[test]
fn a_repeated_word_of_the_query_counts_more_than_another_word() {
    let index = named_tools(&["alpha.x", "beta.x"]);
    assert_eq!(index.search("alpha beta", 1), ["alpha.x"]);
    assert_eq!(index.search("alpha beta, beta", 1), ["beta.x"]);
}

#[test]
fn tools_with_equal_scores_are_in_listed_order() {
    let index = named_tools(&["z.read", "q.read", "b.read"]);
    assert_eq!(index.search("read", 5), ["z.read", "q.read", "b.read"]);
}

#[test]
fn tools_in_each_script_are_found() {
    let index = index(&[
        ("a", "東京の天気を調べる", json!({})),
        ("b", "прогноз погоды", json!({})),
        ("c", "मौसम की जानकारी", json!({})),
        ("d", "พยากรณ์อากาศ", json!({})),
    ]);
    for (query, name) in [("天気", "a"), ("погоды", "b"), ("मौसम", "c"), ("อากาศ", "d")]
    {
        assert_eq!(index.search(query, 5), [name], "{query}");
    }
}

#[test]
fn a_search_returns_at_most_the_limit_and_at_most_a_hundred_tools() {
    let names: Vec<String> = (0..MAX_SEARCH_RESULTS + 1).map(|at| format!("read.t{at}")).collect();
    let index = named_tools(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(index.search("read", 0).len(), 0);
    assert_eq!(index.search("read", 7).len(), 7);
    assert_eq!(index.search("read", MAX_SEARCH_RESULTS).len(), MAX_SEARCH_RESULTS);
    assert_eq!(index.search("read", usize::MAX).len(), MAX_SEARCH_RESULTS);
}

#[test]
fn the_end_of_a_long_query_is_ignored() {
    let index = named_tools(&["read"]);
    let query = |spaces| format!("{}read", " ".repeat(spaces));
    assert_eq!(index.search(&query(MAX_QUERY_BYTES - 4), 5), ["read"]);
    assert!(index.search(&query(MAX_QUERY_BYTES), 5).is_empty());
    let words = |count| (0..count).map(|at| format!("w{at} ")).collect::<String>() + "read";
    assert_eq!(index.search(&words(MAX_QUERY_TERMS - 1), 5), ["read"]);
    assert!(index.search(&words(MAX_QUERY_TERMS), 5).is_empty());
    assert_eq!(index.search(&format!("{}read", "w ".repeat(MAX_QUERY_TERMS)), 5), ["read"]);
}

#[test]
fn the_text_of_one_tool_has_the_same_share_as_that_of_each_other_tool() {
    let long_text = "x".repeat(MAX_TOOL_BYTES - 5);
    let index = index(&[("a", &format!("{long_text} late"), json!({})), ("b", "late", json!({}))]);
    assert_eq!(index.search("late", 5), ["b", "a"]);
    let longer_text = format!("{long_text}xxxxx late");
    let cut = super::tests::index(&[("a", &longer_text, json!({})), ("b", "late", json!({}))]);
    assert_eq!(cut.search("late", 5), ["b"]);
}

#[test]
fn an_empty_list_has_no_results() {
    assert!(ToolIndex::default().search("read", 5).is_empty());
    assert!(named_tools(&[]).search("read", 5).is_empty());
}

fn any_tool() -> impl Strategy<Value = Tool> {
    let schema = ("\\PC*", any::<String>(), any::<String>()).prop_map(|(name, title, value)| {
        json!({"type": "object", "properties": {name: {"title": title, "enum": [value, 1]}}})
    });
    let schema = prop_oneof![schema, any::<String>().prop_map(Value::from), Just(Value::Null)];
    ("[ab]{0,2}|\\PC{0,9}", any::<String>(), schema)
        .prop_map(|(name, description, schema)| Tool::new(name, description, schema))
}

proptest! {
    /// Attack: model | any query, and any names, descriptions and schemas of servers | the results
    /// are different names of the list | No unbounded wait
    #[test]
    fn any_search_gives_different_names_of_the_list(
        tools in prop::collection::vec(any_tool(), 0..20),
        query in any::<String>(),
        limit in 0_usize..30,
    ) {
        let tools: Tools = tools.into_iter().collect();
        let index = ToolIndex::new(&tools);
        let texts = tools.iter().flat_map(|tool| [tool.name.clone(), tool.description.clone()]);
        for query in texts.chain([query]) {
            let found = index.search(&query, limit);
            prop_assert!(found.len() <= limit);
            prop_assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
            prop_assert!(found.iter().all(|name| tools.get(name).is_some()));
            prop_assert_eq!(index.search(&query, limit), found);
        }
    }
}
