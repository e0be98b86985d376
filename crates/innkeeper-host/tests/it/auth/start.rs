//! Who waits for a person who signs in while servers start.

use std::time::Duration;

use innkeeper_host::config::Config;
use innkeeper_testkit::{Remote, fx};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::inn::{Inn, Rules};
use super::{Browser, call};
use crate::setup::{PATIENCE, Scene, builder};

/// Servers that have a second to start, each and together.
fn hasty(scene: &Scene, servers: &Value) -> Config {
    let mut config = scene.config_of(&json!({"host": {"initTimeout": 1}, "servers": servers}));
    config.host.start_timeout = Duration::from_secs(1);
    config
}

#[tokio::test]
async fn those_that_depend_on_a_server_wait_until_somebody_has_signed_in_there() {
    let inn = Inn::open(Rules::default()).await;
    let web = Remote::of(fx("web").with("--era", "legacy")).start().await;
    let scene = Scene::new();
    let servers = json!({
        "inn": {"url": inn.url()},
        "web": {"url": web.url(), "dependencies": ["inn"], "initTimeout": 20},
    });
    let browser = Browser { takes: Duration::from_secs(2), ..Browser::default() };
    let host = builder(hasty(&scene, &servers)).user_agent(browser.clone()).start().await.unwrap();
    assert_eq!(browser.visits(), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn an_optional_server_holds_up_no_start_and_is_there_once_somebody_has_signed_in() {
    let inn = Inn::open(Rules::default()).await;
    let scene = Scene::new();
    let servers = json!({"inn": {"url": inn.url(), "required": false}});
    let browser = Browser { takes: Duration::from_secs(4), ..Browser::default() };
    let began = Instant::now();
    let host = builder(hasty(&scene, &servers)).user_agent(browser.clone()).start().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let status = format!("{:?}", host.status());
    assert!(status.contains("nobody signed in within 1 s; try again"), "{status}");
    while host.restart_server("inn").await.is_err() {
        assert!(began.elapsed() < PATIENCE);
    }
    call(&host).await.unwrap();
    assert_eq!(browser.visits(), 1, "it went on meanwhile");
    host.shutdown().await;
}

#[tokio::test]
async fn a_restart_ends_when_it_was_promised_to_though_somebody_is_signing_in() {
    let inn = Inn::open(Rules::default()).await;
    let scene = Scene::new();
    let servers = json!({"inn": {"url": inn.url()}});
    let browser = Browser { takes: Duration::from_secs(5), ..Browser::default() };
    let host = builder(hasty(&scene, &servers)).user_agent(browser.clone()).start().await.unwrap();
    inn.revoke();
    let began = Instant::now();
    let error = host.restart_server("inn").await.unwrap_err().to_string();
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(error.contains("nobody signed in within 1 s; try again"), "{error}");
    host.shutdown().await;
}
