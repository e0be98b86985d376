//! The calls that requests of servers belong to, and the callbacks of calls, over real transports.

use std::sync::{Arc, Mutex};

use innkeeper_host::{
    CallOptions, CallReference, Callback, CallbackCapabilities, RemoteClient, ServerRequest,
};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};
use tokio::time::timeout;

use super::{ServerTransport, StartedServers, TRANSPORTS, as_callback, sampling_result};
use crate::setup::{TEST_TIMEOUT, TestEnv, result_text};

/// Returns a callback that records the requests of servers, and the recorded requests.
fn recording_callback() -> (impl Callback, Arc<Mutex<Vec<ServerRequest>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let recorded = requests.clone();
    let callback = move |request: ServerRequest| {
        recorded.lock().unwrap().push(request);
        async { Ok(sampling_result("by host")) }
    };
    (callback, requests)
}

fn tool(reference: &CallReference) -> Option<&str> {
    match reference {
        CallReference::Call { method, item, .. } => {
            assert_eq!(*method, "tools/call");
            Some(item)
        }
        CallReference::Unknown => None,
    }
}

#[tokio::test]
async fn over_every_transport_a_request_during_the_only_call_goes_to_the_callback_of_the_call() {
    for transport in TRANSPORTS {
        for era in ["legacy", "modern"] {
            if era == "modern" && transport == ServerTransport::Sse {
                continue;
            }
            let test_env = TestEnv::new();
            let server = test_env.fixture("a").with("--era", era).switch("--ask-sampling");
            let started = StartedServers::start(transport, [server]).await;
            let (host_callback, host_requests) = recording_callback();
            let capabilities = CallbackCapabilities::sampling();
            let host = started.start_host(&test_env, &capabilities, host_callback).await;
            let requests = Arc::new(Mutex::new(Vec::new()));
            let recorded = requests.clone();
            let callback = as_callback(move |request: ServerRequest| {
                recorded.lock().unwrap().push(request);
                async { Ok(sampling_result("by call")) }
            });
            let options = CallOptions { callback, ..CallOptions::default() };
            let result = host.call_tool_with("a.pid", json!({}), options).await.unwrap();
            let text = result_text(&result);
            assert!(text.contains("by call"), "{transport:?} {era}: {text}");
            {
                let requests = requests.lock().unwrap();
                assert_eq!(tool(&requests[0].call), Some("pid"), "{transport:?} {era}");
                assert!(host_requests.lock().unwrap().is_empty(), "{transport:?} {era}");
            }
            let text = result_text(&host.call_tool("a.pid", ()).await.unwrap());
            assert!(text.contains("by host"), "{transport:?} {era}: {text}");
            let reference = host_requests.lock().unwrap()[0].call.clone();
            assert_eq!(tool(&reference), Some("pid"), "{transport:?} {era}");
            host.shutdown().await;
        }
    }
}

#[tokio::test]
async fn two_calls_at_once_over_http_each_receive_their_own_request() {
    assert_each_receives_its_request("--ask-sampling", sampling_result, |_| None).await;
}

/// A user reads one elicitation at a time, but another user reads another.
#[tokio::test]
async fn an_open_elicitation_of_one_principal_does_not_delay_that_of_another() {
    let accept = |by: &str| json!({"action": "accept", "content": {"by": by}});
    assert_each_receives_its_request("--ask-elicit", accept, |tool| Some(tool.into())).await;
}

/// Makes two calls at once, each with a callback that responds only after the server has sent the
/// requests of both calls.
async fn assert_each_receives_its_request(
    switch: &str,
    response: fn(&str) -> Value,
    principal: fn(&str) -> Option<Arc<str>>,
) {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").switch(switch).config_key("maxConcurrent", 2);
    let started = StartedServers::start(ServerTransport::Http, [server]).await;
    let (host_callback, host_requests) = recording_callback();
    let capabilities = CallbackCapabilities::all();
    let host = started.start_host(&test_env, &capabilities, host_callback).await;
    let both = Arc::new(Barrier::new(2));
    // The test server sends a request on the stream of its most recent call, so the second call
    // starts after the request of the first call.
    let asked = Arc::new(Notify::new());
    let options = |tool_name: &'static str| {
        let (both, asked) = (both.clone(), asked.clone());
        let callback = as_callback(move |request: ServerRequest| {
            let both = both.clone();
            asked.notify_one();
            async move {
                assert_eq!(tool(&request.call), Some(tool_name));
                both.wait().await;
                Ok(response(&format!("by {tool_name}")))
            }
        });
        let client = RemoteClient { principal: principal(tool_name), ..RemoteClient::default() };
        CallOptions { callback, client, ..CallOptions::default() }
    };
    let calls = async {
        tokio::try_join!(host.call_tool_with("a.pid", json!({}), options("pid")), async {
            asked.notified().await;
            host.call_tool_with("a.echo", json!({"message": "x"}), options("echo")).await
        },)
    };
    let (pid, echo) = timeout(TEST_TIMEOUT, calls).await.unwrap().unwrap();
    for (result, expected) in [(pid, "by pid"), (echo, "by echo")] {
        let text = result_text(&result);
        assert!(text.contains(expected), "{text}");
    }
    assert!(host_requests.lock().unwrap().is_empty());
    host.shutdown().await;
}
