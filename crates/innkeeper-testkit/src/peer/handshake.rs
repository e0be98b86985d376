//! The start of a conversation as a well-behaved server has it, in both eras.

use serde_json::{Map, Value, json};

use super::Peer;

const MODERN: &str = "2026-07-28";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What a peer says it has. What is `None` is not declared, and must not be asked for.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The revision it answers `initialize` with.
    pub revision: String,
    /// Its tools.
    pub tools: Option<Vec<Value>>,
    /// Its prompts.
    pub prompts: Option<Vec<Value>>,
    /// Its resources and resource templates.
    pub resources: Option<(Vec<Value>, Vec<Value>)>,
    /// Whether it says that it will tell of changes; a modern client must then listen.
    pub list_changed: bool,
    /// Its instructions.
    pub instructions: Option<String>,
}

impl Default for Offer {
    /// One tool, `echo`, by the newest revision with a handshake.
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

impl Offer {
    /// One tool of each name, taking any object.
    #[must_use]
    pub fn tools(names: &[&str]) -> Self {
        let tools =
            names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
        Self { tools: Some(tools.collect()), ..Self::default() }
    }

    fn capabilities(&self) -> Value {
        let list = if self.list_changed { json!({"listChanged": true}) } else { json!({}) };
        let mut capabilities = Map::new();
        for (name, offered) in [
            ("tools", self.tools.is_some()),
            ("prompts", self.prompts.is_some()),
            ("resources", self.resources.is_some()),
        ] {
            if offered {
                capabilities.insert(name.to_owned(), list.clone());
            }
        }
        Value::Object(capabilities)
    }

    /// The lists a client has to ask for, with their answers.
    fn lists(&self) -> Vec<(&'static str, Value)> {
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

    fn introduce(&self, mut result: Value) -> Value {
        result["capabilities"] = self.capabilities();
        if let Some(instructions) = &self.instructions {
            result["instructions"] = json!(instructions);
        }
        result
    }
}

impl Peer {
    /// Plays the start of a server with a handshake: refuses a discover request if one comes
    /// first, answers `initialize`, expects `notifications/initialized` and answers the lists.
    ///
    /// Returns the `initialize` request.
    ///
    /// # Panics
    ///
    /// When the client does anything else, naming it.
    pub async fn handshake_legacy(&mut self, offer: &Offer) -> Value {
        let mut first = self.next().await.expect("the client starts the conversation");
        if first["method"] == "server/discover" {
            self.reply_error(&first["id"], -32601, "unknown method").await;
            first = self.next().await.expect("the client goes on after a refusal");
        }
        assert_eq!(first["method"], "initialize", "the client sent {first}");
        let info = json!({"name": "peer", "version": "1"});
        let result = json!({"protocolVersion": offer.revision, "serverInfo": info});
        self.reply(&first["id"], offer.introduce(result)).await;
        self.expect("notifications/initialized").await;
        self.answer_lists(offer.lists(), false, false).await;
        first
    }

    /// Plays the start of a server without a handshake: answers the discover request and the
    /// lists, and acknowledges the listen request when the offer tells of changes.
    ///
    /// Returns the discover request.
    ///
    /// # Panics
    ///
    /// When the client does anything else, naming it, or leaves out the revision in `_meta`.
    pub async fn handshake_modern(&mut self, offer: &Offer) -> Value {
        let discover = self.expect("server/discover").await;
        let result = offer.introduce(json!({"supportedVersions": [MODERN]}));
        self.reply(&discover["id"], modern(result)).await;
        self.answer_lists(offer.lists(), true, offer.list_changed).await;
        discover
    }

    /// The id of the listen request acknowledged in the handshake, which tags what is sent on it.
    #[must_use]
    pub fn listening(&self) -> Option<&Value> {
        self.listening.as_ref()
    }

    /// Tells that a list (`tools`, `prompts` or `resources`) has changed, as the era has it.
    pub async fn list_changed(&mut self, list: &str) {
        let params = match &self.listening {
            Some(id) => json!({"_meta": {SUBSCRIPTION: id}}),
            None => json!({}),
        };
        self.notify(&format!("notifications/{list}/list_changed"), params).await;
    }

    /// Answers each list once, in whatever order they are asked for.
    async fn answer_lists(
        &mut self,
        mut lists: Vec<(&'static str, Value)>,
        is_modern: bool,
        mut listen: bool,
    ) {
        while listen || !lists.is_empty() {
            let missing: Vec<&str> = lists.iter().map(|(method, _)| *method).collect();
            let request = self
                .next()
                .await
                .unwrap_or_else(|| panic!("the client closed before it asked for {missing:?}"));
            if is_modern {
                let revision = &request["params"]["_meta"][VERSION];
                assert_eq!(revision, MODERN, "the client sent {request}");
            }
            if listen && request["method"] == "subscriptions/listen" {
                listen = false;
                self.acknowledge(&request).await;
                continue;
            }
            let asked = lists.iter().position(|(method, _)| request["method"] == *method);
            let Some(asked) = asked else {
                panic!("expected one of {missing:?}, the client sent {request}");
            };
            let (_, result) = lists.swap_remove(asked);
            let result = if is_modern { modern(result) } else { result };
            self.reply(&request["id"], result).await;
        }
    }

    async fn acknowledge(&mut self, request: &Value) {
        let id = request["id"].clone();
        let wanted = &request["params"]["notifications"];
        let params = json!({"_meta": {SUBSCRIPTION: id}, "notifications": wanted});
        self.notify("notifications/subscriptions/acknowledged", params).await;
        self.listening = Some(id);
    }
}

/// Adds what the 2026-07-28 revision wants in a result that may be kept.
fn modern(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result["ttlMs"] = json!(0);
    result["cacheScope"] = json!("private");
    result["_meta"] = json!({SERVER_INFO: {"name": "peer", "version": "1"}});
    result
}
