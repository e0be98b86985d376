//! The handshake of a server without faults, in both protocol eras.

use serde_json::{Map, Value, json};

use super::InMemoryServer;
use crate::client_messages::ClientMessageChecker;

const MODERN_REVISION: &str = "2026-07-28";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// The features that a server declares. A feature with `None` is undeclared, and no request for it
/// may arrive.
#[derive(Clone, Debug)]
pub struct ServerFeatures {
    /// The protocol version in the response to `initialize`.
    pub revision: String,
    /// The tools.
    pub tools: Option<Vec<Value>>,
    /// The prompts.
    pub prompts: Option<Vec<Value>>,
    /// The resources and resource templates.
    pub resources: Option<(Vec<Value>, Vec<Value>)>,
    /// Whether the server declares change notifications; a modern client must then listen.
    pub list_changed: bool,
    /// The instructions.
    pub instructions: Option<String>,
}

impl Default for ServerFeatures {
    /// One tool, `echo`, with the newest protocol version that has a handshake.
    fn default() -> Self {
        let echo = json!({
            "name": "echo", "description": "Says the message back.",
            "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}},
        });
        Self {
            revision: "2025-11-25".to_owned(),
            tools: Some(vec![echo]),
            prompts: None,
            resources: None,
            list_changed: false,
            instructions: None,
        }
    }
}

impl ServerFeatures {
    /// One tool per name, which accepts any object.
    #[must_use]
    pub fn with_tools(names: &[&str]) -> Self {
        let tools =
            names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
        Self { tools: Some(tools.collect()), ..Self::default() }
    }

    fn capabilities(&self) -> Value {
        let list = if self.list_changed { json!({"listChanged": true}) } else { json!({}) };
        let mut capabilities = Map::new();
        for (name, is_offered) in [
            ("tools", self.tools.is_some()),
            ("prompts", self.prompts.is_some()),
            ("resources", self.resources.is_some()),
        ] {
            if is_offered {
                capabilities.insert(name.to_owned(), list.clone());
            }
        }
        Value::Object(capabilities)
    }

    /// The list requests of a client with their results.
    fn list_results(&self) -> Vec<(&'static str, Value)> {
        let mut lists = Vec::new();
        if let Some(tools) = &self.tools {
            lists.push(("tools/list", json!({"tools": tools})));
        }
        if let Some(prompts) = &self.prompts {
            lists.push(("prompts/list", json!({"prompts": prompts})));
        }
        if let Some((resources, templates)) = &self.resources {
            lists.push(("resources/list", json!({"resources": resources})));
            let templates = json!({"resourceTemplates": templates});
            lists.push(("resources/templates/list", templates));
        }
        lists
    }

    fn with_identity(&self, mut result: Value) -> Value {
        result["capabilities"] = self.capabilities();
        if let Some(instructions) = &self.instructions {
            result["instructions"] = json!(instructions);
        }
        result
    }
}

impl InMemoryServer {
    /// Runs the start of a server with a handshake.
    ///
    /// The server rejects a discover request, responds to `initialize`, expects
    /// `notifications/initialized` and responds to the list requests. Returns the `initialize`
    /// request.
    ///
    /// # Panics
    ///
    /// If the client sends anything else, or a message that violates the schema of the specification;
    /// the message contains the text.
    pub async fn handshake_legacy(&mut self, features: &ServerFeatures) -> Value {
        self.checker = Some(ClientMessageChecker::default());
        let mut first = self.next_message().await.expect("the client did not send a request");
        if first["method"] == "server/discover" {
            self.respond_error(&first["id"], -32601, "unknown method").await;
            first = self.next_message().await.expect("the client stopped after the rejection");
        }
        assert_eq!(first["method"], "initialize", "the client sent {first}");
        let info = json!({"name": "peer", "version": "1"});
        let result = json!({"protocolVersion": features.revision, "serverInfo": info});
        self.respond(&first["id"], features.with_identity(result)).await;
        self.expect("notifications/initialized").await;
        self.respond_to_lists(features.list_results(), false, false).await;
        first
    }

    /// Runs the start of a server without a handshake.
    ///
    /// The server responds to the discover request and the list requests, and acknowledges the
    /// listen request if `features` declares change notifications. Returns the discover request.
    ///
    /// # Panics
    ///
    /// If the client sends anything else, or omits the protocol version in `_meta`, or sends a message
    /// that violates the schema of the specification.
    pub async fn handshake_modern(&mut self, features: &ServerFeatures) -> Value {
        self.checker = Some(ClientMessageChecker::default());
        let discover = self.expect("server/discover").await;
        let result = features.with_identity(json!({"supportedVersions": [MODERN_REVISION]}));
        self.respond(&discover["id"], with_modern_result_fields(result)).await;
        self.respond_to_lists(features.list_results(), true, features.list_changed).await;
        discover
    }

    /// The id of the acknowledged listen request, which tags the notifications of its stream.
    #[must_use]
    pub fn subscription_id(&self) -> Option<&Value> {
        self.subscription_id.as_ref()
    }

    /// Sends a notification that a list (`tools`, `prompts` or `resources`) has changed, in the
    /// form of the era.
    pub async fn notify_list_changed(&mut self, list: &str) {
        let params = match &self.subscription_id {
            Some(id) => json!({"_meta": {SUBSCRIPTION_KEY: id}}),
            None => json!({}),
        };
        self.notify(&format!("notifications/{list}/list_changed"), params).await;
    }

    /// Responds to each list request once, in any order.
    async fn respond_to_lists(
        &mut self,
        mut lists: Vec<(&'static str, Value)>,
        is_modern: bool,
        mut listen: bool,
    ) {
        while listen || !lists.is_empty() {
            let missing: Vec<&str> = lists.iter().map(|(method, _)| *method).collect();
            let request = self
                .next_message()
                .await
                .unwrap_or_else(|| panic!("the client closed before it requested {missing:?}"));
            if is_modern {
                let revision = &request["params"]["_meta"][VERSION_KEY];
                assert_eq!(revision, MODERN_REVISION, "the client sent {request}");
            }
            if listen && request["method"] == "subscriptions/listen" {
                listen = false;
                self.acknowledge_subscription(&request).await;
                continue;
            }
            let index = lists.iter().position(|(method, _)| request["method"] == *method);
            let Some(index) = index else {
                panic!("expected one of {missing:?}, the client sent {request}");
            };
            let (_, result) = lists.swap_remove(index);
            let result = if is_modern { with_modern_result_fields(result) } else { result };
            self.respond(&request["id"], result).await;
        }
    }

    async fn acknowledge_subscription(&mut self, request: &Value) {
        let id = request["id"].clone();
        let filter = &request["params"]["notifications"];
        let params = json!({"_meta": {SUBSCRIPTION_KEY: id}, "notifications": filter});
        self.notify("notifications/subscriptions/acknowledged", params).await;
        self.subscription_id = Some(id);
    }
}

/// Adds the members that protocol version 2026-07-28 requires in a cacheable result.
fn with_modern_result_fields(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result["ttlMs"] = json!(0);
    result["cacheScope"] = json!("private");
    result["_meta"] = json!({SERVER_INFO_KEY: {"name": "peer", "version": "1"}});
    result
}
