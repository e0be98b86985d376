//! Arguments that do not fit are refused with every fault, and the server never sees them.

use innkeeper_host::error::ArgumentProblem;
use innkeeper_host::{CallError, ErrorClass, Host};
use proptest::collection::{hash_map, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::setup::{Log, Scene, text};

/// What is wrong with the arguments of a call that must be refused for them.
async fn problems(host: &Host, tool: &str, arguments: Value) -> Vec<ArgumentProblem> {
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
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
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
    assert_eq!(scene.journal().count("tools/call"), 0);
    host.call_tool("one.echo", json!({"message": "fits"})).await.unwrap();
    assert_eq!(scene.journal().count("tools/call"), 1);
    host.shutdown().await;
}

/// Proves: FR4.6
#[tokio::test]
async fn every_failing_place_is_listed_by_its_pointer() {
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
    let scene = Scene::new();
    let tools = json!([{"name": "many", "inputSchema": schema}]).to_string();
    let host = scene.start([scene.fx("one").with("--tools", tools)]).await.unwrap();
    let arguments = json!({
        "count": "three", "who": {"age": -1, "na/me": 5}, "list": ["red", "blue", 3], "extra": 1,
    });
    let problems = problems(&host, "one.many", arguments).await;
    let mut pointers: Vec<&str> = problems.iter().map(|found| found.pointer.as_str()).collect();
    pointers.sort_unstable();
    let expected =
        ["", "", "/count", "/extra", "/list/1", "/list/2", "/who", "/who/age", "/who/na~1me"];
    assert_eq!(pointers, expected, "{problems:#?}");
    for missing in ["first", "second", "id", "extra"] {
        let named = problems.iter().any(|found| found.message.contains(missing));
        assert!(named, "`{missing}` is not named: {problems:#?}");
    }
    assert_eq!(scene.journal().count("tools/call"), 0);
    host.shutdown().await;
}

/// Any JSON value whose numbers every reader understands alike.
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
    let scene = Scene::new();
    let tools = json!([{"name": "mirror", "inputSchema": {"type": "object"}}]).to_string();
    let host = scene.start([scene.fx("one").with("--tools", tools)]).await.unwrap();
    let mut runner = TestRunner::default();
    for _ in 0..200 {
        let given = any_json().new_tree(&mut runner).unwrap().current();
        let arguments = json!({"given": given});
        let result = host.call_tool("one.mirror", arguments.clone()).await.unwrap();
        let seen: Value = serde_json::from_str(&text(&result)).unwrap();
        assert_eq!(seen["arguments"], arguments);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn arguments_are_an_object_even_where_the_schema_allows_anything() {
    let scene = Scene::new();
    let tools = json!([{"name": "any", "inputSchema": {}}]).to_string();
    let host = scene.start([scene.fx("one").with("--tools", tools)]).await.unwrap();
    for arguments in [json!([1]), json!("text"), json!(7), json!(true)] {
        let problems = problems(&host, "one.any", arguments).await;
        assert_eq!((problems.len(), problems[0].pointer.as_str()), (1, ""), "{problems:?}");
    }
    assert_eq!(scene.journal().count("tools/call"), 0);
    host.call_tool("one.any", json!({"anything": [1]})).await.unwrap();
    host.shutdown().await;
}

/// Proves: TR10.6, TR10.5
#[tokio::test]
async fn denied_arguments_are_not_sent_and_the_refusal_is_in_the_log_as_a_security_event() {
    let scene = Scene::new();
    let log = Log::capture();
    let rules = json!({"denyArguments": {"ech*": ["*secret*"]}});
    let host = scene.start([scene.fx("one").key("tools", rules)]).await.unwrap();
    let refused =
        problems(&host, "one.echo", json!({"message": "the Secret and the secret"})).await;
    assert_eq!(refused[0].to_string(), "`/message`: `tools.denyArguments` has `*secret*`");
    assert_eq!(scene.journal().count("tools/call"), 0);
    let lines = log.of("arguments refused");
    assert_eq!((lines.len(), &lines[0]["security"]), (1, &json!(true)));
    assert_eq!((&lines[0]["tool"], &lines[0]["why"]), (&json!("echo"), &json!("*secret*")));
    assert!(!lines[0].to_string().contains("the Secret"), "the arguments are in the log");
    host.call_tool("one.echo", json!({"message": "rm -rf /"})).await.unwrap();
    host.shutdown().await;
}
