//! The catalog entry of one ready server: its filtered listing as routes.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_config::name;
use innkeeper_protocol::Era;
use innkeeper_protocol::http::ParamHeaders;
use innkeeper_protocol::view::{Prompt, TaskSupport, Tool};
use serde_json::value::RawValue;

use super::excluded_items::{self, DefinitionFinding, ExcludedItems};
use super::route::{PromptRoute, ResourceRoute, ToolRoute};
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
    pub(crate) server_info: Option<Box<RawValue>>,
    pub(crate) instructions: Option<String>,
    pub(crate) listing: ServerListing,
    pub(crate) tools: Vec<Arc<ToolRoute>>,
    pub(crate) prompts: Vec<Arc<PromptRoute>>,
    /// Tools that the configuration, an unusable schema, a pin or the guard excludes.
    pub(crate) excluded_tools: Vec<ExcludedTool>,
    /// Tools and prompts with unusable definitions.
    pub(crate) unusable_items: Vec<UnusableItem>,
    /// Tools and instructions with hidden text.
    pub(crate) warnings: Vec<SecurityWarning>,
    /// Prompts, resources and templates that the guard withholds.
    pub(crate) excluded_items: ExcludedItems,
    /// The guard's findings in definitions and instructions.
    pub(crate) definition_findings: Vec<DefinitionFinding>,
    /// The differences from the pins.
    pub(crate) mismatches: Vec<PinMismatch>,
    /// Whether the instructions are withheld from applications and models.
    pub(crate) instructions_withheld: bool,
    pub(crate) timeout: Duration,
    /// The scanners for the contents of prompts and resources.
    pub(crate) content_scanners: ContentScanners,
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

/// An excluded tool.
#[derive(Clone, Debug)]
pub(crate) struct ExcludedTool {
    pub(crate) tool: Definition<Tool>,
    pub(crate) reason: String,
    /// Whether a pin or the guard withholds the tool.
    pub(crate) withheld: bool,
}

impl CatalogEntry {
    /// Builds the routes of a listing. Unusable items are added to `quarantined`.
    pub(crate) fn new(
        connection: Arc<Connection>,
        config: &Arc<ServerConfig>,
        server_info: Option<Box<RawValue>>,
        instructions: Option<String>,
        mut listing: ServerListing,
        quarantined: &mut Vec<Quarantined>,
    ) -> Self {
        let mut excluded_tools = Vec::new();
        let mut unusable_items = listing.unusable.clone();
        let mut definition_findings = Vec::new();
        let mode = config.guard.definitions;
        let mut tools = Vec::with_capacity(listing.tools.len());
        listing.tools.retain(|tool| {
            let name = &tool.view.name;
            let exclude =
                |reason: String, withheld| ExcludedTool { tool: tool.clone(), reason, withheld };
            if let Some(denied) = config.tools.deny_reason(name) {
                excluded_tools.push(exclude(describe_refusal(&denied), false));
                return false;
            }
            if let Some(verdict) = guard::scan_definition(ItemKind::Tool, &tool.raw, mode) {
                let withheld = verdict.withheld;
                let reason = excluded_items::exclusion_reason(&verdict);
                definition_findings.push((Some((ItemKind::Tool, name.as_str().into())), verdict));
                if withheld {
                    excluded_tools.push(exclude(reason, withheld));
                    return false;
                }
            }
            match tool_route(tool, config, &connection, quarantined) {
                Ok(route) => tools.push(Arc::new(route)),
                Err(reason) => {
                    excluded_tools.push(exclude(reason.clone(), false));
                    let unusable = UnusableItem {
                        kind: ItemKind::Tool.as_str(),
                        name: name.as_str().into(),
                        reason: reason.as_str().into(),
                    };
                    unusable_items.push(unusable);
                    let subject = format!("tool `{name}`");
                    quarantined.push(Quarantined { subject, reason, name: None });
                    return false;
                }
            }
            true
        });
        let server = &connection.server;
        let fingerprints = &connection.host.secret_fingerprints;
        let excluded_items = ExcludedItems::extract(&mut listing, mode, &mut definition_findings);
        let content_scanners = ContentScanners::from_config(config, server, fingerprints);
        let prompts =
            prompt_routes(&listing.prompts, config.calls.timeout, &content_scanners, &connection);
        let timeout = config.calls.timeout;
        let verdict = instructions.as_ref().and_then(|text| guard::scan_instructions(text, mode));
        let instructions_withheld = verdict.as_ref().is_some_and(|verdict| verdict.withheld);
        definition_findings.extend(verdict.map(|verdict| (None, verdict)));
        let warnings = security_warning::hidden_text_warnings(
            &connection.server,
            &listing.tools,
            instructions.as_deref(),
        );
        Self {
            connection,
            config: config.clone(),
            server_info,
            instructions,
            listing,
            tools,
            prompts,
            excluded_tools,
            unusable_items,
            warnings,
            excluded_items,
            definition_findings,
            mismatches: Vec::new(),
            instructions_withheld,
            timeout,
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
            self.server_info.clone(),
            self.instructions.clone(),
            self.full_listing(),
            &mut quarantined,
        )
    }

    /// Moves these tools to the excluded tools.
    pub(crate) fn withhold(&mut self, withheld: &WithheldTools) {
        self.tools.retain(|route| !withheld.contains_key(&route.name));
        self.warnings.retain(|warning| {
            !warning.tool.as_ref().is_some_and(|tool| withheld.contains_key(tool))
        });
        let is_withheld = |item: &Option<(ItemKind, Box<str>)>| matches!(item, Some((ItemKind::Tool, tool)) if withheld.contains_key(tool));
        self.definition_findings.retain(|(item, _)| !is_withheld(item));
        let is_refused = |tool: &mut Definition<Tool>| withheld.contains_key(&*tool.view.name);
        for tool in self.listing.tools.extract_if(.., is_refused) {
            let reason = (*withheld.get(&*tool.view.name).unwrap_or(&"")).to_owned();
            self.excluded_tools.push(ExcludedTool { tool, reason, withheld: true });
        }
    }

    /// Returns all listed tools, the offered ones first.
    pub(crate) fn all_tools(&self) -> impl Iterator<Item = &Definition<Tool>> {
        self.listing.tools.iter().chain(self.excluded_tools.iter().map(|excluded| &excluded.tool))
    }

    /// Returns the complete listing, excluded items included.
    pub(crate) fn full_listing(&self) -> ServerListing {
        let tools = self.all_tools().cloned().collect();
        let mut listing = ServerListing { tools, ..self.listing.clone() };
        self.excluded_items.restore_into(&mut listing);
        listing
    }

    /// Returns the reason why a pin or the guard withholds a tool.
    pub(crate) fn tool_withheld_reason(&self, tool: &str) -> Option<&str> {
        let excluded = self
            .excluded_tools
            .iter()
            .find(|excluded| excluded.withheld && excluded.tool.view.name == tool);
        excluded.map(|excluded| excluded.reason.as_str())
    }

    /// Returns why the definition of a tool or prompt is unusable.
    pub(crate) fn unusable_reason(&self, kind: ItemKind, name: &str) -> Option<&str> {
        let mut items = self.unusable_items.iter();
        let item = items.find(|item| item.kind == kind.as_str() && *item.name == *name)?;
        Some(&item.reason)
    }

    /// Returns the reason why the guard withholds a prompt.
    pub(crate) fn prompt_withheld_reason(&self, prompt: &str) -> Option<&str> {
        self.excluded_items.prompt_reason(prompt)
    }

    /// Returns the reason why the guard withholds a resource, or all templates that match the URI.
    pub(crate) fn resource_withheld_reason(&self, uri: &str) -> Option<(ItemKind, &str)> {
        let resource =
            self.excluded_items.resource_reason(uri).map(|reason| (ItemKind::Resource, reason));
        let template =
            || self.excluded_items.template_reason(uri).filter(|_| !self.has_resource(uri));
        resource.or_else(|| template().map(|reason| (ItemKind::Template, reason)))
    }

    /// Returns the route of the server's resources.
    pub(crate) fn resource_route(&self) -> ResourceRoute {
        let timeout = self.timeout;
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
        argument_schema,
        result_schema: output_schema(tool, connection, quarantined),
        argument_rules: ArgumentRules::new(name, schema, &config.tools),
        scanner: Scanner::new(
            config,
            &connection.server,
            schema,
            &connection.host.secret_fingerprints,
        ),
        param_headers,
        timeout: config.tools.timeout(name).unwrap_or(config.calls.timeout),
        retry_safe: safe_hints.contains(&Some(true)),
        as_task: takes_tasks && tool.view.task_support == TaskSupport::Required,
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
