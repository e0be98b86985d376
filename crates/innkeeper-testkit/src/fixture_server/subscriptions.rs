//! Subscriptions of the client and change notifications.

use serde_json::{Value, json};

use super::message::{self, Request, Response, error_code, meta_key};
use super::server::FixtureServer;

/// The subscriptions of the client: subscribed resources (legacy) and listen streams (modern).
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    uris: Vec<String>,
    streams: Vec<(Value, Value)>,
}

impl Subscriptions {
    pub(super) fn subscribe(&mut self, uri: &str) -> Response {
        self.uris.push(uri.to_owned());
        Response::Result(json!({}))
    }

    pub(super) fn unsubscribe(&mut self, uri: &str) -> Response {
        self.uris.retain(|subscribed| subscribed != uri);
        Response::Result(json!({}))
    }

    /// Closes the stream of a listen request.
    pub(super) fn cancel(&mut self, id: &Value) {
        self.streams.retain(|(stream, _)| stream != id);
    }
}

impl FixtureServer {
    /// Opens a listen stream: an acknowledgement at once, never a response.
    pub(super) fn listen(&mut self, request: &Request) -> Response {
        if self.switches.is_set("--no-listen") || !request.is_modern() {
            let message = "unknown method `subscriptions/listen`";
            return Response::error(error_code::METHOD_NOT_FOUND, message);
        }
        let filter = request.params.get("notifications").cloned().unwrap_or_default();
        let params = json!({
            "_meta": {meta_key::SUBSCRIPTION: request.id}, "notifications": filter,
        });
        let text = message::notification("notifications/subscriptions/acknowledged", &params);
        self.stdout.write_line(text.as_bytes());
        self.open.subscriptions.streams.push((request.id.clone(), filter));
        Response::Deferred
    }

    /// Sends a notification that a list (`tools`, `prompts` or `resources`) has changed.
    pub(super) fn notify_list_changed(&mut self, list: &str) {
        let method = format!("notifications/{list}/list_changed");
        if self.client.initialized {
            let text = message::notification(&method, &json!({}));
            self.stdout.write_line(text.as_bytes());
        }
        let filter_key = format!("{list}ListChanged");
        self.notify_streams(&method, &json!({}), |filter| {
            filter.get(&filter_key) == Some(&json!(true))
        });
    }

    /// Sends a notification that a resource has changed to its subscribers.
    pub(super) fn notify_resource_updated(&mut self, uri: &str) {
        let method = "notifications/resources/updated";
        let params = json!({"uri": uri});
        if self.open.subscriptions.uris.iter().any(|subscribed| subscribed == uri) {
            self.stdout.write_line(message::notification(method, &params).as_bytes());
        }
        self.notify_streams(method, &params, |filter| {
            let uris = filter.get("resourceSubscriptions").and_then(Value::as_array);
            uris.is_some_and(|uris| uris.iter().any(|subscribed| subscribed == uri))
        });
    }

    fn notify_streams(&mut self, method: &str, params: &Value, wants: impl Fn(&Value) -> bool) {
        for (id, filter) in &self.open.subscriptions.streams {
            if wants(filter) {
                let mut params = params.clone();
                params["_meta"] = json!({meta_key::SUBSCRIPTION: id});
                self.stdout.write_line(message::notification(method, &params).as_bytes());
            }
        }
    }
}
