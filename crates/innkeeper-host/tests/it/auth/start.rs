//! Server starts that wait for a user to sign in.

use std::time::Duration;

use innkeeper_host::config::Config;
use innkeeper_testkit::{RemoteServer, fixture};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::oauth_server::{OauthServerOptions, OauthTestServer};
use super::{ScriptedBrowser, call};
use crate::setup::{TEST_TIMEOUT, TestEnv, builder};

/// A configuration with one second for each server to start, and one second for all servers
/// together.
fn short_start_config(test_env: &TestEnv, servers: &Value) -> Config {
    let mut config = test_env.config_from(&json!({"host": {"initTimeout": 1}, "servers": servers}));
    config.host.start_timeout = Duration::from_secs(1);
    config
}

#[tokio::test]
async fn those_that_depend_on_a_server_wait_until_somebody_has_signed_in_there() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let web = RemoteServer::for_fixture(fixture("web").with("--era", "legacy")).start().await;
    let test_env = TestEnv::new();
    let servers = json!({
        "inn": {"url": oauth_server.url()},
        "web": {"url": web.url(), "dependencies": ["inn"], "initTimeout": 20},
    });
    let browser = ScriptedBrowser { delay: Duration::from_secs(2), ..ScriptedBrowser::default() };
    let host = builder(short_start_config(&test_env, &servers))
        .user_agent(browser.clone())
        .start()
        .await
        .unwrap();
    assert_eq!(browser.visit_count(), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn an_optional_server_holds_up_no_start_and_is_there_once_somebody_has_signed_in() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let test_env = TestEnv::new();
    let servers = json!({"inn": {"url": oauth_server.url(), "required": false}});
    let browser = ScriptedBrowser { delay: Duration::from_secs(4), ..ScriptedBrowser::default() };
    let started_at = Instant::now();
    let host = builder(short_start_config(&test_env, &servers))
        .user_agent(browser.clone())
        .start()
        .await
        .unwrap();
    assert!(started_at.elapsed() < Duration::from_secs(3), "{:?}", started_at.elapsed());
    let status = format!("{:?}", host.status());
    assert!(status.contains("no sign-in within 1 s; try again"), "{status}");
    while host.restart_server("inn").await.is_err() {
        assert!(started_at.elapsed() < TEST_TIMEOUT);
    }
    call(&host).await.unwrap();
    assert_eq!(browser.visit_count(), 1, "it went on meanwhile");
    host.shutdown().await;
}

#[tokio::test]
async fn a_restart_ends_when_it_was_promised_to_though_somebody_is_signing_in() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let test_env = TestEnv::new();
    let servers = json!({"inn": {"url": oauth_server.url()}});
    let browser = ScriptedBrowser { delay: Duration::from_secs(5), ..ScriptedBrowser::default() };
    let host = builder(short_start_config(&test_env, &servers))
        .user_agent(browser.clone())
        .start()
        .await
        .unwrap();
    oauth_server.revoke();
    let started_at = Instant::now();
    let error = host.restart_server("inn").await.unwrap_err().to_string();
    assert!(started_at.elapsed() < Duration::from_secs(4), "{:?}", started_at.elapsed());
    assert!(error.contains("no sign-in within 1 s; try again"), "{error}");
    host.shutdown().await;
}
