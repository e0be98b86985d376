//! Who answers, what is declared, and that each server gets its own answer.

use std::sync::{Arc, Mutex};

use innkeeper_host::{Answers, Refusal, ServerRequest};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::{ELICITATION, ROOTS, Reached, SAMPLING, WAYS, Way, declared, echoed, heard, shared};
use crate::setup::Scene;

/// Proves: N18, FR5.1, FR5.4
#[tokio::test]
async fn every_kind_of_question_reaches_the_callback_and_its_answer_the_server_over_every_way() {
    for way in WAYS {
        let scene = Scene::new();
        let server = scene.fx("a").switch("--ask-roots").switch("--ask-sampling");
        let reached = Reached::by(way, [server.switch("--ask-elicit")]).await;
        let callback = |request: ServerRequest| async move { Ok(echoed(&request)) };
        let host = reached.host(&scene, &Answers::everything(), callback).await;
        let heard = heard(&host, "a").await;
        let mut of: Vec<&Value> = heard.iter().map(|answer| &answer["method"]).collect();
        of.sort_by_key(|method| method.to_string());
        assert_eq!(of, [&json!(ELICITATION), &json!(ROOTS), &json!(SAMPLING)], "{way:?}");
        for answer in &heard {
            assert_eq!(answer["result"]["of"], "a", "{way:?}: {answer}");
            assert_eq!(answer["result"]["method"], answer["method"], "{way:?}: {answer}");
        }
        let asked = heard.iter().find(|answer| answer["method"] == SAMPLING).unwrap();
        let question = &asked["result"]["params"]["messages"][0]["content"]["text"];
        assert_eq!(question, "a asks: which colour?");
        let able = json!({"sampling": {}, "elicitation": {}, "roots": {}});
        assert_eq!(declared(&scene, "a"), able, "{way:?}");
        host.shutdown().await;
    }
}

/// Proves: FR5.3
#[tokio::test]
async fn without_a_callback_nothing_is_declared_and_a_question_is_refused() {
    for way in WAYS {
        let scene = Scene::new();
        let reached = Reached::by(way, [scene.fx("a").switch("--ask-sampling")]).await;
        let host = reached.host_alone(&scene).await;
        let heard = heard(&host, "a").await;
        assert_eq!(heard[0]["error"]["code"], -32601, "{way:?}: {heard:?}");
        assert!(heard[0].get("result").is_none());
        assert_eq!(declared(&scene, "a"), json!({}), "{way:?}");
        host.shutdown().await;
    }
}

/// Proves: FR5.3
#[tokio::test]
async fn only_the_kinds_that_are_answered_are_declared_and_the_others_are_refused() {
    let scene = Scene::new();
    let server = scene.fx("a").switch("--ask-roots").switch("--ask-sampling");
    let reached = Reached::by(Way::Pipe, [server]).await;
    let callback = |_| async { Ok(json!({"roots": []})) };
    let host = reached.host(&scene, &Answers::roots(), callback).await;
    let heard = heard(&host, "a").await;
    let of = |method: &str| heard.iter().find(|answer| answer["method"] == method).unwrap();
    assert_eq!(of(ROOTS)["result"], json!({"roots": []}));
    assert_eq!(of(SAMPLING)["error"]["code"], -32601);
    assert_eq!(declared(&scene, "a"), json!({"roots": {}}));
    host.shutdown().await;
}

#[tokio::test]
async fn a_refusal_reaches_the_server_with_its_code_and_message() {
    for way in WAYS {
        let scene = Scene::new();
        let reached = Reached::by(way, [scene.fx("a").switch("--ask-sampling")]).await;
        let callback = |_| async { Err(Refusal::new(-1, "the user \"said\" no")) };
        let host = reached.host(&scene, &Answers::sampling(), callback).await;
        let expected = json!({"code": -1, "message": "the user \"said\" no"});
        assert_eq!(heard(&host, "a").await[0]["error"], expected, "{way:?}");
        host.shutdown().await;
    }
}

/// Proves: FR5.5
#[tokio::test]
async fn two_servers_that_ask_at_once_with_the_same_id_each_get_their_own_answer() {
    for way in WAYS {
        let scene = Scene::new();
        let asking = |name| scene.fx(name).switch("--ask-sampling");
        let reached = Reached::by(way, [asking("a"), asking("b")]).await;
        // Nobody is answered before both have asked.
        let both = Arc::new(Barrier::new(2));
        let callback = move |request: ServerRequest| {
            let both = both.clone();
            async move {
                both.wait().await;
                Ok(echoed(&request))
            }
        };
        let host = reached.host(&scene, &Answers::sampling(), callback).await;
        let (a, b) = tokio::join!(heard(&host, "a"), heard(&host, "b"));
        for (name, heard) in [("a", a), ("b", b)] {
            assert_eq!(heard[0]["result"]["of"], name, "{way:?}");
            let text = heard[0]["result"]["params"]["messages"][0]["content"]["text"].to_string();
            assert!(text.contains(&format!("{name} asks")), "{way:?}: {text}");
            let answers = scene.journal().of(name).responses().len();
            assert_eq!(answers, 1, "{way:?}: {name} got somebody else's answer");
        }
        let ids: Vec<Value> =
            scene.journal().responses().iter().map(|answer| answer["id"].clone()).collect();
        assert_eq!(ids, [json!(1), json!(1)], "the ids were the same");
        host.shutdown().await;
    }
}

/// Proves: FR5.5
#[tokio::test]
async fn a_question_with_the_id_of_its_call_is_answered_and_so_is_the_call() {
    for way in WAYS {
        let scene = Scene::new();
        let server = scene.fx("a").switch("--ask-sampling").switch("--same-request-id");
        let reached = Reached::by(way, [server]).await;
        let callback = |request: ServerRequest| async move { Ok(echoed(&request)) };
        let host = reached.host(&scene, &Answers::sampling(), callback).await;
        assert_eq!(heard(&host, "a").await[0]["result"]["of"], "a", "{way:?}");
        host.shutdown().await;
    }
}

/// Proves: FR5.2
#[tokio::test]
async fn a_callback_of_one_server_goes_before_that_of_all_and_both_can_be_taken_away() {
    let scene = Scene::new();
    let asking = |name| scene.fx(name).switch("--ask-sampling");
    let reached = Reached::by(Way::Pipe, [asking("a"), asking("b")]).await;
    let all = |_| async { Ok(json!("all")) };
    let host = reached.host(&scene, &Answers::sampling(), all).await;
    let own = shared(|_: ServerRequest| async { Ok(json!("a's own")) });
    host.set_callback(&Answers::sampling().of("a"), own.as_ref());
    assert_eq!(heard(&host, "a").await[0]["result"], "a's own");
    assert_eq!(heard(&host, "b").await[0]["result"], "all");
    host.set_callback(&Answers::sampling().of("a"), None);
    assert_eq!(heard(&host, "a").await[0]["result"], "all");
    host.set_callback(&Answers::sampling(), None);
    for name in ["a", "b"] {
        assert_eq!(heard(&host, name).await[0]["error"]["code"], -32601);
    }
    host.shutdown().await;
}

/// Proves: FR5.2
#[tokio::test]
async fn a_callback_set_after_the_start_answers_what_is_asked_all_the_same() {
    let scene = Scene::new();
    let reached = Reached::by(Way::Http, [scene.fx("a").switch("--ask-roots")]).await;
    let host = reached.host_alone(&scene).await;
    assert_eq!(heard(&host, "a").await[0]["error"]["code"], -32601);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let callback = {
        let seen = seen.clone();
        move |request: ServerRequest| {
            seen.lock().unwrap().push(request.method.to_string());
            async { Ok(json!({"roots": []})) }
        }
    };
    host.set_callback(&Answers::everything(), shared(callback).as_ref());
    assert_eq!(heard(&host, "a").await[0]["result"], json!({"roots": []}));
    assert_eq!(*seen.lock().unwrap(), [ROOTS]);
    host.shutdown().await;
}

#[tokio::test]
async fn a_question_before_the_handshake_is_over_is_answered() {
    let scene = Scene::new();
    let reached = Reached::by(Way::Pipe, [scene.fx("a").switch("--early-request")]).await;
    let callback = |request: ServerRequest| async move { Ok(echoed(&request)) };
    let host = reached.host(&scene, &Answers::roots(), callback).await;
    let journal = scene.journal_until(|journal| !journal.responses().is_empty()).await;
    assert_eq!(journal.responses()[0]["result"]["method"], ROOTS);
    host.shutdown().await;
}

/// Proves: TR4.6
#[tokio::test]
async fn a_callback_that_panics_is_an_error_for_the_server_and_nobody_elses_problem() {
    for way in WAYS {
        let scene = Scene::new();
        let servers = [scene.fx("a").switch("--ask-sampling"), scene.fx("b")];
        let reached = Reached::by(way, servers).await;
        let at_once = |_: ServerRequest| -> std::future::Ready<Result<Value, Refusal>> {
            panic!("at once, as this test wants it")
        };
        let host = reached.host(&scene, &Answers::sampling(), at_once).await;
        assert_eq!(heard(&host, "a").await[0]["error"]["code"], -32603, "{way:?}");
        let later = |_: ServerRequest| async {
            tokio::task::yield_now().await;
            panic!("later, as this test wants it")
        };
        host.set_callback(&Answers::sampling(), shared(later).as_ref());
        assert_eq!(heard(&host, "a").await[0]["error"]["code"], -32603, "{way:?}");
        host.set_callback(&Answers::sampling(), shared(|_| async { Ok(json!("well")) }).as_ref());
        assert_eq!(heard(&host, "a").await[0]["result"], "well", "{way:?}");
        host.call_tool("b.pid", ()).await.unwrap();
        host.shutdown().await;
    }
}
