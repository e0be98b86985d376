//! The tools of a host, with a tool that reads resources.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_host::Host;
use innkeeper_protocol::skim;
use innkeeper_toolcall::Tool;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::{
    AvailableTool, HiddenServers, RefreshFuture, ToolAnnotations, ToolCallFuture, ToolCallOptions,
    ToolError, ToolOutput, ToolRunner, UnavailableTool, call_options, catalog_tools,
};

/// The name of the tool that reads a resource. A public name of a host's tool contains a dot unless
/// the configuration allows bare names.
pub const READ_RESOURCE_TOOL: &str = "read_resource";

/// Maximum number of links to resources that are remembered; older links are forgotten.
const MAX_LINKS: usize = 1024;

/// When the tool that reads resources is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OfferRule {
    Always,
    /// From the first result on that links to a resource.
    AfterFirstLink,
}

/// The tools of a host and the tool [`READ_RESOURCE_TOOL`].
///
/// The tool reads the resources that the servers list or offer by a template, and the resources to
/// which earlier results of their tools link. So a model can pass a resource of one server to a tool
/// of another server. A tool of the host with the same name hides the tool.
pub struct ResourceTools {
    host: Host,
    offer_rule: OfferRule,
    hidden: HiddenServers,
    /// The URIs in results, each with the server of its tool, oldest first.
    links: Mutex<VecDeque<(String, Arc<str>)>>,
}

impl fmt::Debug for ResourceTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceTools").finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct ReadArguments {
    uri: String,
}

impl ResourceTools {
    /// Adds the tool to the tools of a host.
    pub fn new(host: Host) -> Self {
        Self {
            host,
            offer_rule: OfferRule::Always,
            hidden: HiddenServers::default(),
            links: Mutex::default(),
        }
    }

    /// Adds the tool when a result links to a resource, so that a run without links has the tools of
    /// the host only.
    pub fn after_first_link(host: Host) -> Self {
        Self { offer_rule: OfferRule::AfterFirstLink, ..Self::new(host) }
    }

    /// Sets the servers whose tools and resources the model does not get. Default: none.
    #[must_use]
    pub fn with_hidden_servers(self, hidden: HiddenServers) -> Self {
        Self { hidden, ..self }
    }

    /// Returns why a tool of a hidden server cannot be called.
    fn tool_refusal(&self, name: &str) -> Option<String> {
        let catalog = self.host.catalog();
        let listed = catalog.tools().find(|listed| listed.public_name == name)?;
        self.hidden.refusal(listed.server)
    }

    /// Returns the server to read a resource from; `None` if the host finds the server.
    fn server_of_resource(&self, uri: &str) -> Result<Option<Arc<str>>, ToolError> {
        let catalog = self.host.catalog();
        let linked = self.server_of_link(uri);
        let owners = match &linked {
            Some(server) => vec![&**server],
            None => catalog.resource_servers(uri),
        };
        let visible: Vec<_> = owners.iter().filter(|owner| !self.hidden.contains(owner)).collect();
        match (&*visible, owners.first().and_then(|owner| self.hidden.refusal(owner))) {
            ([], Some(reason)) => {
                Err(ToolError::Refused { tool: READ_RESOURCE_TOOL.to_owned(), reason })
            }
            ([only], _) => Ok(Some((**only).into())),
            (_, _) => Ok(linked),
        }
    }

    /// Returns whether the tool that reads resources is offered.
    fn is_offered(&self) -> bool {
        (self.offer_rule == OfferRule::Always
            || !self.links.lock().unwrap_or_else(PoisonError::into_inner).is_empty())
            && !self.host.catalog().tools().any(|tool| tool.public_name == READ_RESOURCE_TOOL)
    }

    fn remember_links(&self, tool: &str, output: &ToolOutput) {
        let catalog = self.host.catalog();
        let mut tools = catalog.tools();
        let Some(tool) = tools.find(|listed| listed.public_name == tool) else { return };
        let server: Arc<str> = tool.server.into();
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        for uri in linked_uris(output) {
            links.retain(|(known, _)| *known != uri);
            links.push_back((uri, server.clone()));
            if links.len() > MAX_LINKS {
                links.pop_front();
            }
        }
    }

    fn server_of_link(&self, uri: &str) -> Option<Arc<str>> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.iter().rev().find(|(known, _)| known == uri).map(|(_, server)| server.clone())
    }

    async fn read_resource(
        &self,
        arguments: &RawValue,
        options: ToolCallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let ReadArguments { uri } = serde_json::from_str(arguments.get()).map_err(read_failed)?;
        let server = self.server_of_resource(&uri)?;
        let options = call_options(options);
        let result = self.host.read_resource(&uri, server.as_deref(), options).await?;
        contents_as_blocks(&result).map_err(read_failed)
    }
}

impl ToolRunner for ResourceTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let catalog = self.host.catalog();
        let mut tools = catalog_tools(&catalog, |public, _| public);
        for (tool, listed) in tools.iter_mut().zip(catalog.tools()) {
            tool.refusal = self.hidden.refusal(listed.server).map(Into::into);
        }
        if self.is_offered() {
            let uri = json!({"type": "string", "description": "The URI of the resource."});
            let schema = json!({
                "type": "object", "properties": {"uri": uri}, "required": ["uri"],
                "additionalProperties": false,
            });
            let description = "Reads a resource of a server: a listed resource, or one to which a \
                               tool result links (`resource_link`).";
            let annotations =
                ToolAnnotations { read_only: true, idempotent: true, ..ToolAnnotations::default() };
            let tool = Tool::new(READ_RESOURCE_TOOL, description, schema);
            tools.push(AvailableTool::new(tool, annotations));
        }
        tools
    }

    fn unavailable_tools(&self) -> Vec<UnavailableTool> {
        let tools = self.host.unavailable_tools().into_iter();
        tools.filter(|tool| !self.hidden.contains(&tool.server)).collect()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        options: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        Box::pin(async move {
            if name == READ_RESOURCE_TOOL && self.is_offered() {
                return self.read_resource(&arguments, options).await;
            }
            // The tools of a run can be older than the decision of the user.
            if let Some(reason) = self.tool_refusal(name) {
                return Err(ToolError::Refused { tool: name.to_owned(), reason });
            }
            let result = self.host.call_tool_with(name, arguments, call_options(options)).await?;
            let output = ToolOutput::from(result);
            self.remember_links(name, &output);
            Ok(output)
        })
    }

    fn finish_refresh(&self) -> RefreshFuture<'_> {
        ToolRunner::finish_refresh(&self.host)
    }
}

fn linked_uris(output: &ToolOutput) -> Vec<String> {
    #[derive(Deserialize)]
    struct ContentView<'r> {
        #[serde(borrow)]
        content: &'r RawValue,
    }
    #[derive(Deserialize)]
    struct LinkView {
        r#type: String,
        uri: String,
    }
    let raw = output.raw().get();
    if !raw.contains("resource_link") {
        return Vec::new();
    }
    let Ok(view) = serde_json::from_str::<ContentView<'_>>(raw) else { return Vec::new() };
    let links = skim::elements(view.content.get())
        .filter_map(|item| serde_json::from_str::<LinkView>(item).ok())
        .filter(|link| link.r#type == "resource_link");
    links.map(|link| link.uri).take(MAX_LINKS).collect()
}

fn contents_as_blocks(result: &RawValue) -> Result<ToolOutput, serde_json::Error> {
    #[derive(Deserialize)]
    struct ContentsView<'r> {
        #[serde(borrow)]
        contents: Vec<&'r RawValue>,
    }
    #[derive(Serialize)]
    struct ResourceBlock<'r> {
        r#type: &'static str,
        resource: &'r RawValue,
    }
    #[derive(Serialize)]
    struct ResultObject<'r> {
        content: Vec<ResourceBlock<'r>>,
    }
    let ContentsView { contents } = serde_json::from_str(result.get())?;
    let content = contents
        .into_iter()
        .map(|resource| ResourceBlock { r#type: "resource", resource })
        .collect();
    Ok(ToolOutput::new(to_raw_value(&ResultObject { content })?, false))
}

fn read_failed(error: serde_json::Error) -> ToolError {
    ToolError::Runner { tool: READ_RESOURCE_TOOL.to_owned(), source: error.into() }
}
