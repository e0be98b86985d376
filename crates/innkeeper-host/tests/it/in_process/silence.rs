//! Servers that do not respond in time, and that respond again or are brought back.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use innkeeper_host::{CallError, HostEvent};
use tokio::time::{Instant, timeout};

use super::*;

/// A server that works on one request at a time: a call of `echo` takes `seconds`.
#[derive(Clone, Default)]
struct SequentialServer {
    starts: Arc<AtomicU32>,
    /// Whether the server responds to nothing any more after a call of `hang`.
    is_deaf: Arc<AtomicBool>,
    pings: Arc<AtomicU32>,
}

impl SequentialServer {
    fn connector(
        &self,
    ) -> impl Fn() -> std::future::Ready<Result<DuplexStream, ConnectError>> + use<> {
        let server = self.clone();
        move || {
            server.starts.fetch_add(1, Ordering::Relaxed);
            let (stream, server_stream) = duplex(STREAM_BYTES);
            #[expect(clippy::disallowed_methods, reason = "a server is no task of the host")]
            drop(tokio::spawn(server.clone().serve(server_stream)));
            std::future::ready(Ok(stream))
        }
    }

    async fn serve(self, stream: DuplexStream) {
        let (reader, mut writer) = split(stream);
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).unwrap();
            let params = &request["params"];
            if request["method"] == "ping" {
                self.pings.fetch_add(1, Ordering::Relaxed);
            }
            if params["name"] == "hang" {
                self.is_deaf.store(true, Ordering::Relaxed);
            }
            let seconds = params["arguments"]["seconds"].as_u64().unwrap_or(0);
            sleep(Duration::from_secs(seconds)).await;
            let is_start =
                ["initialize", "tools/list"].map(Some).contains(&request["method"].as_str());
            if self.is_deaf.load(Ordering::Relaxed) && !is_start {
                continue;
            }
            if is_start {
                self.is_deaf.store(false, Ordering::Relaxed);
            }
            if let Some(response) = respond("one", &request)
                && writer.write_all(format!("{response}\n").as_bytes()).await.is_err()
            {
                return;
            }
        }
    }

    /// Returns the builder of a host with this server, whose calls take at most two seconds.
    fn host(&self, entry: &Value) -> HostBuilder {
        let mut settings = json!({"type": "in-process", "timeout": 2});
        settings.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        Host::builder(config(&json!({ "one": settings }))).connector("one", self.connector())
    }
}

/// Calls a tool that takes this number of seconds, within its own time.
async fn call(host: &Host, seconds: u64, timeout: Option<u64>) -> Result<String, CallError> {
    let options =
        CallOptions { timeout: timeout.map(Duration::from_secs), ..CallOptions::default() };
    let arguments = json!({"message": "hi", "seconds": seconds});
    host.call_tool_with("one.echo", arguments, options).await.map(|result| result_text(&result))
}

fn state(host: &Host) -> ServerState {
    host.status()["one"].state
}

/// Waits until the server is ready, at most this number of seconds.
async fn wait_ready(host: &Host, seconds: u64) {
    let ready = async {
        while state(host) != ServerState::Ready {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(Duration::from_secs(seconds), ready).await.expect("the server is ready");
}

#[tokio::test(start_paused = true)]
async fn a_late_response_makes_a_silent_server_ready_again() {
    for pings in [false, true] {
        let server = SequentialServer::default();
        let host = server.host(&json!({})).ping_unresponsive(pings).start().await.unwrap();
        let mut events = host.events();
        let called_at = Instant::now();
        assert!(matches!(call(&host, 8, None).await, Err(CallError::Timeout { .. })));
        sleep(Duration::from_secs(3)).await;
        assert_eq!(state(&host), ServerState::Unavailable);
        let error = call(&host, 0, None).await.unwrap_err();
        assert_eq!(error.to_string(), "server `one` is unavailable: a call timed out");
        sleep(called_at + Duration::from_millis(8_100) - Instant::now()).await;
        assert_eq!(state(&host), ServerState::Ready, "pings: {pings}");
        assert_eq!(call(&host, 0, None).await.unwrap(), "hi");
        let is_ready = |event: &HostEvent| matches!(event, HostEvent::Ready { .. });
        assert!(crate::setup::drain_events(&mut events).iter().any(is_ready));
        assert_eq!(server.starts.load(Ordering::Relaxed), 1);
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_earlier_call_within_its_own_time_explains_the_silence_of_a_server() {
    for pings in [false, true] {
        let server = SequentialServer::default();
        let host = server.host(&json!({})).ping_unresponsive(pings).start().await.unwrap();
        let quick = async {
            sleep(Duration::from_millis(10)).await;
            let quick = call(&host, 0, None).await;
            sleep(Duration::from_secs(10)).await;
            (quick, state(&host))
        };
        let (slow, (quick, state_meanwhile)) = tokio::join!(call(&host, 20, Some(30)), quick);
        assert!(matches!(quick, Err(CallError::Timeout { .. })), "{quick:?}");
        assert_eq!(state_meanwhile, ServerState::Ready, "pings: {pings}");
        assert_eq!(slow.unwrap(), "hi");
        assert_eq!(call(&host, 0, None).await.unwrap(), "hi");
        assert_eq!(server.pings.load(Ordering::Relaxed), 0);
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_call_explains_no_silence() {
    let server = SequentialServer::default();
    let host = server.host(&json!({})).start().await.unwrap();
    let later = async {
        sleep(Duration::from_millis(10)).await;
        call(&host, 0, Some(60)).await
    };
    let earlier = async {
        let hung = host.call_tool("one.hang", json!({})).await;
        (hung, state(&host))
    };
    let (_, (hung, state)) = tokio::join!(timeout(Duration::from_secs(3), later), earlier);
    assert!(matches!(hung, Err(CallError::Timeout { .. })), "{hung:?}");
    assert_eq!(state, ServerState::Unavailable);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_silent_is_restarted_if_the_host_revives_servers() {
    let server = SequentialServer::default();
    let builder = server.host(&json!({})).ping_unresponsive(true).revive_servers(true);
    let host = builder.start().await.unwrap();
    for starts in [2, 3] {
        host.call_tool("one.hang", json!({})).await.unwrap_err();
        sleep(Duration::from_secs(5)).await;
        assert_eq!(state(&host), ServerState::Unavailable);
        wait_ready(&host, 20).await;
        assert_eq!(call(&host, 0, None).await.unwrap(), "hi");
        assert_eq!(server.starts.load(Ordering::Relaxed), starts);
    }
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_not_restarted_without_revival_or_with_restart_never() {
    for (entry, revives) in [(json!({}), false), (json!({"restart": "never"}), true)] {
        let server = SequentialServer::default();
        let builder = server.host(&entry).ping_unresponsive(true).revive_servers(revives);
        let host = builder.start().await.unwrap();
        host.call_tool("one.hang", json!({})).await.unwrap_err();
        sleep(Duration::from_secs(600)).await;
        assert_eq!(state(&host), ServerState::Unavailable);
        assert_eq!(server.starts.load(Ordering::Relaxed), 1);
        // The next ping finds the server alive.
        server.is_deaf.store(false, Ordering::Relaxed);
        wait_ready(&host, 40).await;
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_at_the_start_is_tried_again_if_the_host_revives_servers() {
    for (revives, expected) in [(true, ServerState::Ready), (false, ServerState::Unavailable)] {
        let server = SequentialServer::default();
        let (connector, there_at) = (server.connector(), Instant::now() + Duration::from_secs(60));
        let connector = move || {
            let is_there = Instant::now() >= there_at;
            let connected = is_there.then(&connector);
            async move {
                match connected {
                    Some(stream) => stream.await,
                    None => Err("no database".into()),
                }
            }
        };
        let entries = json!({
            "one": {"type": "in-process", "required": false},
            "upper": {"type": "in-process", "required": false, "dependencies": ["one"]},
        });
        let upper = SequentialServer::default();
        let builder = Host::builder(config(&entries)).connector("one", connector);
        let builder = builder.connector("upper", upper.connector()).revive_servers(revives);
        let host = builder.start().await.unwrap();
        assert_eq!(state(&host), ServerState::Unavailable);
        sleep(Duration::from_secs(120)).await;
        assert_eq!(state(&host), expected);
        assert_eq!(host.status()["upper"].state, expected, "after its dependency");
        assert_eq!(upper.starts.load(Ordering::Relaxed), u32::from(revives));
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_cannot_succeed_later_is_not_tried_again() {
    let servers = Servers::default();
    let entries = json!({"one": {"type": "in-process", "required": false}});
    let builder = Host::builder(config(&entries)).revive_servers(true);
    let mut events = builder.events();
    let host = builder.connect("other", servers.start("other")).start().await.unwrap();
    sleep(Duration::from_secs(600)).await;
    assert_eq!(state(&host), ServerState::Unavailable);
    let is_restart = |event: &HostEvent| matches!(event, HostEvent::Restarting { .. });
    assert!(!crate::setup::drain_events(&mut events).iter().any(is_restart));
    host.shutdown().await;
}
