//! What one ready server puts into the catalog: its offer, filtered and made into routes once.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::Era;
use innkeeper_protocol::http::ParamHeaders;
use serde_json::value::RawValue;

use super::route::{PromptRoute, ToolRoute};
use crate::config::{Refusal, ServerConfig, TransportConfig};
use crate::name;
use crate::schema::ArgumentSchema;
use crate::server::connection::Connection;
use crate::server::offer::{Offer, Quarantined};

/// One server's part of the catalog.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) connection: Arc<Connection>,
    pub(crate) server_info: Option<Box<RawValue>>,
    pub(crate) instructions: Option<String>,
    pub(crate) offer: Offer,
    pub(crate) tools: Vec<Arc<ToolRoute>>,
    pub(crate) prompts: Vec<Arc<PromptRoute>>,
    /// Tools the server has and the configuration or their schema keeps out, with the reason.
    pub(crate) hidden: Vec<(Box<str>, String)>,
    pub(crate) timeout: Duration,
}

impl Shelf {
    /// Makes routes of an offer; what cannot be used is left out and told.
    pub(crate) fn new(
        connection: Arc<Connection>,
        config: &ServerConfig,
        about: (Option<Box<RawValue>>, Option<String>),
        mut offer: Offer,
        left_out: &mut Vec<Quarantined>,
    ) -> Self {
        // What a request says of itself in headers, only HTTP of the modern era has.
        let modern = connection.revision.era() == Era::Modern;
        let shows_arguments = modern && matches!(config.transport, TransportConfig::Http { .. });
        let none = ParamHeaders::default;
        let mut hidden = Vec::new();
        let mut tools = Vec::with_capacity(offer.tools.len());
        offer.tools.retain(|tool| {
            let name = &tool.view.name;
            if let Some(refusal) = config.tools.refusal(name) {
                hidden.push((name.as_str().into(), words(&refusal)));
                return false;
            }
            let schema = &tool.view.input_schema;
            let headers = if shows_arguments { ParamHeaders::read(schema) } else { Ok(none()) };
            let read = headers.map_err(|error| error.to_string());
            match read.and_then(|headers| Ok((headers, ArgumentSchema::new(schema)?))) {
                Ok((headers, arguments)) => {
                    let hints = &tool.view.annotations;
                    let harmless = [hints.read_only_hint, hints.idempotent_hint];
                    tools.push(Arc::new(ToolRoute {
                        public: name::public(&config.name, name),
                        tool: name.as_str().into(),
                        arguments,
                        headers,
                        timeout: config.timeout,
                        harmless: harmless.contains(&Some(true)),
                        connection: connection.clone(),
                    }));
                    true
                }
                Err(reason) => {
                    hidden.push((name.as_str().into(), reason.clone()));
                    left_out.push(Quarantined { what: format!("tool `{name}`"), reason });
                    false
                }
            }
        });
        let prompts = offer
            .prompts
            .iter()
            .map(|prompt| {
                let required = prompt.view.arguments.iter().filter(|given| given.required);
                Arc::new(PromptRoute {
                    prompt: prompt.view.name.as_str().into(),
                    required: required.map(|given| given.name.as_str().into()).collect(),
                    timeout: config.timeout,
                    connection: connection.clone(),
                })
            })
            .collect();
        let (server_info, instructions) = about;
        let timeout = config.timeout;
        Self { connection, server_info, instructions, offer, tools, prompts, hidden, timeout }
    }

    /// Whether the server lists this resource or has a template for it.
    pub(crate) fn has(&self, uri: &str) -> bool {
        let mut listed = self.offer.resources.iter();
        listed.any(|resource| resource.view.uri == uri) || self.has_template_for(uri)
    }

    pub(crate) fn has_template_for(&self, uri: &str) -> bool {
        self.offer.resource_templates.iter().any(|template| template.view.matches(uri))
    }
}

fn words(refusal: &Refusal<'_>) -> String {
    match refusal {
        Refusal::Denied { rule } => format!("`tools.deny` has `{rule}`"),
        Refusal::NotAllowed => "`tools.allow` does not have it".to_owned(),
    }
}
