//! Servers that are reached over a network: what they answer, and what goes wrong on the way.

mod again;
mod end;
mod limits;
mod load;
mod odd;
mod origin;
mod resume;
mod same;
mod session;
mod sse;
mod websocket;

use std::fmt::Debug;

use innkeeper_host::error::{Lost, ProtocolFault};
use innkeeper_host::{CallError, CallOptions, Host};
use innkeeper_testkit::{Fixture, Remote};
use serde_json::{Map, Value, json};

use crate::setup::{Scene, builder, text};

/// The configuration file of these servers.
pub(crate) fn file<const N: usize>(servers: [(&str, Value); N]) -> Value {
    let servers: Map<String, Value> =
        servers.into_iter().map(|(name, entry)| (name.to_owned(), entry)).collect();
    json!({"servers": servers})
}

/// A host of these servers, each in its entry of the configuration.
pub(crate) async fn hosting<const N: usize>(scene: &Scene, servers: [(&str, Value); N]) -> Host {
    builder(scene.config_of(&file(servers))).start().await.unwrap()
}

/// A host of a remote server `a`, with a child process `b` beside it.
async fn beside(scene: &Scene, remote: &Remote) -> Host {
    hosting(scene, [("a", remote.entry()), ("b", scene.fx("b").entry())]).await
}

/// A fixture server `a` that stays although calls to it run out of time.
fn forgiving(scene: &Scene) -> Fixture {
    scene.fx("a").key("unavailableAfterTimeouts", 1000)
}

/// Has a server say something.
pub(crate) async fn echo(host: &Host, server: &str, message: &str) -> Result<String, CallError> {
    let called = host.call_tool(&format!("{server}.echo"), json!({"message": message})).await;
    called.map(|result| text(&result))
}

/// Fails unless this server answers.
async fn answers(host: &Host, server: &str) {
    assert_eq!(echo(host, server, "still here").await.unwrap(), "still here");
}

/// A call that is sent once.
fn once() -> CallOptions {
    CallOptions { retries: Some(0), ..CallOptions::default() }
}

/// Why a call that must have failed for the lack of its server did, and whether it may have run.
fn unavailable<T: Debug>(result: Result<T, CallError>) -> (Lost, bool) {
    match result {
        Err(CallError::Unavailable { reason, may_have_run, .. }) => (reason, may_have_run),
        other => panic!("not unavailable: {other:?}"),
    }
}

/// What was wrong with the answer of a call that must have failed for it.
fn protocol_fault<T: Debug>(result: Result<T, CallError>) -> ProtocolFault {
    match result {
        Err(CallError::Protocol { source, .. }) => source,
        other => panic!("not a protocol error: {other:?}"),
    }
}
