//! Responses of callbacks, declared capabilities, and routing of responses to servers.

use std::sync::{Arc, Mutex};

use innkeeper_host::{
    Callback, CallbackCapabilities, CallbackError, CallbackFuture, Host, ServerRequest,
    to_callback_result,
};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::{
    ELICITATION, ROOTS, SAMPLING, ServerTransport, StartedServers, TRANSPORTS, as_callback,
    callback_responses, declared_capabilities, echo_response, sampling_result,
};
use crate::setup::TestEnv;

/// Proves: N18, FR5.1, FR5.4
#[tokio::test]
async fn every_kind_of_request_reaches_the_callback_and_its_response_the_server_over_every_transport()
 {
    for transport in TRANSPORTS {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").switch("--ask-roots").switch("--ask-sampling");
        let started = StartedServers::start(transport, [server.switch("--ask-elicit")]).await;
        let callback = |request: ServerRequest| async move { Ok(echo_response(&request)) };
        let host = started.start_host(&test_env, &CallbackCapabilities::all(), callback).await;
        let responses = callback_responses(&host, "a").await;
        let mut methods: Vec<&Value> =
            responses.iter().map(|response| &response["method"]).collect();
        methods.sort_by_key(|method| method.to_string());
        assert_eq!(
            methods,
            [&json!(ELICITATION), &json!(ROOTS), &json!(SAMPLING)],
            "{transport:?}"
        );
        for response in &responses {
            assert_eq!(response["result"]["of"], "a", "{transport:?}: {response}");
            assert_eq!(
                response["result"]["method"], response["method"],
                "{transport:?}: {response}"
            );
        }
        let sampling = responses.iter().find(|response| response["method"] == SAMPLING).unwrap();
        let question = &sampling["result"]["params"]["messages"][0]["content"]["text"];
        assert_eq!(question, "a asks: which colour?");
        let capabilities = json!({"sampling": {}, "elicitation": {}, "roots": {}});
        assert_eq!(declared_capabilities(&test_env, "a"), capabilities, "{transport:?}");
        host.shutdown().await;
    }
}

/// Proves: FR5.3
#[tokio::test]
async fn without_a_callback_nothing_is_declared_and_a_question_is_refused() {
    for transport in TRANSPORTS {
        let test_env = TestEnv::new();
        let started =
            StartedServers::start(transport, [test_env.fixture("a").switch("--ask-sampling")])
                .await;
        let host = started.start_host_without_callback(&test_env).await;
        let responses = callback_responses(&host, "a").await;
        assert_eq!(responses[0]["error"]["code"], -32601, "{transport:?}: {responses:?}");
        assert!(responses[0].get("result").is_none());
        assert_eq!(declared_capabilities(&test_env, "a"), json!({}), "{transport:?}");
        host.shutdown().await;
    }
}

/// Proves: FR5.3
#[tokio::test]
async fn only_the_kinds_that_are_answered_are_declared_and_the_others_are_refused() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").switch("--ask-roots").switch("--ask-sampling");
    let started = StartedServers::start(ServerTransport::Stdio, [server]).await;
    let callback = |_| async { Ok(json!({"roots": []})) };
    let host = started.start_host(&test_env, &CallbackCapabilities::roots(), callback).await;
    let responses = callback_responses(&host, "a").await;
    let response_to =
        |method: &str| responses.iter().find(|response| response["method"] == method).unwrap();
    assert_eq!(response_to(ROOTS)["result"], json!({"roots": []}));
    assert_eq!(response_to(SAMPLING)["error"]["code"], -32601);
    assert_eq!(declared_capabilities(&test_env, "a"), json!({"roots": {}}));
    host.shutdown().await;
}

#[tokio::test]
async fn a_refusal_reaches_the_server_with_its_code_and_message() {
    for transport in TRANSPORTS {
        let test_env = TestEnv::new();
        let started =
            StartedServers::start(transport, [test_env.fixture("a").switch("--ask-sampling")])
                .await;
        let callback = |_| async { Err(CallbackError::new(-1, "the user \"said\" no")) };
        let host = started.start_host(&test_env, &CallbackCapabilities::sampling(), callback).await;
        let expected = json!({"code": -1, "message": "the user \"said\" no"});
        assert_eq!(callback_responses(&host, "a").await[0]["error"], expected, "{transport:?}");
        host.shutdown().await;
    }
}

/// Proves: FR5.5
#[tokio::test]
async fn two_servers_that_ask_at_once_with_the_same_id_each_get_their_own_answer() {
    for transport in TRANSPORTS {
        let test_env = TestEnv::new();
        let asking_fixture = |name| test_env.fixture(name).switch("--ask-sampling");
        let started =
            StartedServers::start(transport, [asking_fixture("a"), asking_fixture("b")]).await;
        // The callback responds only after both servers have sent their requests.
        let both = Arc::new(Barrier::new(2));
        let callback = move |request: ServerRequest| {
            let both = both.clone();
            async move {
                both.wait().await;
                Ok(echo_response(&request))
            }
        };
        let host = started.start_host(&test_env, &CallbackCapabilities::sampling(), callback).await;
        let (a, b) = tokio::join!(callback_responses(&host, "a"), callback_responses(&host, "b"));
        for (name, responses) in [("a", a), ("b", b)] {
            assert_eq!(responses[0]["result"]["of"], name, "{transport:?}");
            let text =
                responses[0]["result"]["params"]["messages"][0]["content"]["text"].to_string();
            assert!(text.contains(&format!("{name} asks")), "{transport:?}: {text}");
            let count = test_env.journal().for_server(name).responses().len();
            assert_eq!(count, 1, "{transport:?}: {name} got somebody else's answer");
        }
        let ids: Vec<Value> =
            test_env.journal().responses().iter().map(|response| response["id"].clone()).collect();
        assert_eq!(ids, [json!(1), json!(1)], "the ids were the same");
        host.shutdown().await;
    }
}

/// Proves: FR5.5
#[tokio::test]
async fn a_question_with_the_id_of_its_call_is_answered_and_so_is_the_call() {
    for transport in TRANSPORTS {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").switch("--ask-sampling").switch("--same-request-id");
        let started = StartedServers::start(transport, [server]).await;
        let callback = |request: ServerRequest| async move { Ok(echo_response(&request)) };
        let host = started.start_host(&test_env, &CallbackCapabilities::sampling(), callback).await;
        assert_eq!(callback_responses(&host, "a").await[0]["result"]["of"], "a", "{transport:?}");
        host.shutdown().await;
    }
}

/// Proves: FR5.2
#[tokio::test]
async fn a_callback_of_one_server_goes_before_that_of_all_and_both_can_be_taken_away() {
    let test_env = TestEnv::new();
    let asking_fixture = |name| test_env.fixture(name).switch("--ask-sampling");
    let started =
        StartedServers::start(ServerTransport::Stdio, [asking_fixture("a"), asking_fixture("b")])
            .await;
    let all = |_| async { Ok(json!({"by": "all"})) };
    let host = started.start_host(&test_env, &CallbackCapabilities::sampling(), all).await;
    let own = as_callback(|_: ServerRequest| async { Ok(json!({"by": "a's own"})) });
    host.set_callback(&CallbackCapabilities::sampling().for_server("a"), own.as_ref());
    assert_eq!(callback_responses(&host, "a").await[0]["result"]["by"], "a's own");
    assert_eq!(callback_responses(&host, "b").await[0]["result"]["by"], "all");
    host.set_callback(&CallbackCapabilities::sampling().for_server("a"), None);
    assert_eq!(callback_responses(&host, "a").await[0]["result"]["by"], "all");
    host.set_callback(&CallbackCapabilities::sampling(), None);
    for name in ["a", "b"] {
        assert_eq!(callback_responses(&host, name).await[0]["error"]["code"], -32601);
    }
    host.shutdown().await;
}

/// A callback with a value of its own.
struct Named(&'static str);

impl Callback for Named {
    fn respond(&self, _: ServerRequest) -> CallbackFuture {
        let result = to_callback_result(&sampling_result(self.0));
        Box::pin(async { result })
    }
}

async fn respond_later(_: ServerRequest) -> Result<Value, CallbackError> {
    tokio::task::yield_now().await;
    Ok(sampling_result("function"))
}

/// Proves: FR5.2
#[tokio::test]
async fn functions_closures_and_objects_are_callbacks_before_and_after_the_start() {
    let at_once = |_: ServerRequest| std::future::ready(Ok(sampling_result("closure")));
    let kinds = || {
        [
            ("function", as_callback(respond_later)),
            ("closure", as_callback(at_once)),
            ("object", as_callback(Named("object"))),
        ]
    };
    let sampling = CallbackCapabilities::sampling();
    let test_envs = [TestEnv::new(), TestEnv::new(), TestEnv::new()];
    let server = |at: usize| {
        let server = test_envs[at].fixture("a").switch("--ask-sampling");
        StartedServers::start(ServerTransport::Stdio, [server])
    };
    let hosts = [
        server(0).await.start_host(&test_envs[0], &sampling, respond_later).await,
        server(1).await.start_host(&test_envs[1], &sampling, at_once).await,
        server(2).await.start_host(&test_envs[2], &sampling, Named("object")).await,
    ];
    for (host, (kind, _)) in hosts.into_iter().zip(kinds()) {
        let text = async |host: &Host| {
            callback_responses(host, "a").await[0]["result"]["content"]["text"].clone()
        };
        assert_eq!(text(&host).await, kind, "before the start");
        for (other, callback) in kinds() {
            host.set_callback(&sampling, callback.as_ref());
            assert_eq!(text(&host).await, other, "after the start");
        }
        host.set_callback(&sampling, None);
        assert_eq!(callback_responses(&host, "a").await[0]["error"]["code"], -32601);
        host.shutdown().await;
    }
}

/// Proves: FR5.2
#[tokio::test]
async fn a_callback_set_after_the_start_answers_what_is_asked_all_the_same() {
    let test_env = TestEnv::new();
    let started =
        StartedServers::start(ServerTransport::Http, [test_env.fixture("a").switch("--ask-roots")])
            .await;
    let host = started.start_host_without_callback(&test_env).await;
    assert_eq!(callback_responses(&host, "a").await[0]["error"]["code"], -32601);
    let requests = Arc::new(Mutex::new(Vec::new()));
    let callback = {
        let requests = requests.clone();
        move |request: ServerRequest| {
            requests.lock().unwrap().push(request.method.to_string());
            async { Ok(json!({"roots": []})) }
        }
    };
    host.set_callback(&CallbackCapabilities::all(), as_callback(callback).as_ref());
    assert_eq!(callback_responses(&host, "a").await[0]["result"], json!({"roots": []}));
    assert_eq!(*requests.lock().unwrap(), [ROOTS]);
    host.shutdown().await;
}

#[tokio::test]
async fn a_question_before_the_handshake_is_over_is_answered() {
    let test_env = TestEnv::new();
    let started = StartedServers::start(
        ServerTransport::Stdio,
        [test_env.fixture("a").switch("--early-request")],
    )
    .await;
    let callback = |request: ServerRequest| async move { Ok(echo_response(&request)) };
    let host = started.start_host(&test_env, &CallbackCapabilities::roots(), callback).await;
    let journal = test_env.wait_for_journal(|journal| !journal.responses().is_empty()).await;
    assert_eq!(journal.responses()[0]["result"]["method"], ROOTS);
    host.shutdown().await;
}

/// Proves: TR4.6
#[tokio::test]
async fn a_callback_that_panics_is_an_error_for_the_server_and_nobody_elses_problem() {
    for transport in TRANSPORTS {
        let test_env = TestEnv::new();
        let servers = [test_env.fixture("a").switch("--ask-sampling"), test_env.fixture("b")];
        let started = StartedServers::start(transport, servers).await;
        let at_once = |_: ServerRequest| -> std::future::Ready<Result<Value, CallbackError>> {
            panic!("at once, as this test wants it")
        };
        let host = started.start_host(&test_env, &CallbackCapabilities::sampling(), at_once).await;
        assert_eq!(
            callback_responses(&host, "a").await[0]["error"]["code"],
            -32603,
            "{transport:?}"
        );
        let later = |_: ServerRequest| async {
            tokio::task::yield_now().await;
            panic!("later, as this test wants it")
        };
        host.set_callback(&CallbackCapabilities::sampling(), as_callback(later).as_ref());
        assert_eq!(
            callback_responses(&host, "a").await[0]["error"]["code"],
            -32603,
            "{transport:?}"
        );
        host.set_callback(
            &CallbackCapabilities::sampling(),
            as_callback(|_| async { Ok(json!({"is": "well"})) }).as_ref(),
        );
        assert_eq!(
            callback_responses(&host, "a").await[0]["result"]["is"],
            "well",
            "{transport:?}"
        );
        host.call_tool("b.pid", ()).await.unwrap();
        host.shutdown().await;
    }
}
