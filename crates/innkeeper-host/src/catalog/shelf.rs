//! What one ready server puts into the catalog: its offer, filtered and made into routes once.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::Era;
use innkeeper_protocol::http::ParamHeaders;
use innkeeper_protocol::view::{Prompt, TaskSupport, Tool};
use serde_json::value::RawValue;

use super::doubt::{self, Doubt};
use super::kept_out::{self, KeptOut, Suspicion};
use super::route::{PromptRoute, ResourceRoute, ToolRoute};
use crate::arguments::ArgumentRules;
use crate::config::{Refusal, ServerConfig, TransportConfig};
use crate::guard::{self, Attention, Memory, Of};
use crate::lock::{Mismatch, Refused};
use crate::name;
use crate::schema::{ArgumentSchema, ResultSchema};
use crate::server::connection::Connection;
use crate::server::offer::{Offer, Offered, Quarantined};

/// One server's part of the catalog.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) connection: Arc<Connection>,
    /// The settings it was made by.
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) server_info: Option<Box<RawValue>>,
    pub(crate) instructions: Option<String>,
    pub(crate) offer: Offer,
    pub(crate) tools: Vec<Arc<ToolRoute>>,
    pub(crate) prompts: Vec<Arc<PromptRoute>>,
    /// Tools the server has and the configuration, their schema or their pins keep out.
    pub(crate) hidden: Vec<Hidden>,
    /// Tools and instructions that hide text.
    pub(crate) doubts: Vec<Doubt>,
    /// Prompts, resources and templates that the guard refuses.
    pub(crate) kept_out: KeptOut,
    /// What the guard has found in definitions and instructions.
    pub(crate) found: Vec<Suspicion>,
    /// What is not as it was pinned.
    pub(crate) mismatches: Vec<Mismatch>,
    /// Whether the instructions are refused, and are not given to anybody.
    pub(crate) instructions_refused: bool,
    pub(crate) timeout: Duration,
    /// What is looked at of contents.
    pub(crate) looked_at: LookedAt,
}

/// What is looked at when contents are asked for; `None` where nothing is.
#[derive(Debug)]
pub(crate) struct LookedAt {
    pub(crate) prompts: Option<Arc<Attention>>,
    pub(crate) resources: Option<Arc<Attention>>,
}

impl LookedAt {
    fn by(config: &ServerConfig, server: &Arc<str>, memory: &Arc<Memory>) -> Self {
        let of = |of| Attention::of_contents(of, config, server, memory).map(Arc::new);
        Self { prompts: of(Of::Prompt), resources: of(Of::Resource) }
    }
}

/// A tool that is kept out.
#[derive(Clone, Debug)]
pub(crate) struct Hidden {
    pub(crate) tool: Offered<Tool>,
    pub(crate) reason: String,
    /// Whether its pin or the guard refuses it.
    pub(crate) refused: bool,
}

impl Shelf {
    /// Makes routes of an offer; what cannot be used is left out and told.
    pub(crate) fn new(
        connection: Arc<Connection>,
        config: &Arc<ServerConfig>,
        about: (Option<Box<RawValue>>, Option<String>),
        mut offer: Offer,
        left_out: &mut Vec<Quarantined>,
    ) -> Self {
        // What a request says of itself in headers, only HTTP of the modern era has.
        let modern = connection.revision.era() == Era::Modern;
        let shows_arguments = modern && matches!(config.transport, TransportConfig::Http { .. });
        let none = ParamHeaders::default;
        let takes_tasks = connection.revision.has_core_tasks() && connection.tasks.call;
        let mut hidden = Vec::new();
        let (who, memory) = (&connection.server, &connection.memory);
        let (mut found, mode) = (Vec::new(), config.guard.definitions);
        let mut tools = Vec::with_capacity(offer.tools.len());
        offer.tools.retain(|tool| {
            let name = &tool.view.name;
            if let Some(refusal) = config.tools.refusal(name) {
                let tool = tool.clone();
                hidden.push(Hidden { tool, reason: words(&refusal), refused: false });
                return false;
            }
            if let Some(told) = guard::definition(Of::Tool, &tool.raw, mode) {
                let (refused, reason) = (told.refused, kept_out::reason(&told));
                found.push((Some((Of::Tool, name.as_str().into())), told));
                if refused {
                    hidden.push(Hidden { tool: tool.clone(), reason, refused });
                    return false;
                }
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
                        results: promised(tool, &connection, left_out),
                        rules: ArgumentRules::new(name, schema, &config.tools),
                        attention: Attention::new(config, who, schema, memory),
                        headers,
                        timeout: config.timeout,
                        harmless: harmless.contains(&Some(true)),
                        as_task: takes_tasks && tool.view.task_support == TaskSupport::Required,
                        connection: connection.clone(),
                    }));
                    true
                }
                Err(reason) => {
                    let (tool, what) = (tool.clone(), format!("tool `{name}`"));
                    hidden.push(Hidden { tool, reason: reason.clone(), refused: false });
                    left_out.push(Quarantined { what, reason });
                    false
                }
            }
        });
        let kept_out = KeptOut::of(&mut offer, mode, &mut found);
        let looked_at = LookedAt::by(config, who, memory);
        let prompts = prompt_routes(&offer.prompts, config.timeout, &looked_at, &connection);
        let (server_info, instructions) = about;
        let timeout = config.timeout;
        let told = instructions.as_ref().and_then(|text| guard::instructions(text, mode));
        let instructions_refused = told.as_ref().is_some_and(|told| told.refused);
        found.extend(told.map(|told| (None, told)));
        let doubts = doubt::of_text(&connection.server, &offer.tools, instructions.as_deref());
        Self {
            connection,
            config: config.clone(),
            server_info,
            instructions,
            offer,
            tools,
            prompts,
            hidden,
            doubts,
            kept_out,
            found,
            mismatches: Vec::new(),
            instructions_refused,
            timeout,
            looked_at,
        }
    }

    /// The same offer, made into routes by other settings.
    pub(crate) fn made_by(&self, config: &Arc<ServerConfig>) -> Self {
        let about = (self.server_info.clone(), self.instructions.clone());
        // What cannot be used was told when it was read.
        let mut told = Vec::new();
        Self::new(self.connection.clone(), config, about, self.whole_offer(), &mut told)
    }

    /// Takes these tools off the shelf.
    pub(crate) fn withhold(&mut self, refused: &Refused) {
        self.tools.retain(|route| !refused.contains_key(&route.tool));
        self.doubts
            .retain(|doubt| !doubt.tool.as_ref().is_some_and(|tool| refused.contains_key(tool)));
        let gone = |item: &Option<(Of, Box<str>)>| matches!(item, Some((Of::Tool, tool)) if refused.contains_key(tool));
        self.found.retain(|(item, _)| !gone(item));
        let is_refused = |tool: &mut Offered<Tool>| refused.contains_key(&*tool.view.name);
        for tool in self.offer.tools.extract_if(.., is_refused) {
            let reason = (*refused.get(&*tool.view.name).unwrap_or(&"")).to_owned();
            self.hidden.push(Hidden { tool, reason, refused: true });
        }
    }

    /// Every tool the server listed, those on offer first.
    pub(crate) fn all_tools(&self) -> impl Iterator<Item = &Offered<Tool>> {
        self.offer.tools.iter().chain(self.hidden.iter().map(|hidden| &hidden.tool))
    }

    /// What the server offers, with all that is kept out.
    pub(crate) fn whole_offer(&self) -> Offer {
        let tools = self.all_tools().cloned().collect();
        let mut offer = Offer { tools, ..self.offer.clone() };
        self.kept_out.put_back(&mut offer);
        offer
    }

    /// Why a tool is refused by its pin or the guard, if it is.
    pub(crate) fn refused(&self, tool: &str) -> Option<&str> {
        let hidden =
            self.hidden.iter().find(|hidden| hidden.refused && hidden.tool.view.name == tool);
        hidden.map(|hidden| hidden.reason.as_str())
    }

    /// Why the guard refuses a prompt, if it does.
    pub(crate) fn refused_prompt(&self, prompt: &str) -> Option<&str> {
        self.kept_out.prompt(prompt)
    }

    /// Why the guard refuses a resource, or the only templates for it, if it does.
    pub(crate) fn refused_resource(&self, uri: &str) -> Option<(Of, &str)> {
        let resource = self.kept_out.resource(uri).map(|reason| (Of::Resource, reason));
        let template = || self.kept_out.template(uri).filter(|_| !self.has(uri));
        resource.or_else(|| template().map(|reason| (Of::Template, reason)))
    }

    /// The way to its resources.
    pub(crate) fn resource_route(&self) -> ResourceRoute {
        let (timeout, attention) = (self.timeout, self.looked_at.resources.clone());
        ResourceRoute { timeout, attention, connection: self.connection.clone() }
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

fn prompt_routes(
    prompts: &[Offered<Prompt>],
    timeout: Duration,
    looked_at: &LookedAt,
    connection: &Arc<Connection>,
) -> Vec<Arc<PromptRoute>> {
    let route = |prompt: &Offered<Prompt>| {
        let required = prompt.view.arguments.iter().filter(|given| given.required);
        Arc::new(PromptRoute {
            prompt: prompt.view.name.as_str().into(),
            required: required.map(|given| given.name.as_str().into()).collect(),
            timeout,
            attention: looked_at.prompts.clone(),
            connection: connection.clone(),
        })
    };
    prompts.iter().map(route).collect()
}

/// The schema of a tool's results, in revisions that have one.
fn promised(
    tool: &Offered<Tool>,
    connection: &Connection,
    left_out: &mut Vec<Quarantined>,
) -> Option<Arc<ResultSchema>> {
    let raw = tool.view.output_schema.as_ref();
    let raw = raw.filter(|_| connection.revision.has_output_schema())?;
    let tell = |reason| {
        let what = format!("output schema of tool `{}`", tool.view.name);
        left_out.push(Quarantined { what, reason });
    };
    ResultSchema::new(raw).map_err(tell).ok().map(Arc::new)
}

fn words(refusal: &Refusal<'_>) -> String {
    match refusal {
        Refusal::Denied { rule } => format!("`tools.deny` has `{rule}`"),
        Refusal::NotAllowed => "`tools.allow` does not have it".to_owned(),
    }
}
