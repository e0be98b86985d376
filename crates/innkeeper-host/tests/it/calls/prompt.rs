//! Prompts: routing by name, and arguments.

use innkeeper_host::{CallError, CallOptions, ErrorClass, Host};
use serde_json::{Map, Value, json};

use super::{error_class, routing_error};
use crate::setup::TestEnv;

async fn get(host: &Host, name: &str, arguments: &Value) -> Result<Value, CallError> {
    let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
    let raw = host.get_prompt(name, &arguments, CallOptions::default()).await?;
    Ok(serde_json::from_str(raw.get()).unwrap())
}

/// Proves: FR4.8
#[tokio::test]
async fn of_two_prompts_of_one_name_the_named_servers_is_got_with_its_arguments() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    let arguments = json!({"name": "Ada", "style": "warmly"});
    for name in ["one", "two"] {
        let prompt = get(&host, &format!("{name}.greet"), &arguments).await.unwrap();
        let text = &prompt["messages"][0]["content"]["text"];
        assert_eq!(*text, format!("{name}: greet Ada, warmly"));
        let journal = test_env.journal().for_server(name);
        let sent = json!({"name": "greet", "arguments": arguments});
        assert_eq!(journal.params("prompts/get"), [&sent]);
    }
    get(&host, "two.plain", &json!({})).await.unwrap();
    // Many servers refuse a request without `arguments`.
    let sent = json!({"name": "plain", "arguments": {}});
    assert_eq!(*test_env.journal().params("prompts/get")[2], sent);
    host.shutdown().await;
}

/// Proves: FR4.8
#[tokio::test]
async fn a_missing_required_argument_and_one_that_is_no_text_are_refused_unsent() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let error = get(&host, "one.greet", &json!({"style": 5})).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Validation);
    let CallError::Validation { item, problems } = error else { panic!("{error}") };
    assert_eq!(&*item, "one.greet");
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].message.contains("`name`"), "{problems:?}");
    assert_eq!(problems[1].pointer, "/style");
    let odd = get(&host, "one.greet", &json!({"name": "Ada", "a/b~c": {}})).await.unwrap_err();
    let CallError::Validation { problems, .. } = odd else { panic!("{odd}") };
    assert_eq!(problems[0].pointer, "/a~1b~0c");
    assert_eq!(test_env.journal().count("prompts/get"), 0);
    host.shutdown().await;
}

/// Proves: N17
#[tokio::test]
async fn an_unknown_prompt_is_a_routing_error() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    for (name, message) in [
        ("one.geet", "server `one` has no prompt `geet`; did you mean `one.greet`?"),
        ("one.echo", "server `one` has no prompt `echo`"),
        ("none.greet", "no server for `none.greet`; did you mean `one.greet`?"),
        ("greet", "`greet` exists on several servers: one.greet; two.greet"),
    ] {
        assert_eq!(routing_error(get(&host, name, &json!({})).await).to_string(), message);
    }
    assert_eq!(test_env.journal().count("prompts/get"), 0);
    host.shutdown().await;
}

#[tokio::test]
async fn a_refusal_of_the_server_comes_as_it_said_it() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").switch("--list-changed")]).await.unwrap();
    let mut events = host.events();
    host.call_tool("one.shrink", json!({"what": "prompts"})).await.unwrap();
    // Until the catalog is refreshed, only the server knows that the prompt was removed.
    let first = get(&host, "one.plain", &json!({})).await;
    assert!(
        matches!(&first, Err(CallError::Server { error, .. }) if error.code == -32602)
            || matches!(&first, Err(CallError::Routing(_))),
        "{first:?}"
    );
    crate::setup::wait_for_event(&mut events, |event| {
        matches!(event, innkeeper_host::HostEvent::CatalogChanged { .. })
    })
    .await;
    assert_eq!(error_class(get(&host, "one.plain", &json!({})).await), ErrorClass::Routing);
    host.shutdown().await;
}
