//! Headers that a program prints (`headersHelper`).

use std::os::unix::fs::PermissionsExt;

use innkeeper_testkit::{Fault, Remote, Seen};
use serde_json::{Value, json};

use super::inn::{CANARY, Inn, Rules};
use super::{at, call, why};
use crate::setup::{Log, PATIENCE, Scene, builder};

/// A program that notes each run in `runs`, complains with a secret, and does `then`.
fn program(scene: &Scene, then: &str) -> String {
    let path = scene.path("helper");
    let runs = scene.path("runs");
    let text = format!(
        "#!/bin/sh\necho \"$INNKEEPER_SERVER $1\" >> '{}'\necho {CANARY} >&2\n{then}\n",
        runs.display()
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path.to_string_lossy().into_owned()
}

fn runs(scene: &Scene) -> Vec<String> {
    let runs = std::fs::read_to_string(scene.path("runs")).unwrap_or_default();
    runs.lines().map(str::to_owned).collect()
}

fn keys(program: &str) -> Value {
    json!({"headersHelper": [program, "a b"]})
}

#[tokio::test]
async fn a_program_gives_the_headers_at_the_start_and_again_when_they_are_refused() {
    let log = Log::capture();
    let inn = Inn::open(Rules::default()).await;
    let scene = Scene::new();
    let token = scene.path("token");
    let give = |name: &str| {
        let given = format!("{CANARY}-{name}");
        std::fs::write(&token, &given).unwrap();
        inn.admit(&given);
    };
    let print =
        format!("printf '{{\"Authorization\": \"Bearer %s\"}}' \"$(cat '{}')\"", token.display());
    let program = program(&scene, &print);
    give("first");
    let host = at(&scene, &inn.url(), &keys(&program)).start().await.unwrap();
    call(&host).await.unwrap();
    assert_eq!(runs(&scene), ["inn a b"]);
    give("second");
    let calls: Vec<_> = (0..5).map(|_| call(&host)).collect();
    for called in futures_util::future::join_all(calls).await {
        called.unwrap();
    }
    assert_eq!(runs(&scene).len(), 2, "those that are refused together run it once");
    inn.revoke();
    let error = call(&host).await.unwrap_err();
    let error = format!("{error} {error:?}");
    assert!(error.contains("status: 401"), "{error}");
    assert_eq!(runs(&scene).len(), 3, "what is refused twice is not asked for again");
    let told = format!("{error} {host:?} {:?} {}", host.status(), json!(log.lines()));
    assert!(!told.contains(CANARY), "{told}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_program_that_fails_once_is_run_again_for_the_stream_of_the_servers_own() {
    let scene = Scene::new();
    let runs_of = scene.path("runs");
    let print = format!(
        "[ $(wc -l < '{}') = 2 ] && exit 3\nprintf '{{\"Authorization\": \"Bearer x\"}}'",
        runs_of.display()
    );
    let program = program(&scene, &print);
    let refused = Fault::status(401).on_http("GET").nth(1);
    let remote = Remote::of(scene.fx("web")).fault(refused).start().await;
    let mut entry = remote.entry();
    entry["headersHelper"] = keys(&program)["headersHelper"].clone();
    let host = builder(scene.config_of(&json!({"servers": {"web": entry}}))).start().await.unwrap();
    let open =
        |seen: &[Seen]| seen.iter().any(|seen| seen.method == "GET" && seen.status == Some(200));
    remote.until(PATIENCE, open).await;
    assert_eq!(runs(&scene).len(), 2, "it failed for the first one that was asked for");
    host.shutdown().await;
}

#[tokio::test]
async fn a_program_that_fails_or_prints_what_is_not_its_to_print_is_told_without_its_words() {
    let inn = Inn::open(Rules::default()).await;
    for (then, words) in [
        ("exit 3", "gave no headers: it ended with exit code 3"),
        ("echo canary-7c1e", "gave no headers: it did not print a JSON object of texts"),
        ("printf '{\"Host\": \"canary-7c1e\"}'", "the header `host` is not its to set"),
        ("yes canary-7c1e", "gave no headers: it printed more than 65536 bytes"),
    ] {
        let scene = Scene::new();
        let program = program(&scene, then);
        let error = why(at(&scene, &inn.url(), &keys(&program)).start().await);
        assert!(error.contains(words), "{error}");
        assert!(!error.contains(CANARY), "{error}");
        assert_eq!(runs(&scene).len(), 1, "{error}");
    }
    assert!(inn.seen("refused").is_empty(), "nothing was sent");
    let scene = Scene::new();
    let error = why(at(&scene, &inn.url(), &keys("/no/such/program")).start().await);
    assert!(error.contains("headersHelper"), "{error}");
}
