//! Requests that race the end of their session, and hosts that end at the same time.

use std::time::Duration;

use innkeeper_host::Environment;
use innkeeper_testkit::{
    Fixture, ProcessTag, fixture, mcp_json, tagged_processes, wait_gone_async,
};
use tokio::time::timeout;

use super::*;
use crate::gateway::{Gateway, GatewayBuilder};
use crate::options::GatewayOptions;
use crate::sink::MessageSink;

const LIMIT: Duration = Duration::from_secs(20);

/// A gateway with one server for each session.
async fn gateway(server: Fixture, max_processes: usize) -> Gateway {
    let file = mcp_json([server.config_key("share", "session")]);
    let directory = std::env::temp_dir();
    let environment = Environment::from_process();
    let config = Config::from_value(&file, "mcp.json", &directory, &environment).unwrap();
    let options = GatewayOptions { max_processes, ..GatewayOptions::default() };
    let builder = GatewayBuilder::new(options).servers(&config);
    let builder = builder.private_servers(&config, |builder| builder);
    let shared = Host::builder(config.shared_by(Share::Process)).start().await.unwrap();
    builder.build(shared)
}

fn client() -> Arc<Client> {
    Arc::new(Client::new(Principal::new("ada"), 0, MessageSink::None))
}

/// Attack: remote | a request is still under way when its session has ended | the request starts no
/// servers that nothing would end | No orphan
#[tokio::test]
async fn a_request_after_the_end_of_its_session_starts_no_servers() {
    let tag = ProcessTag::new();
    let Gateway(gateway) = gateway(fixture("n").process_tag(&tag), 8).await;
    let client = client();
    let used = gateway.view(&client.principal, Some(&client), 0).await.unwrap();
    assert_eq!(tagged_processes(&tag).len(), 1);
    gateway.end_client(&client);
    drop(used);
    let refused = gateway.view(&client.principal, Some(&client), 0).await.unwrap_err();
    assert_eq!(refused.message, "the session has ended");
    wait_gone_async(&tag, LIMIT).await.unwrap();
}

#[tokio::test]
async fn several_requests_wait_for_one_host_that_ends() {
    let tag = ProcessTag::new();
    let Gateway(gateway) = gateway(fixture("n").process_tag(&tag), 1).await;
    let first = client();
    drop(gateway.view(&first.principal, Some(&first), 0).await.unwrap());
    gateway.end_client(&first);
    assert_eq!(lock(&gateway.sharing.ending).len(), 1, "the first host ends while others wait");
    let (second, third) = (client(), client());
    let waiting = timeout(LIMIT, async {
        tokio::join!(
            gateway.view(&second.principal, Some(&second), 0),
            gateway.view(&third.principal, Some(&third), 0),
        )
    });
    let (second, third) = waiting.await.unwrap();
    let outcomes = [second.is_ok(), third.is_ok()];
    assert!(outcomes == [true, false] || outcomes == [false, true], "{outcomes:?}");
    assert_eq!(tagged_processes(&tag).len(), 1);
    gateway.shut_down_private_hosts().await;
    wait_gone_async(&tag, LIMIT).await.unwrap();
}

#[tokio::test]
async fn a_shutdown_waits_for_the_hosts_that_end_and_starts_no_further_one() {
    let tag = ProcessTag::new();
    let Gateway(gateway) = gateway(fixture("n").process_tag(&tag), 8).await;
    let (ending, late) = (client(), client());
    drop(gateway.view(&ending.principal, Some(&ending), 0).await.unwrap());
    gateway.end_client(&ending);
    assert_eq!(timeout(LIMIT, gateway.shut_down_private_hosts()).await.unwrap().len(), 1);
    let refused = gateway.view(&late.principal, Some(&late), 0).await.unwrap_err();
    assert_eq!(refused.message, "the gateway is closing");
    wait_gone_async(&tag, LIMIT).await.unwrap();
}

#[tokio::test]
async fn a_shutdown_ends_the_hosts_that_start() {
    let tag = ProcessTag::new();
    let server = fixture("n").process_tag(&tag).switch("--hang-init");
    let Gateway(gateway) = gateway(server.config_key("initTimeout", 3_600), 8).await;
    let client = client();
    let starting = gateway.view(&client.principal, Some(&client), 0);
    let shutting_down = async {
        while tagged_processes(&tag).is_empty() {
            tokio::task::yield_now().await;
        }
        gateway.shut_down_private_hosts().await
    };
    let both = timeout(LIMIT, async { tokio::join!(starting, shutting_down) });
    let (refused, reports) = both.await.unwrap();
    assert_eq!(refused.unwrap_err().message, "the gateway is closing");
    assert!(reports.is_empty(), "{reports:?}");
    wait_gone_async(&tag, LIMIT).await.unwrap();
}
