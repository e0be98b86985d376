//! Who wants to hear of changes, and telling them.

use serde_json::{Value, json};

use super::message::{self, Answer, Request, code, meta};
use super::server::Server;

/// The clients' standing wishes: subscribed resources (legacy) and listen streams (modern).
#[derive(Debug, Default)]
pub(super) struct Listeners {
    uris: Vec<String>,
    streams: Vec<(Value, Value)>,
}

impl Listeners {
    pub(super) fn subscribe(&mut self, uri: &str) -> Answer {
        self.uris.push(uri.to_owned());
        Answer::Result(json!({}))
    }

    pub(super) fn unsubscribe(&mut self, uri: &str) -> Answer {
        self.uris.retain(|known| known != uri);
        Answer::Result(json!({}))
    }

    /// Closes the stream a listen request opened.
    pub(super) fn forget(&mut self, id: &Value) {
        self.streams.retain(|(stream, _)| stream != id);
    }
}

impl Server {
    /// Opens a stream of changes: acknowledged at once, answered never.
    pub(super) fn listen(&mut self, request: &Request) -> Answer {
        if self.switches.on("--no-listen") || !request.is_modern() {
            let message = "unknown method `subscriptions/listen`";
            return Answer::error(code::METHOD_NOT_FOUND, message);
        }
        let filter = request.params.get("notifications").cloned().unwrap_or_default();
        let params = json!({
            "_meta": {meta::SUBSCRIPTION: request.id}, "notifications": filter,
        });
        let text = message::notification("notifications/subscriptions/acknowledged", &params);
        self.wire.line(text.as_bytes());
        self.listeners.streams.push((request.id.clone(), filter));
        Answer::Later
    }

    /// Says that a list (`tools`, `prompts` or `resources`) has changed.
    pub(super) fn tell_list_changed(&mut self, list: &str) {
        let method = format!("notifications/{list}/list_changed");
        if self.session.initialized {
            let text = message::notification(&method, &json!({}));
            self.wire.line(text.as_bytes());
        }
        let wanted = format!("{list}ListChanged");
        self.tell_streams(&method, &json!({}), |filter| filter.get(&wanted) == Some(&json!(true)));
    }

    /// Says that a resource has changed, to those who subscribed to it.
    pub(super) fn tell_updated(&mut self, uri: &str) {
        let method = "notifications/resources/updated";
        let params = json!({"uri": uri});
        if self.listeners.uris.iter().any(|known| known == uri) {
            self.wire.line(message::notification(method, &params).as_bytes());
        }
        self.tell_streams(method, &params, |filter| {
            let uris = filter.get("resourceSubscriptions").and_then(Value::as_array);
            uris.is_some_and(|uris| uris.iter().any(|known| known == uri))
        });
    }

    fn tell_streams(&mut self, method: &str, params: &Value, wants: impl Fn(&Value) -> bool) {
        for (id, filter) in &self.listeners.streams {
            if wants(filter) {
                let mut params = params.clone();
                params["_meta"] = json!({meta::SUBSCRIPTION: id});
                self.wire.line(message::notification(method, &params).as_bytes());
            }
        }
    }
}
