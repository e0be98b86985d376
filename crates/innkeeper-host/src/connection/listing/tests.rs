//! Tests of listings: their comparison, and the errors of one list.

use serde_json::{Value, json};

use super::*;
use crate::error::UnavailableReason;

fn definitions<V>(
    items: Value,
    view: impl Fn(&RawValue) -> Result<V, ViewError>,
) -> Vec<Definition<V>> {
    let items: Vec<Box<RawValue>> = serde_json::from_value(items).unwrap();
    let with_view = |raw: Box<RawValue>| Definition { view: view(&raw).unwrap(), raw: raw.into() };
    items.into_iter().map(with_view).collect()
}

/// Returns a listing with these items in its lists of tools, prompts, resources and templates.
fn listing(lists: [Value; 4]) -> ServerListing {
    let [tools, prompts, resources, templates] = lists;
    ServerListing {
        tools: definitions(tools, Tool::from_raw),
        prompts: definitions(prompts, Prompt::from_raw),
        resources: definitions(resources, Resource::from_raw),
        resource_templates: definitions(templates, ResourceTemplate::from_raw),
        missing: Vec::new(),
        unusable: Vec::new(),
    }
}

#[test]
fn listings_are_the_same_in_another_order_and_differ_by_one_byte_or_a_missing_list() {
    let item = |n: u8| {
        let uri = format!("x:{n}");
        json!({"name": format!("n{n}"), "uri": uri, "uriTemplate": uri, "inputSchema": {}})
    };
    let lists = || [(); 4].map(|()| json!([item(1), item(2)]));
    let before = listing(lists());
    assert!(before.has_same_items(&before));
    let reversed = [(); 4].map(|()| json!([item(2), item(1)]));
    assert!(before.has_same_items(&listing(reversed)));
    for list in 0..4 {
        for other in [json!([item(1), item(3)]), json!([item(1)]), json!([item(1), item(1)])] {
            let mut changed = lists();
            changed[list] = other;
            let after = listing(changed);
            assert!(!before.has_same_items(&after) && !after.has_same_items(&before), "{list}");
        }
    }
    let missing = vec![MissingList { list: method::PROMPTS_LIST, reason: "odd".to_owned() }];
    assert!(!before.has_same_items(&ServerListing { missing, ..listing(lists()) }));
}

#[test]
fn an_error_of_the_connection_affects_all_lists_and_an_error_of_a_response_one() {
    let (server, item) = (Arc::from("a"), Box::from(method::PROMPTS_LIST));
    let timeout = CallError::Timeout { server, item, timeout: Duration::ZERO, is_total: false };
    assert!(affects_one_list(&timeout));
    let (server, item) = (Arc::from("a"), Box::from(method::PROMPTS_LIST));
    let invalid = CallError::Protocol { server, item, source: ProtocolError::MissingResponse };
    assert!(affects_one_list(&invalid));
    let (server, reason) = (Arc::from("a"), UnavailableReason::ClosedOutput);
    let lost = CallError::Unavailable { server, reason, may_have_run: true, attempts: 1 };
    assert!(!affects_one_list(&lost));
}
