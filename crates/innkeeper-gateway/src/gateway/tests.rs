//! The end of a gateway that is one of several replicas.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use innkeeper_host::config::Secret;
use innkeeper_host::{Config, Environment, Host};
use innkeeper_testkit::{RedisServer, mcp_json};
use tokio::time::{sleep, timeout};

use super::*;
use crate::auth::Authenticator;
use crate::http_access::HttpAccess;
use crate::options::GatewayOptions;
use crate::origin::{OriginCheck, OriginSettings};
use crate::redis_client::RedisClient;
use crate::replicas::ReplicaOptions;
use crate::replicas::Replicas;

const LIMIT: Duration = Duration::from_secs(20);

/// The drop of the last user of a gateway ends its servers, so no task of the gateway may be one.
#[tokio::test]
async fn a_closed_gateway_is_dropped_with_its_last_user() {
    let redis = RedisServer::start(&[]);
    let client = Arc::new(RedisClient::new(&redis.url()).unwrap());
    let options = ReplicaOptions {
        url: "http://replica".to_owned(),
        secret: Secret::new("secret"),
        lease: Duration::from_secs(10),
        idle: Duration::from_secs(60),
    };
    let replicas = Replicas::join(client, options).await.unwrap();
    let environment = Environment::from_process();
    let directory = std::env::temp_dir();
    let config = Config::from_value(&mcp_json([]), "mcp.json", &directory, &environment).unwrap();
    let host = Host::builder(config).start().await.unwrap();
    let gateway = GatewayBuilder::new(GatewayOptions::default()).replicas(replicas).build(host);
    let origin = OriginCheck::new(IpAddr::V4(Ipv4Addr::LOCALHOST), OriginSettings::default());
    let router = gateway.router(HttpAccess { authenticator: Authenticator::local_user(), origin });
    let inner = Arc::downgrade(&gateway.state);
    gateway.close();
    // The task that hands the sessions over runs now.
    sleep(Duration::from_millis(50)).await;
    drop((gateway, router));
    let dropped = async {
        while inner.strong_count() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, dropped).await.unwrap();
}
