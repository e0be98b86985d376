//! The methods of the server.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::call::{Input, Responses, collect};
use super::input::input_plan;
use super::items;
use super::message::{
    Era, META_LOG_LEVEL, META_SUBSCRIPTION, METHOD_NOT_FOUND, Outcome, Request, RpcError,
    UNSUPPORTED_VERSION,
};
use super::peer::Peer;
use super::state::StateKey;
use super::{prompts, resources, tools};

/// A change subscription of the modern era.
#[derive(Debug)]
struct Subscription {
    id: Value,
    filter: Value,
}

#[derive(Debug)]
pub(crate) struct Server {
    era: Era,
    peer: Peer,
    key: StateKey,
    has_changing_tool: Cell<bool>,
    has_changing_prompt: Cell<bool>,
    subscriptions: RefCell<Vec<Subscription>>,
    /// Cancels each request in flight, by the JSON of its id.
    cancellations: RefCell<HashMap<String, oneshot::Sender<()>>>,
}

impl Server {
    pub(crate) fn new(era: Era) -> Self {
        Self {
            era,
            peer: Peer::default(),
            key: StateKey::default(),
            has_changing_tool: Cell::new(false),
            has_changing_prompt: Cell::new(false),
            subscriptions: RefCell::default(),
            cancellations: RefCell::default(),
        }
    }

    /// Handles a response or a notification; returns a request.
    pub(crate) fn receive(&self, mut message: Value) -> Option<Request> {
        let method = message["method"].as_str().map(ToOwned::to_owned);
        let params = message["params"].take();
        match (method, message["id"].is_null()) {
            (None, _) => self.peer.accept(message),
            (Some(method), false) => {
                return Some(Request { id: message["id"].take(), method, params });
            }
            (Some(method), true) if method == "notifications/cancelled" => {
                let id = &params["requestId"];
                self.subscriptions.borrow_mut().retain(|subscription| subscription.id != *id);
                let _ = self.cancellations.borrow_mut().remove(&id.to_string());
            }
            (Some(_), true) => {}
        }
        None
    }

    /// Handles a request until its response or its cancellation.
    pub(crate) async fn respond(&self, request: Request) {
        if request.method == "subscriptions/listen" && self.era == Era::Modern {
            return self.listen(request);
        }
        let (sender, cancelled) = oneshot::channel();
        let id = request.id.to_string();
        self.cancellations.borrow_mut().insert(id.clone(), sender);
        tokio::select! {
            biased;
            _ = cancelled => {}
            outcome = self.handle(&request) => self.peer.respond(&request.id, &outcome),
        }
        let _ = self.cancellations.borrow_mut().remove(&id);
    }

    async fn handle(&self, request: &Request) -> Outcome {
        let result = match (request.method.as_str(), self.era) {
            ("tools/call" | "prompts/get", _) => self.call(request).await?,
            ("tools/list", _) => {
                cacheable(json!({ "tools": items::tools(self.has_changing_tool.get()) }))
            }
            ("prompts/list", _) => {
                cacheable(json!({ "prompts": items::prompts(self.has_changing_prompt.get()) }))
            }
            ("resources/list", _) => cacheable(json!({ "resources": items::resources() })),
            ("resources/templates/list", _) => {
                cacheable(json!({ "resourceTemplates": items::resource_templates() }))
            }
            ("resources/read", _) => cacheable(resources::read(request.text("uri"), self.era)?),
            ("completion/complete", _) => complete(request),
            ("initialize", Era::Legacy) => json!({
                "protocolVersion": self.era.revision(),
                "capabilities": self.capabilities(),
                "serverInfo": server_info(),
            }),
            ("initialize", Era::Modern) => {
                return Err(RpcError::new(UNSUPPORTED_VERSION, "this server has no `initialize`")
                    .with_data(json!({ "supported": [self.era.revision()] })));
            }
            ("server/discover", Era::Modern) => cacheable(json!({
                "supportedVersions": [self.era.revision()],
                "capabilities": self.capabilities(),
                "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
            })),
            (
                "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe",
                Era::Legacy,
            ) => json!({}),
            _ => return Err(RpcError::new(METHOD_NOT_FOUND, "method not found")),
        };
        Ok(self.of_era(result))
    }

    /// Adds or removes the members that only results of the modern era have.
    fn of_era(&self, mut result: Value) -> Value {
        let members = result.as_object_mut();
        match (self.era, members) {
            (Era::Modern, Some(members)) => {
                members.entry("resultType").or_insert_with(|| json!("complete"));
            }
            (Era::Legacy, Some(members)) => {
                members.remove("ttlMs");
                members.remove("cacheScope");
            }
            (_, None) => {}
        }
        result
    }

    fn capabilities(&self) -> Value {
        let mut capabilities = json!({
            "tools": { "listChanged": true },
            "prompts": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true },
            "completions": {},
        });
        if self.era == Era::Legacy {
            capabilities["logging"] = json!({});
        }
        capabilities
    }

    /// Handles `tools/call` and `prompts/get`.
    async fn call(&self, request: &Request) -> Outcome {
        if request.text("name") == "test_streaming_elicitation" {
            self.report_progress(request, 0);
        }
        let responses = match input_plan(request) {
            None => Responses::new(),
            Some(plan) => match collect(self.era, &self.peer, &self.key, request, &plan).await? {
                Input::Complete(responses) => responses,
                Input::Required(result) => return Ok(result),
            },
        };
        match request.method.as_str() {
            "prompts/get" => prompts::get(request, &responses),
            _ => tools::call(self, request, &responses).await,
        }
    }

    /// Sends a log message that belongs to a request, if the client wants log messages.
    pub(crate) fn log(&self, request: &Request, text: &str) {
        if self.era == Era::Legacy || request.meta(META_LOG_LEVEL).is_string() {
            let params = json!({ "level": "info", "logger": "tool", "data": text });
            self.peer.notify("notifications/message", &params);
        }
    }

    /// Reports the progress of a request in percent, if the request has a progress token.
    pub(crate) fn report_progress(&self, request: &Request, progress: u32) {
        let token = request.meta("progressToken");
        if !token.is_null() {
            let params = json!({ "progressToken": token, "progress": progress, "total": 100 });
            self.peer.notify("notifications/progress", &params);
        }
    }

    /// Changes the list of tools and notifies the client.
    pub(crate) fn change_tools(&self) {
        self.has_changing_tool.set(!self.has_changing_tool.get());
        self.notify_change("notifications/tools/list_changed", "toolsListChanged");
    }

    /// Changes the list of prompts and notifies the client.
    pub(crate) fn change_prompts(&self) {
        self.has_changing_prompt.set(!self.has_changing_prompt.get());
        self.notify_change("notifications/prompts/list_changed", "promptsListChanged");
    }

    fn notify_change(&self, method: &str, filter: &str) {
        if self.era == Era::Legacy {
            return self.peer.notify(method, &json!({}));
        }
        for subscription in self.subscriptions.borrow().iter() {
            if subscription.filter[filter] == json!(true) {
                let params = json!({ "_meta": { META_SUBSCRIPTION: subscription.id } });
                self.peer.notify(method, &params);
            }
        }
    }

    /// Starts a change subscription, which lasts until the client cancels it.
    fn listen(&self, mut request: Request) {
        let filter = request.params["notifications"].take();
        let params = json!({
            "_meta": { META_SUBSCRIPTION: request.id },
            "notifications": filter,
        });
        self.peer.notify("notifications/subscriptions/acknowledged", &params);
        self.subscriptions.borrow_mut().push(Subscription { id: request.id, filter });
    }
}

fn server_info() -> Value {
    json!({ "name": "innkeeper-conformance-server", "version": env!("CARGO_PKG_VERSION") })
}

/// Adds the cache hints of the modern era.
fn cacheable(mut result: Value) -> Value {
    result["ttlMs"] = json!(0);
    result["cacheScope"] = json!("private");
    result
}

/// Returns the words that start with the value of an argument.
fn complete(request: &Request) -> Value {
    let start = request.params["argument"]["value"].as_str().unwrap_or_default();
    let words = ["paris", "park", "party", "test"];
    let values: Vec<&str> = words.into_iter().filter(|word| word.starts_with(start)).collect();
    json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } })
}
