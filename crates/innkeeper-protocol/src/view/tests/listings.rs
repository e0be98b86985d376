//! Tests of lists, their items and server information.

use super::raw;
use crate::view::{
    InitializeResult, ListCapability, MAX_PAGE_ITEMS, Page, Prompt, Resource, ResourceTemplate,
    ResourcesCapability, ServerCapabilities, TaskSupport, TasksCapability, Tool, ToolAnnotations,
};

#[test]
fn a_tool_is_read_in_full() {
    let tool = Tool::from_raw(&raw(
        r#"{"name":"rm","title":"Remove","description":"cut \ud83d off","inputSchema":{"type":"object","x":1e999},
            "outputSchema":{"type":"object"},"annotations":{"title":"T","readOnlyHint":false,
            "destructiveHint":true,"idempotentHint":true,"openWorldHint":false},"vendor":{"x":1}}"#,
    ))
    .unwrap();
    assert_eq!((tool.name.as_str(), tool.title.as_deref()), ("rm", Some("Remove")));
    assert!(tool.description.unwrap().starts_with("cut \u{FFFD}"));
    assert_eq!(tool.input_schema.get(), r#"{"type":"object","x":1e999}"#);
    assert_eq!(tool.output_schema.unwrap().get(), r#"{"type":"object"}"#);
    let hints = ToolAnnotations {
        title: Some("T".to_owned()),
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(true),
        open_world_hint: Some(false),
    };
    assert_eq!(tool.annotations, hints);
}

#[test]
fn a_tool_says_whether_its_calls_become_tasks() {
    let support = |execution: &str| {
        let json = format!(r#"{{"name":"x","inputSchema":{{}},"execution":{execution}}}"#);
        Tool::from_raw(&raw(&json)).unwrap().task_support
    };
    assert_eq!(support(r#"{"taskSupport":"required"}"#), TaskSupport::Required);
    assert_eq!(support(r#"{"taskSupport":"optional"}"#), TaskSupport::Optional);
    for forbidden in [r#"{"taskSupport":"forbidden"}"#, r#"{"taskSupport":"x"}"#, "{}", "5", "null"]
    {
        assert_eq!(support(forbidden), TaskSupport::Forbidden, "{forbidden}");
    }
}

#[test]
fn a_server_says_whether_calls_may_become_tasks_and_be_cancelled_as_such() {
    let read = |tasks: &str| parse_capabilities(&format!(r#"{{"tasks":{tasks}}}"#)).tasks;
    let all = read(r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#);
    assert_eq!(all, TasksCapability { call: true, cancel: true });
    let call = read(r#"{"requests":{"tools":{"call":{"x":1}}},"cancel":null}"#);
    assert_eq!(call, TasksCapability { call: true, cancel: false });
    for none in
        ["{}", "5", "null", r#"{"requests":[]}"#, r#"{"requests":{"tools":{"call":false}}}"#]
    {
        assert_eq!(read(none), TasksCapability::default(), "{none}");
    }
}

#[test]
fn optional_parts_of_the_wrong_type_count_as_absent() {
    let tool = Tool::from_raw(&raw(
        r#"{"name":"x","title":1,"description":null,"inputSchema":{},"outputSchema":[],
            "annotations":{"readOnlyHint":"yes","idempotentHint":true}}"#,
    ))
    .unwrap();
    assert!(tool.title.is_none() && tool.description.is_none() && tool.output_schema.is_none());
    assert_eq!(tool.annotations.read_only_hint, None);
    assert_eq!(tool.annotations.idempotent_hint, Some(true));
    let odd = raw(r#"{"name":"x","inputSchema":{},"annotations":"none"}"#);
    assert_eq!(Tool::from_raw(&odd).unwrap().annotations, ToolAnnotations::default());
}

/// Proves: FR7.5
#[test]
fn a_required_part_that_is_missing_or_wrong_is_an_error_that_says_where() {
    let message = |json: &str| Tool::from_raw(&raw(json)).unwrap_err().to_string();
    assert_eq!(message("[]"), "expected an object, found an array");
    assert_eq!(message(r#"{"inputSchema":{}}"#), "expected a string at `/name`, found nothing");
    assert_eq!(
        message(r#"{"name":7,"inputSchema":{}}"#),
        "expected a string at `/name`, found a number"
    );
    let schema = message(r#"{"name":"x","inputSchema":true}"#);
    assert_eq!(schema, "expected an object at `/inputSchema`, found a boolean");
    assert!(Prompt::from_raw(&raw(r#"{"name":null}"#)).is_err());
    assert!(Resource::from_raw(&raw(r#"{"uri":"x"}"#)).is_err());
    assert!(ResourceTemplate::from_raw(&raw(r#"{"name":"x","uriTemplate":{}}"#)).is_err());
}

#[test]
fn a_prompt_keeps_the_arguments_that_have_a_name() {
    let prompt = Prompt::from_raw(&raw(
        r#"{"name":"p","arguments":[{"name":"a","required":true},{"name":"b","required":1},{},5]}"#,
    ))
    .unwrap();
    let arguments: Vec<_> = prompt
        .arguments
        .iter()
        .map(|argument| (argument.name.as_str(), argument.required))
        .collect();
    assert_eq!(arguments, [("a", true), ("b", false)]);
    assert!(Prompt::from_raw(&raw(r#"{"name":"p","arguments":{}}"#)).unwrap().arguments.is_empty());
}

#[test]
fn resources_and_templates_are_read_in_full() {
    let resource = Resource::from_raw(&raw(
        r#"{"uri":"file:///a","name":"a","title":"A","description":"d","mimeType":"text/plain","size":12.0}"#,
    ))
    .unwrap();
    assert_eq!((resource.uri.as_str(), resource.name.as_str()), ("file:///a", "a"));
    assert_eq!((resource.mime_type.as_deref(), resource.size), (Some("text/plain"), Some(12)));
    let template =
        ResourceTemplate::from_raw(&raw(r#"{"uriTemplate":"file:///{name}","name":"t"}"#)).unwrap();
    assert!(template.matches("file:///a") && !template.matches("file:///a/b"));
}

#[test]
fn a_page_keeps_its_objects_as_they_were_sent() {
    let page =
        Page::from_raw(&raw(r#"{"tools":[{"name": "a" ,"n":1e999},5,null,[],{}],"x":1}"#), "tools")
            .unwrap();
    let items: Vec<_> = page.items.iter().map(|item| item.get()).collect();
    assert_eq!(items, [r#"{"name": "a" ,"n":1e999}"#, "{}"]);
    assert_eq!(page.left_out, 3);
    assert!(page.next_cursor.is_none());
}

#[test]
fn a_cursor_is_kept_as_it_was_sent_and_null_and_false_are_none() {
    let cursor = |sent: &str| {
        let page = raw(&format!(r#"{{"tools":[],"nextCursor":{sent}}}"#));
        let page = Page::from_raw(&page, "tools").unwrap();
        page.next_cursor.map(|cursor| cursor.get().to_owned())
    };
    for sent in [r#""""#, r#""a""#, "7", "0", r#"{"offset": 1}"#] {
        assert_eq!(cursor(sent).as_deref(), Some(sent));
    }
    assert_eq!([cursor("null"), cursor("false")], [None, None]);
}

/// Proves: FR7.5
#[test]
fn a_list_that_is_no_list_is_an_error() {
    let found = |json: &str| Page::from_raw(&raw(json), "tools").unwrap_err().found;
    assert_eq!(found(r#"{"tools":{}}"#), "an object");
    assert_eq!(found(r#"{"Tools":[]}"#), "nothing");
    assert_eq!(found("null"), "null");
}

#[test]
fn a_page_at_the_limit_is_kept_and_one_past_it_is_cut() {
    let page = |items: usize| {
        let json = format!(r#"{{"tools":[{}]}}"#, vec!["{}"; items].join(","));
        let page = Page::from_raw(&raw(&json), "tools").unwrap();
        (page.items.len(), page.left_out)
    };
    assert_eq!(page(MAX_PAGE_ITEMS), (MAX_PAGE_ITEMS, 0));
    assert_eq!(page(MAX_PAGE_ITEMS + 1), (MAX_PAGE_ITEMS, 1));
}

fn parse_capabilities(capabilities: &str) -> ServerCapabilities {
    let json = format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"instructions":"hi",
            "serverInfo":{{"name":"s","version":"1","title":"S","icons":[]}}}}"#
    );
    let result = InitializeResult::from_raw(&raw(&json)).unwrap();
    assert_eq!(result.protocol_version, "2025-11-25");
    assert_eq!(result.instructions.as_deref(), Some("hi"));
    assert_eq!(result.server_info.title.as_deref(), Some("S"));
    assert_eq!(
        result.server_info_raw.as_deref().map(|info| info.get()),
        Some(r#"{"name":"s","version":"1","title":"S","icons":[]}"#)
    );
    assert_eq!(result.capabilities.raw.get(), capabilities);
    result.capabilities
}

#[test]
fn capabilities_are_what_is_declared() {
    let all = parse_capabilities(
        r#"{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true,
            "listChanged":"yes"},"logging":{},"completions":{},"tasks":{}}"#,
    );
    assert_eq!(all.tools, Some(ListCapability { list_changed: true }));
    assert_eq!(all.prompts, Some(ListCapability { list_changed: false }));
    let resources = ResourcesCapability { subscribe: true, list_changed: false };
    assert_eq!(all.resources, Some(resources));
    assert!(all.logging && all.completions);
    let none = parse_capabilities(r#"{"tools":null,"prompts":false}"#);
    assert!(none.tools.is_none() && none.prompts.is_none() && none.resources.is_none());
    assert!(!none.logging && !none.completions);
    assert_eq!(ServerCapabilities::default().raw.get(), "{}");
}

/// Proves: FR7.5
#[test]
fn a_malformed_initialize_result_is_an_error_that_says_where() {
    let cases = [
        ("5", ""),
        (r#"{"capabilities":{},"serverInfo":{}}"#, "/protocolVersion"),
        (r#"{"protocolVersion":20251125,"capabilities":{}}"#, "/protocolVersion"),
    ];
    for (json, pointer) in cases {
        assert_eq!(InitializeResult::from_raw(&raw(json)).unwrap_err().pointer, pointer, "{json}");
    }
}

#[test]
fn an_initialize_result_without_its_informational_members_is_read() {
    for rest in [
        r#""capabilities":{"tools":{}}"#,
        r#""capabilities":{"tools":{}},"serverInfo":null"#,
        r#""capabilities":{"tools":{}},"serverInfo":{"name":"x","version":1.0}"#,
        r#""capabilities":[],"serverInfo":{"name":"x"}"#,
        r#""serverInfo":{"name":"x","version":null}"#,
        r#""instructions":{}"#,
    ] {
        let json = format!(r#"{{"protocolVersion":"2025-11-25",{rest}}}"#);
        let result = InitializeResult::from_raw(&raw(&json)).unwrap();
        assert!(result.capabilities.tools.is_some(), "{json}");
        assert_eq!((result.server_info.version, result.instructions), (None, None), "{json}");
    }
}
