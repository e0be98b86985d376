//! Requests that race the end of their session, and hosts that end at the same time.

use std::time::Duration;

use innkeeper_host::{Config, Environment, Host};
use innkeeper_testkit::{
    Fixture, ProcessTag, fixture, mcp_json, tagged_processes, wait_gone_async,
};
use tokio::time::timeout;

use super::*;
use crate::bindings::{Bindings, Endpoints};
use crate::options::GatewayOptions;
use crate::parked_calls::ParkedCalls;
use crate::servers::{PrepareHost, ServerObservers, ServersBuilder, ServersContext};
use crate::sink::MessageSink;
use crate::tasks::GatewayTasks;

const LIMIT: Duration = Duration::from_secs(20);

async fn servers(server: Fixture, max_processes: usize) -> Arc<Servers> {
    let file = mcp_json([server.config_key("share", "session")]);
    let directory = std::env::temp_dir();
    let environment = Environment::from_process();
    let config = Config::from_value(&file, "mcp.json", &directory, &environment).unwrap();
    let mut options = GatewayOptions::default();
    options.server_limits.max_processes = max_processes;
    let mut builder = ServersBuilder::default();
    builder.configure(&config, false);
    let prepare: PrepareHost = Arc::new(|builder| builder);
    builder.add_private(&config, &prepare);
    let shared = Host::builder(config.shared_by(Share::Process)).start().await.unwrap();
    let context = ServersContext {
        options: &options,
        endpoints: Arc::new(Endpoints::from_options(&options, Bindings::default())),
        observers: ServerObservers {
            subscribers: Arc::default(),
            parked_calls: Arc::new(ParkedCalls::new(None)),
            audit_log: Arc::default(),
        },
        replicas: None,
        tasks: GatewayTasks::default(),
    };
    builder.build(shared, context)
}

fn client() -> Arc<Client> {
    Arc::new(Client::new(Principal::new("ada"), 0, MessageSink::None))
}

impl Servers {
    /// Starts the server of a client, as the first use does.
    async fn first_use(self: &Arc<Self>, client: &Arc<Client>) -> Result<Arc<View>, RpcError> {
        let view = self.view(&client.principal, Some(client), 0)?;
        let servers = self.unstarted_servers(&view, 0);
        let user = FirstUser { principal: &client.principal, client: Some(client), endpoint: 0 };
        let failed = self.start_for(user, &view, &servers).await;
        failed.into_iter().next().map_or(Ok(view), |(_, error)| Err(error))
    }
}

/// Attack: remote | a request is still under way when its session has ended | the request starts no
/// servers that nothing would end | No orphan
#[tokio::test]
async fn a_request_after_the_end_of_its_session_starts_no_servers() {
    let tag = ProcessTag::new();
    let servers = servers(fixture("n").process_tag(&tag), 8).await;
    let client = client();
    let used = servers.first_use(&client).await.unwrap();
    assert_eq!(tagged_processes(&tag).len(), 1);
    servers.end_client(&client);
    drop(used);
    let refused = servers.first_use(&client).await.unwrap_err();
    assert_eq!(refused.message, "the session has ended");
    wait_gone_async(&tag, LIMIT).await.unwrap();
}

#[tokio::test]
async fn several_requests_wait_for_one_host_that_ends() {
    let tag = ProcessTag::new();
    let servers = servers(fixture("n").process_tag(&tag), 1).await;
    let first = client();
    let _ = servers.first_use(&first).await.unwrap();
    servers.end_client(&first);
    assert_eq!(lock(&servers.sharing.ending).len(), 1, "the first host ends while others wait");
    let (second, third) = (client(), client());
    let waiting = timeout(LIMIT, async {
        tokio::join!(servers.first_use(&second), servers.first_use(&third))
    });
    let (second, third) = waiting.await.unwrap();
    let outcomes = [second.is_ok(), third.is_ok()];
    assert!(outcomes == [true, false] || outcomes == [false, true], "{outcomes:?}");
    assert_eq!(tagged_processes(&tag).len(), 1);
    servers.shut_down_private_hosts().await;
    wait_gone_async(&tag, LIMIT).await.unwrap();
}

#[tokio::test]
async fn a_shutdown_waits_for_the_hosts_that_end_and_starts_no_further_one() {
    let tag = ProcessTag::new();
    let servers = servers(fixture("n").process_tag(&tag), 8).await;
    let (ending, late) = (client(), client());
    let _ = servers.first_use(&ending).await.unwrap();
    servers.end_client(&ending);
    assert_eq!(timeout(LIMIT, servers.shut_down_private_hosts()).await.unwrap().len(), 1);
    let refused = servers.first_use(&late).await.unwrap_err();
    assert_eq!(refused.message, "the gateway is closing");
    wait_gone_async(&tag, LIMIT).await.unwrap();
}

#[tokio::test]
async fn a_shutdown_ends_the_servers_that_start() {
    let tag = ProcessTag::new();
    let server = fixture("n").process_tag(&tag).switch("--hang-init");
    let servers = servers(server.config_key("initTimeout", 3_600), 8).await;
    let client = client();
    let starting = servers.first_use(&client);
    let shutting_down = async {
        while tagged_processes(&tag).is_empty() {
            tokio::task::yield_now().await;
        }
        servers.shut_down_private_hosts().await
    };
    let both = timeout(LIMIT, async { tokio::join!(starting, shutting_down) });
    let (refused, reports) = both.await.unwrap();
    assert_eq!(refused.unwrap_err().message, "the gateway is closing");
    assert_eq!(reports.len(), 1, "{reports:?}");
    wait_gone_async(&tag, LIMIT).await.unwrap();
}

#[tokio::test]
async fn requests_at_the_same_time_start_one_process() {
    let tag = ProcessTag::new();
    let server = fixture("n").process_tag(&tag).with("--init-delay", 200);
    let servers = servers(server, 8).await;
    let client = client();
    let (first, second) = tokio::join!(servers.first_use(&client), servers.first_use(&client));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(tagged_processes(&tag).len(), 1);
    assert_eq!(servers.upstreams()[1].processes().len(), 1);
    servers.shut_down_private_hosts().await;
}

/// Attack: remote | a client cancels the call that starts its server, again and again | the start goes on
/// for the next call, and its process counts once | No unbounded memory
#[tokio::test]
async fn a_start_goes_on_without_the_request_that_it_was_for() {
    let tag = ProcessTag::new();
    let server = fixture("n").process_tag(&tag).with("--init-delay", 300);
    let servers = servers(server, 1).await;
    let client = client();
    let waiting_call = servers.first_use(&client);
    let started = async {
        while tagged_processes(&tag).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = waiting_call => panic!("the server starts slowly"),
        () = started => {}
    }
    let process = tagged_processes(&tag);
    // The first request is cancelled; this one waits for the same start.
    servers.first_use(&client).await.unwrap();
    assert_eq!(tagged_processes(&tag), process, "the start was not killed");
    servers.end_client(&client);
    let next = self::client();
    servers.first_use(&next).await.unwrap();
    servers.shut_down_private_hosts().await;
}

#[tokio::test]
async fn a_failed_start_and_the_end_of_a_session_give_the_process_back() {
    let tag = ProcessTag::new();
    let missing =
        fixture("n").process_tag(&tag).switch("--hang-init").config_key("initTimeout", 0.2);
    let servers = servers(missing, 2).await;
    let ada = Principal::new("ada");
    for _ in 0..3 {
        let client = client();
        let failed = servers.first_use(&client).await.unwrap_err();
        assert!(failed.message.starts_with("server `n` did not start: "), "{}", failed.message);
        assert!(servers.starts.limits.try_reserve(&ada).is_ok(), "the process is free again");
        let view = servers.view(&client.principal, Some(&client), 0).unwrap();
        assert!(servers.unstarted_servers(&view, 0)[0].has_failed);
    }
    servers.shut_down_private_hosts().await;
}
