//! The items of a server that applications do not get.

use innkeeper_config::GuardMode;
use innkeeper_protocol::view::{Prompt, Resource, ResourceTemplate, Tool};

use crate::connection::listing::{Definition, ServerListing, UnusableItem};
use crate::guard::{self, ItemKind, Verdict};

/// The guard's verdict on a definition, or on the instructions if there is no item.
pub(crate) type DefinitionFinding = (Option<(ItemKind, Box<str>)>, Verdict);

type ExcludedItem<V> = (Definition<V>, String);

#[derive(Clone, Debug)]
pub(crate) struct ExcludedTool {
    pub(crate) tool: Definition<Tool>,
    pub(crate) reason: String,
    /// Whether a pin or the guard withholds the tool.
    pub(crate) withheld: bool,
}

/// The excluded items of one server. Other settings can offer the items again.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExcludedItems {
    /// Tools that the configuration, an unusable schema, a pin or the guard excludes.
    pub(crate) tools: Vec<ExcludedTool>,
    /// Tools and prompts with unusable definitions.
    pub(super) unusable: Vec<UnusableItem>,
    prompts: Vec<ExcludedItem<Prompt>>,
    resources: Vec<ExcludedItem<Resource>>,
    templates: Vec<ExcludedItem<ResourceTemplate>>,
}

impl ExcludedItems {
    pub(super) fn add_tool(&mut self, tool: Definition<Tool>, reason: String, withheld: bool) {
        self.tools.push(ExcludedTool { tool, reason, withheld });
    }

    /// Moves the items that the guard withholds out of a listing. Adds all findings to `findings`.
    pub(super) fn extract(
        &mut self,
        listing: &mut ServerListing,
        mode: GuardMode,
        findings: &mut Vec<DefinitionFinding>,
    ) {
        let ServerListing { prompts, resources, resource_templates: templates, .. } = listing;
        self.prompts =
            extract_excluded(prompts, ItemKind::Prompt, mode, |prompt| &prompt.name, findings);
        self.resources = extract_excluded(
            resources,
            ItemKind::Resource,
            mode,
            |resource| &resource.uri,
            findings,
        );
        self.templates = extract_excluded(
            templates,
            ItemKind::Template,
            mode,
            |template| &template.uri_template,
            findings,
        );
    }

    pub(super) fn restore_into(&self, listing: &mut ServerListing) {
        fn add<V: Clone>(to: &mut Vec<Definition<V>>, out: &[ExcludedItem<V>]) {
            to.extend(out.iter().map(|(item, _)| item.clone()));
        }
        add(&mut listing.prompts, &self.prompts);
        add(&mut listing.resources, &self.resources);
        add(&mut listing.resource_templates, &self.templates);
    }

    /// Returns the reason why a pin or the guard withholds a tool.
    pub(crate) fn withheld_tool_reason(&self, name: &str) -> Option<&str> {
        let mut tools = self.tools.iter();
        let tool = tools.find(|excluded| excluded.withheld && excluded.tool.view.name == name)?;
        Some(&tool.reason)
    }

    /// Returns why the definition of a tool or prompt is unusable.
    pub(crate) fn unusable_reason(&self, kind: ItemKind, name: &str) -> Option<&str> {
        let mut items = self.unusable.iter();
        let item = items.find(|item| item.kind == kind.as_str() && *item.name == *name)?;
        Some(&item.reason)
    }

    pub(crate) fn prompt_reason(&self, name: &str) -> Option<&str> {
        let out = self.prompts.iter().find(|(prompt, _)| prompt.view.name == name);
        out.map(|(_, reason)| reason.as_str())
    }

    pub(super) fn resource_reason(&self, uri: &str) -> Option<&str> {
        let out = self.resources.iter().find(|(resource, _)| resource.view.uri == uri);
        out.map(|(_, reason)| reason.as_str())
    }

    /// Returns the reason why a template that equals or matches the URI is excluded.
    pub(super) fn template_reason(&self, uri: &str) -> Option<&str> {
        let out = self
            .templates
            .iter()
            .find(|(template, _)| template.view.uri_template == uri || template.view.matches(uri));
        out.map(|(_, reason)| reason.as_str())
    }
}

/// Scans the definitions of a list and removes the withheld definitions from the list.
fn extract_excluded<V>(
    list: &mut Vec<Definition<V>>,
    kind: ItemKind,
    mode: GuardMode,
    name: impl Fn(&V) -> &String,
    findings: &mut Vec<DefinitionFinding>,
) -> Vec<ExcludedItem<V>> {
    if mode == GuardMode::Off {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut retained = Vec::with_capacity(list.len());
    for item in list.drain(..) {
        let Some(verdict) = guard::scan_definition(kind, &item.raw, mode) else {
            retained.push(item);
            continue;
        };
        let withheld = verdict.withheld;
        let reason = exclusion_reason(&verdict);
        findings.push((Some((kind, name(&item.view).as_str().into())), verdict));
        if withheld {
            out.push((item, reason));
        } else {
            retained.push(item);
        }
    }
    *list = retained;
    out
}

/// Returns the first finding with a hint how to allow the item.
pub(super) fn exclusion_reason(verdict: &Verdict) -> String {
    let first = verdict.findings.first().map(ToString::to_string).unwrap_or_default();
    format!("{first}; set `guard.definitions` to `flag` to allow")
}
