//! The catalog entry of one ready server: its filtered listing as routes.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_config::name;
use innkeeper_protocol::Era;
use innkeeper_protocol::http::ParamHeaders;
use innkeeper_protocol::view::{Prompt, TaskSupport, Tool};
use serde_json::value::RawValue;

use super::excluded_items::{self, DefinitionFinding, ExcludedItems};
use super::route::{CallHints, PromptRoute, ResourceRoute, RouteArguments, ToolRoute};
use super::security_warning::{self, SecurityWarning};
use crate::arguments::ArgumentRules;
use crate::catalog::{PinMismatch, WithheldTools};
use crate::connection::Connection;
use crate::connection::listing::{Definition, Quarantined, ServerListing, UnusableItem};
use crate::guard::{self, ItemKind, Scanner, SecretFingerprints};
use crate::schema::{ArgumentSchema, ResultSchema};
use innkeeper_config::{DenyReason, ServerConfig, TransportConfig};

/// The part of the catalog that belongs to one server.
#[derive(Debug)]
pub(crate) struct CatalogEntry {
    pub(crate) connection: Arc<Connection>,
    /// The configuration that the entry was built with.
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) introduction: Introduction,
    pub(crate) listing: ServerListing,
    pub(crate) routes: ServerRoutes,
    pub(crate) excluded: ExcludedItems,
    pub(crate) findings: EntryFindings,
    /// The scanners for the contents of prompts and resources.
    pub(crate) content_scanners: ContentScanners,
}

/// What a server says of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Introduction {
    pub(crate) server_info: Option<Box<RawValue>>,
    pub(crate) instructions: Option<String>,
    /// Whether the instructions are withheld from applications and models.
    pub(crate) is_withheld: bool,
}

/// The routes to the tools and prompts of one server.
#[derive(Debug)]
pub(crate) struct ServerRoutes {
    pub(crate) tools: Vec<Arc<ToolRoute>>,
    pub(crate) prompts: Vec<Arc<PromptRoute>>,
}

/// What the checks of a listing found.
#[derive(Debug)]
pub(crate) struct EntryFindings {
    /// Tools and instructions with hidden text.
    pub(crate) warnings: Vec<SecurityWarning>,
    /// The guard's findings in definitions and instructions.
    pub(crate) definitions: Vec<DefinitionFinding>,
    pub(crate) mismatches: Vec<PinMismatch>,
}

impl EntryFindings {
    /// Removes what was found in withheld tools.
    fn forget_tools(&mut self, withheld: &WithheldTools) {
        self.warnings.retain(|warning| {
            !warning.tool.as_ref().is_some_and(|tool| withheld.contains_key(tool))
        });
        self.definitions.retain(|(item, _)| {
            !matches!(item, Some((ItemKind::Tool, tool)) if withheld.contains_key(tool))
        });
    }
}

/// The scanners for contents; `None` where scanning is off.
#[derive(Debug)]
pub(crate) struct ContentScanners {
    pub(crate) prompts: Option<Arc<Scanner>>,
    pub(crate) resources: Option<Arc<Scanner>>,
    pub(crate) tasks: Option<Arc<Scanner>>,
}

impl ContentScanners {
    fn from_config(
        config: &ServerConfig,
        server: &Arc<str>,
        fingerprints: &Arc<SecretFingerprints>,
    ) -> Self {
        let prompts = ItemKind::Prompt;
        let resources = ItemKind::Resource;
        let [prompts, resources, tasks] = [prompts, resources, ItemKind::Tool]
            .map(|kind| Scanner::for_contents(kind, config, server, fingerprints).map(Arc::new));
        Self { prompts, resources, tasks }
    }
}

impl CatalogEntry {
    /// Builds the routes of a listing. Unusable items are added to `quarantined`.
    pub(crate) fn new(
        connection: Arc<Connection>,
        config: &Arc<ServerConfig>,
        mut introduction: Introduction,
        mut listing: ServerListing,
        quarantined: &mut Vec<Quarantined>,
    ) -> Self {
        let mode = config.guard.definitions;
        let mut excluded = ExcludedItems::default();
        excluded.unusable.clone_from(&listing.unusable);
        let mut definitions = Vec::new();
        let mut tools = Vec::with_capacity(listing.tools.len());
        for tool in std::mem::take(&mut listing.tools) {
            let name = &tool.view.name;
            if let Some(denied) = config.tools.deny_reason(name) {
                let reason = describe_refusal(&denied);
                excluded.add_tool(tool, reason, false);
                continue;
            }
            if let Some(verdict) = guard::scan_definition(ItemKind::Tool, &tool.raw, mode) {
                let withheld = verdict.withheld;
                let reason = excluded_items::exclusion_reason(&verdict);
                definitions.push((Some((ItemKind::Tool, name.as_str().into())), verdict));
                if withheld {
                    excluded.add_tool(tool, reason, true);
                    continue;
                }
            }
            match tool_route(&tool, config, &connection, quarantined) {
                Ok(route) => {
                    tools.push(Arc::new(route));
                    listing.tools.push(tool);
                }
                Err(reason) => {
                    excluded.unusable.push(UnusableItem {
                        kind: ItemKind::Tool.as_str(),
                        name: name.as_str().into(),
                        reason: reason.as_str().into(),
                    });
                    let subject = format!("tool `{name}`");
                    excluded.add_tool(tool, reason.clone(), false);
                    quarantined.push(Quarantined { subject, reason, name: None });
                }
            }
        }
        excluded.extract(&mut listing, mode, &mut definitions);
        let server = &connection.server;
        let fingerprints = &connection.host.secret_fingerprints;
        let content_scanners = ContentScanners::from_config(config, server, fingerprints);
        let prompts =
            prompt_routes(&listing.prompts, config.calls.timeout, &content_scanners, &connection);
        let instructions = introduction.instructions.as_deref();
        let verdict = instructions.and_then(|text| guard::scan_instructions(text, mode));
        let warnings = security_warning::hidden_text_warnings(server, &listing.tools, instructions);
        introduction.is_withheld = verdict.as_ref().is_some_and(|verdict| verdict.withheld);
        definitions.extend(verdict.map(|verdict| (None, verdict)));
        Self {
            connection,
            config: config.clone(),
            introduction,
            listing,
            routes: ServerRoutes { tools, prompts },
            excluded,
            findings: EntryFindings { warnings, definitions, mismatches: Vec::new() },
            content_scanners,
        }
    }

    /// Rebuilds the entry from the same listing with another configuration.
    pub(crate) fn rebuilt_with(&self, config: &Arc<ServerConfig>) -> Self {
        // The first build already reported the unusable items.
        let mut quarantined = Vec::new();
        Self::new(
            self.connection.clone(),
            config,
            self.introduction.clone(),
            self.full_listing(),
            &mut quarantined,
        )
    }

    /// Moves these tools to the excluded tools.
    pub(crate) fn withhold(&mut self, withheld: &WithheldTools) {
        self.routes.tools.retain(|route| !withheld.contains_key(&route.name));
        self.findings.forget_tools(withheld);
        for tool in std::mem::take(&mut self.listing.tools) {
            match withheld.get(&*tool.view.name) {
                Some(reason) => self.excluded.add_tool(tool, (*reason).to_owned(), true),
                None => self.listing.tools.push(tool),
            }
        }
    }

    /// Returns all listed tools, the offered ones first.
    pub(crate) fn all_tools(&self) -> impl Iterator<Item = &Definition<Tool>> {
        self.listing.tools.iter().chain(self.excluded.tools.iter().map(|excluded| &excluded.tool))
    }

    /// Returns the complete listing, excluded items included.
    pub(crate) fn full_listing(&self) -> ServerListing {
        let tools = self.all_tools().cloned().collect();
        let mut listing = ServerListing { tools, ..self.listing.clone() };
        self.excluded.restore_into(&mut listing);
        listing
    }

    /// Returns the reason why the guard withholds a resource, or all templates that match the URI.
    pub(crate) fn resource_withheld_reason(&self, uri: &str) -> Option<(ItemKind, &str)> {
        if let Some(reason) = self.excluded.resource_reason(uri) {
            return Some((ItemKind::Resource, reason));
        }
        let reason = self.excluded.template_reason(uri).filter(|_| !self.has_resource(uri))?;
        Some((ItemKind::Template, reason))
    }

    pub(crate) fn resource_route(&self) -> ResourceRoute {
        let timeout = self.config.calls.timeout;
        let scanner = self.content_scanners.resources.clone();
        ResourceRoute { timeout, scanner, connection: self.connection.clone() }
    }

    /// Returns whether the server lists the resource or has a template that matches the URI.
    pub(crate) fn has_resource(&self, uri: &str) -> bool {
        let mut resources = self.listing.resources.iter();
        resources.any(|resource| resource.view.uri == uri) || self.has_template_for(uri)
    }

    pub(crate) fn has_template_for(&self, uri: &str) -> bool {
        self.listing.resource_templates.iter().any(|template| template.view.matches(uri))
    }
}

/// The route of one tool, or the reason why the tool cannot be called.
fn tool_route(
    tool: &Definition<Tool>,
    config: &ServerConfig,
    connection: &Arc<Connection>,
    quarantined: &mut Vec<Quarantined>,
) -> Result<ToolRoute, String> {
    let name = &tool.view.name;
    let schema = &tool.view.input_schema;
    // Only HTTP in the modern era has parameter headers.
    let modern = connection.negotiated.revision.era() == Era::Modern;
    let has_param_headers = modern && matches!(config.transport, TransportConfig::Http { .. });
    let param_headers = if has_param_headers {
        ParamHeaders::from_schema(schema).map_err(|error| error.to_string())?
    } else {
        ParamHeaders::default()
    };
    let argument_schema = ArgumentSchema::new(schema)?;
    let hints = &tool.view.annotations;
    let safe_hints = [hints.read_only_hint, hints.idempotent_hint];
    let takes_tasks =
        connection.negotiated.revision.has_core_tasks() && connection.negotiated.tasks.call;
    Ok(ToolRoute {
        public_name: name::public_name(&config.name, name),
        name: name.as_str().into(),
        arguments: RouteArguments {
            schema: argument_schema,
            rules: ArgumentRules::new(name, schema, &config.tools),
            headers: param_headers,
        },
        result_schema: output_schema(tool, connection, quarantined),
        scanner: Scanner::new(
            config,
            &connection.server,
            schema,
            &connection.host.secret_fingerprints,
        ),
        timeout: config.tools.timeout(name).unwrap_or(config.calls.timeout),
        hints: CallHints {
            retry_safe: safe_hints.contains(&Some(true)),
            as_task: takes_tasks && tool.view.task_support == TaskSupport::Required,
        },
        connection: connection.clone(),
    })
}

fn prompt_routes(
    prompts: &[Definition<Prompt>],
    timeout: Duration,
    looked_at: &ContentScanners,
    connection: &Arc<Connection>,
) -> Vec<Arc<PromptRoute>> {
    prompts
        .iter()
        .map(|prompt| {
            let required = prompt.view.arguments.iter().filter(|argument| argument.required);
            Arc::new(PromptRoute {
                name: prompt.view.name.as_str().into(),
                required_arguments: required
                    .map(|argument| argument.name.as_str().into())
                    .collect(),
                timeout,
                scanner: looked_at.prompts.clone(),
                connection: connection.clone(),
            })
        })
        .collect()
}

/// Compiles the output schema of a tool, if the protocol revision has output schemas.
fn output_schema(
    tool: &Definition<Tool>,
    connection: &Connection,
    quarantined: &mut Vec<Quarantined>,
) -> Option<Arc<ResultSchema>> {
    let raw = tool.view.output_schema.as_ref();
    let raw = raw.filter(|_| connection.negotiated.revision.has_output_schema())?;
    ResultSchema::new(raw)
        .map_err(|reason| {
            let subject = format!("output schema of tool `{}`", tool.view.name);
            quarantined.push(Quarantined { subject, reason, name: None });
        })
        .ok()
        .map(Arc::new)
}

fn describe_refusal(reason: &DenyReason<'_>) -> String {
    match reason {
        DenyReason::Denied { rule } => format!("denied by `{rule}` in `tools.deny`"),
        DenyReason::NotAllowed => "not in `tools.allow`".to_owned(),
    }
}
