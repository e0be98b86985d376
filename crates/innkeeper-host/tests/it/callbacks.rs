//! What servers ask of the application in the middle of a call, and who answers.

mod answer;
mod flood;
mod time;

use std::sync::Arc;

use innkeeper_host::{Answers, Callback, Host, ServerRequest};
use innkeeper_testkit::{Fixture, Remote};
use serde_json::{Value, json};

use crate::remote::file;
use crate::setup::{Scene, builder, text};

const SAMPLING: &str = "sampling/createMessage";
const ELICITATION: &str = "elicitation/create";
const ROOTS: &str = "roots/list";

/// How a server that asks is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Pipe,
    Http,
    Sse,
    WebSocket,
}

const WAYS: [Way; 4] = [Way::Pipe, Way::Http, Way::Sse, Way::WebSocket];

/// Servers that run as long as this is kept, and their entries of the configuration.
#[derive(Default)]
struct Reached {
    remotes: Vec<Remote>,
    entries: Vec<(String, Value)>,
}

impl Reached {
    async fn by(way: Way, servers: impl IntoIterator<Item = Fixture>) -> Self {
        let mut reached = Self::default();
        for server in servers {
            let name = server.name().to_owned();
            let plan = Remote::of(server.clone());
            let plan = match way {
                Way::Pipe => {
                    reached.entries.push((name, server.entry()));
                    continue;
                }
                Way::Http => plan,
                Way::Sse => plan.sse(),
                Way::WebSocket => plan.websocket(),
            };
            let remote = plan.start().await;
            reached.entries.push((name, remote.entry()));
            reached.remotes.push(remote);
        }
        reached
    }

    fn file(&self) -> Value {
        let mut all = file([]);
        for (name, entry) in &self.entries {
            all["servers"][name] = entry.clone();
        }
        all
    }

    async fn host(&self, scene: &Scene, answers: &Answers, callback: impl Callback) -> Host {
        let builder = builder(scene.config_of(&self.file()));
        builder.callback(answers, callback).start().await.unwrap()
    }

    async fn host_alone(&self, scene: &Scene) -> Host {
        builder(scene.config_of(&self.file())).start().await.unwrap()
    }
}

/// What a server heard on its questions: the method and `result` or `error` of each.
async fn heard(host: &Host, server: &str) -> Vec<Value> {
    let result = host.call_tool(&format!("{server}.pid"), ()).await.unwrap();
    serde_json::from_str(&text(&result)).unwrap()
}

/// What a server was told that this client can do.
fn declared(scene: &Scene, server: &str) -> Value {
    scene.journal().of(server).params("initialize")[0]["capabilities"].clone()
}

/// A callback as [`Host::set_callback`] takes it.
fn shared(callback: impl Callback) -> Option<Arc<dyn Callback>> {
    Some(Arc::new(callback))
}

/// The parameters of a question.
fn params(request: &ServerRequest) -> Value {
    request.params.as_ref().map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap())
}

/// An answer that says which server asked what.
fn echoed(request: &ServerRequest) -> Value {
    json!({"of": &*request.server, "method": &*request.method, "params": params(request)})
}
