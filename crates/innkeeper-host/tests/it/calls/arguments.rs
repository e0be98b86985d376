//! Rejected arguments: every problem is reported, and the server receives no request.

use innkeeper_host::error::Violation;
use innkeeper_host::{CallError, ErrorClass, Host};
use proptest::collection::{hash_map, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::setup::{LogCapture, TestEnv, result_text};

/// Returns the problems of rejected arguments.
async fn argument_problems(host: &Host, tool: &str, arguments: Value) -> Vec<Violation> {
    match host.call_tool(tool, arguments).await {
        Err(CallError::Validation { item, problems }) => {
            assert_eq!(&*item, tool);
            problems
        }
        other => panic!("not refused: {other:?}"),
    }
}

/// Proves: N16, TR6.3
#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_server() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    for (tool, arguments) in [
        ("one.echo", json!({})),
        ("one.echo", json!({"message": 7})),
        ("one.echo", json!(["hello"])),
        ("one.echo", json!("hello")),
        ("one.add", json!({"a": 1})),
        ("one.sleep", json!({"ms": -1})),
    ] {
        let error = host.call_tool(tool, arguments.clone()).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Validation, "{tool} {arguments}");
        assert!(error.to_string().contains(tool), "{error}");
    }
    assert_eq!(test_env.journal().count("tools/call"), 0);
    host.call_tool("one.echo", json!({"message": "fits"})).await.unwrap();
    assert_eq!(test_env.journal().count("tools/call"), 1);
    host.shutdown().await;
}

/// Proves: FR4.6
#[tokio::test]
async fn every_invalid_value_is_listed_by_its_pointer() {
    let schema = json!({
        "type": "object",
        "properties": {
            "count": {"type": "integer"},
            "who": {
                "type": "object",
                "properties": {"age": {"type": "integer", "minimum": 0}, "na/me": {"type": "string"}},
                "required": ["id"],
            },
            "list": {"type": "array", "items": {"$ref": "#/$defs/colour"}},
        },
        "required": ["first", "second"],
        "additionalProperties": false,
        "$defs": {"colour": {"enum": ["red", "green"]}},
    });
    let test_env = TestEnv::new();
    let tools = json!([{"name": "many", "inputSchema": schema}]).to_string();
    let host = test_env.start([test_env.fixture("one").with("--tools", tools)]).await.unwrap();
    let arguments = json!({
        "count": "three", "who": {"age": -1, "na/me": 5}, "list": ["red", "blue", 3], "extra": 1,
    });
    let problems = argument_problems(&host, "one.many", arguments).await;
    let mut pointers: Vec<&str> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
    pointers.sort_unstable();
    let expected =
        ["", "", "/count", "/extra", "/list/1", "/list/2", "/who", "/who/age", "/who/na~1me"];
    assert_eq!(pointers, expected, "{problems:#?}");
    for missing in ["first", "second", "id", "extra"] {
        let is_named = problems.iter().any(|problem| problem.message.contains(missing));
        assert!(is_named, "`{missing}` is not named: {problems:#?}");
    }
    assert_eq!(test_env.journal().count("tools/call"), 0);
    host.shutdown().await;
}

/// Any JSON value whose numbers have the same value in every JSON parser.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            hash_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Proves: TR5.1
#[tokio::test]
async fn any_arguments_reach_the_server_and_come_back_as_they_were() {
    let test_env = TestEnv::new();
    let tools = json!([{"name": "mirror", "inputSchema": {"type": "object"}}]).to_string();
    let host = test_env.start([test_env.fixture("one").with("--tools", tools)]).await.unwrap();
    let mut runner = TestRunner::default();
    for _ in 0..200 {
        let input = any_json().new_tree(&mut runner).unwrap().current();
        let arguments = json!({"given": input});
        let result = host.call_tool("one.mirror", arguments.clone()).await.unwrap();
        let received: Value = serde_json::from_str(&result_text(&result)).unwrap();
        assert_eq!(received["arguments"], arguments);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn arguments_are_an_object_even_where_the_schema_allows_anything() {
    let test_env = TestEnv::new();
    let tools = json!([{"name": "any", "inputSchema": {}}]).to_string();
    let host = test_env.start([test_env.fixture("one").with("--tools", tools)]).await.unwrap();
    for arguments in [json!([1]), json!("text"), json!(7), json!(true)] {
        let problems = argument_problems(&host, "one.any", arguments).await;
        assert_eq!((problems.len(), problems[0].pointer.as_str()), (1, ""), "{problems:?}");
    }
    assert_eq!(test_env.journal().count("tools/call"), 0);
    host.call_tool("one.any", json!({"anything": [1]})).await.unwrap();
    host.shutdown().await;
}

/// Proves: TR10.6, TR10.5
#[tokio::test]
async fn denied_arguments_are_not_sent_and_the_refusal_is_in_the_log_as_a_security_event() {
    let test_env = TestEnv::new();
    let log = LogCapture::capture();
    let rules = json!({"denyArguments": {"ech*": ["*secret*"]}});
    let host = test_env.start([test_env.fixture("one").config_key("tools", rules)]).await.unwrap();
    let problems =
        argument_problems(&host, "one.echo", json!({"message": "the Secret and the secret"})).await;
    assert_eq!(
        problems[0].to_string(),
        "`/message`: denied by `*secret*` in `tools.denyArguments`"
    );
    assert_eq!(test_env.journal().count("tools/call"), 0);
    let lines = log.with_message("arguments rejected");
    assert_eq!((lines.len(), &lines[0]["security"]), (1, &json!(true)));
    assert_eq!((&lines[0]["tool"], &lines[0]["why"]), (&json!("echo"), &json!("*secret*")));
    assert!(!lines[0].to_string().contains("the Secret"), "the arguments are in the log");
    host.call_tool("one.echo", json!({"message": "rm -rf /"})).await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn a_schema_that_does_not_compile_is_a_warning_and_its_tool_stays_callable() {
    let test_env = TestEnv::new();
    let log = LogCapture::capture();
    let schema = json!({"properties": {"a": {"type": "text"}}});
    let tools = json!([{"name": "odd", "inputSchema": schema}]).to_string();
    let host = test_env.start([test_env.fixture("one").with("--tools", tools)]).await.unwrap();
    for _ in 0..2 {
        host.call_tool("one.odd", json!({"a": 1})).await.unwrap();
    }
    let lines = log.with_message("unusable input schema");
    assert_eq!((lines.len(), &lines[0]["tool"]), (1, &json!("odd")));
    let reason = host.catalog().unchecked_arguments_reason("one.odd").unwrap();
    assert!(reason.contains("`/properties/a/type`"), "{reason}");
    host.shutdown().await;
}
