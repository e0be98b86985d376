//! Headers that a program prints (`headersHelper`).

use std::os::unix::fs::PermissionsExt;

use innkeeper_testkit::{Fault, RecordedRequest, RemoteServer};
use serde_json::{Value, json};

use super::oauth_server::{CANARY, OauthServerOptions, OauthTestServer};
use super::{builder_for, call, start_error};
use crate::setup::{LogCapture, TEST_TIMEOUT, TestEnv, builder};

/// Writes a program that records each run in `runs`, prints a secret to stderr and runs the shell
/// code `then`.
fn write_helper(test_env: &TestEnv, then: &str) -> String {
    let path = test_env.path("helper");
    let runs = test_env.path("runs");
    let text = format!(
        "#!/bin/sh\necho \"$INNKEEPER_SERVER $1\" >> '{}'\necho {CANARY} >&2\n{then}\n",
        runs.display()
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path.to_string_lossy().into_owned()
}

fn recorded_runs(test_env: &TestEnv) -> Vec<String> {
    let runs = std::fs::read_to_string(test_env.path("runs")).unwrap_or_default();
    runs.lines().map(str::to_owned).collect()
}

fn helper_config(program: &str) -> Value {
    json!({"headersHelper": [program, "a b"]})
}

#[tokio::test]
async fn a_program_gives_the_headers_at_the_start_and_again_when_they_are_refused() {
    let log = LogCapture::capture();
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let test_env = TestEnv::new();
    let token = test_env.path("token");
    let give = |name: &str| {
        let own_token = format!("{CANARY}-{name}");
        std::fs::write(&token, &own_token).unwrap();
        oauth_server.accept_only(&own_token);
    };
    let print =
        format!("printf '{{\"Authorization\": \"Bearer %s\"}}' \"$(cat '{}')\"", token.display());
    let program = write_helper(&test_env, &print);
    give("first");
    let host = builder_for(&test_env, &oauth_server.url(), &helper_config(&program))
        .start()
        .await
        .unwrap();
    call(&host).await.unwrap();
    assert_eq!(recorded_runs(&test_env), ["inn a b"]);
    give("second");
    let calls: Vec<_> = (0..5).map(|_| call(&host)).collect();
    for result in futures_util::future::join_all(calls).await {
        result.unwrap();
    }
    assert_eq!(recorded_runs(&test_env).len(), 2, "those that are refused together run it once");
    oauth_server.revoke();
    let error = call(&host).await.unwrap_err();
    let error = format!("{error} {error:?}");
    assert!(error.contains("status: 401"), "{error}");
    assert_eq!(recorded_runs(&test_env).len(), 3, "what is refused twice is not asked for again");
    let shown = format!("{error} {host:?} {:?} {}", host.status(), json!(log.lines()));
    assert!(!shown.contains(CANARY), "{shown}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_program_that_fails_once_is_run_again_for_the_stream_of_the_servers_own() {
    let test_env = TestEnv::new();
    let runs_of = test_env.path("runs");
    let print = format!(
        "[ $(wc -l < '{}') = 2 ] && exit 3\nprintf '{{\"Authorization\": \"Bearer x\"}}'",
        runs_of.display()
    );
    let program = write_helper(&test_env, &print);
    let unauthorized = Fault::status(401).on_http_method("GET").only_nth(1);
    let remote =
        RemoteServer::for_fixture(test_env.fixture("web")).fault(unauthorized).start().await;
    let mut entry = remote.config_entry();
    entry["headersHelper"] = helper_config(&program)["headersHelper"].clone();
    let host =
        builder(test_env.config_from(&json!({"servers": {"web": entry}}))).start().await.unwrap();
    let open = |requests: &[RecordedRequest]| {
        requests.iter().any(|request| request.method == "GET" && request.status == Some(200))
    };
    remote.wait_for(TEST_TIMEOUT, open).await;
    assert_eq!(recorded_runs(&test_env).len(), 2, "it failed for the first one that was asked for");
    host.shutdown().await;
}

/// Attack: secrets | a `headersHelper` fails, prints invalid output or prints without end | the
/// error does not contain the output, and nothing is sent | Secrets do not print
#[tokio::test]
async fn a_program_that_fails_or_prints_reserved_headers_is_reported_without_its_output() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    for (then, expected) in [
        ("exit 3", "`headersHelper` failed: ended with exit code 3"),
        ("echo canary-7c1e", "`headersHelper` failed: the output is not a JSON object of strings"),
        ("printf '{\"Host\": \"canary-7c1e\"}'", "the header `host` is reserved"),
        ("yes canary-7c1e", "`headersHelper` failed: the output exceeds 65536 bytes"),
    ] {
        let test_env = TestEnv::new();
        let program = write_helper(&test_env, then);
        let error = start_error(
            builder_for(&test_env, &oauth_server.url(), &helper_config(&program)).start().await,
        );
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains(CANARY), "{error}");
        assert_eq!(recorded_runs(&test_env).len(), 1, "{error}");
    }
    assert!(oauth_server.requests("refused").is_empty(), "nothing was sent");
    let test_env = TestEnv::new();
    let error = start_error(
        builder_for(&test_env, &oauth_server.url(), &helper_config("/no/such/program"))
            .start()
            .await,
    );
    assert!(error.contains("headersHelper"), "{error}");
}
