//! Requests from servers to the application during a call.

mod call;
mod flood;
mod response;
mod time;

use std::sync::Arc;

use innkeeper_host::{Callback, CallbackCapabilities, Host, ServerRequest};
use innkeeper_testkit::{Fixture, RemoteServer};
use serde_json::{Value, json};

use crate::remote::config_json;
use crate::setup::{TestEnv, builder, result_text};

const SAMPLING: &str = "sampling/createMessage";
const ELICITATION: &str = "elicitation/create";
const ROOTS: &str = "roots/list";

/// The transport of a server that sends requests.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ServerTransport {
    Stdio,
    Http,
    Sse,
    WebSocket,
}

const TRANSPORTS: [ServerTransport; 4] = [
    ServerTransport::Stdio,
    ServerTransport::Http,
    ServerTransport::Sse,
    ServerTransport::WebSocket,
];

/// Servers that run until this value is dropped, and their configuration entries.
#[derive(Default)]
struct StartedServers {
    remotes: Vec<RemoteServer>,
    entries: Vec<(String, Value)>,
}

impl StartedServers {
    async fn start(transport: ServerTransport, servers: impl IntoIterator<Item = Fixture>) -> Self {
        let mut started = Self::default();
        for server in servers {
            let name = server.name().to_owned();
            let server_builder = RemoteServer::for_fixture(server.clone());
            let server_builder = match transport {
                ServerTransport::Stdio => {
                    started.entries.push((name, server.config_entry()));
                    continue;
                }
                ServerTransport::Http => server_builder,
                ServerTransport::Sse => server_builder.sse(),
                ServerTransport::WebSocket => server_builder.websocket(),
            };
            let remote = server_builder.start().await;
            started.entries.push((name, remote.config_entry()));
            started.remotes.push(remote);
        }
        started
    }

    fn config_json(&self) -> Value {
        let mut all = config_json([]);
        for (name, entry) in &self.entries {
            all["servers"][name] = entry.clone();
        }
        all
    }

    async fn start_host(
        &self,
        test_env: &TestEnv,
        capabilities: &CallbackCapabilities,
        callback: impl Callback,
    ) -> Host {
        let builder = builder(test_env.config_from(&self.config_json()));
        builder.callback(capabilities, callback).start().await.unwrap()
    }

    async fn start_host_without_callback(&self, test_env: &TestEnv) -> Host {
        builder(test_env.config_from(&self.config_json())).start().await.unwrap()
    }
}

/// Returns the responses that a server received to its own requests: the method and `result` or
/// `error` of each.
async fn callback_responses(host: &Host, server: &str) -> Vec<Value> {
    let result = host.call_tool(&format!("{server}.pid"), ()).await.unwrap();
    serde_json::from_str(&result_text(&result)).unwrap()
}

/// A valid result of a sampling request, with a text.
fn sampling_result(text: &str) -> Value {
    json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": text}})
}

/// Returns the client capabilities that a server received.
fn declared_capabilities(test_env: &TestEnv, server: &str) -> Value {
    test_env.journal().for_server(server).params("initialize")[0]["capabilities"].clone()
}

/// Wraps a callback for [`Host::set_callback`].
fn as_callback(callback: impl Callback) -> Option<Arc<dyn Callback>> {
    Some(Arc::new(callback))
}

/// The parameters of a server's request.
fn request_params(request: &ServerRequest) -> Value {
    request.params.as_ref().map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap())
}

/// A result that contains the server, the method and the parameters of the request.
fn echo_response(request: &ServerRequest) -> Value {
    json!({"of": &*request.server, "method": &*request.method, "params": request_params(request)})
}
