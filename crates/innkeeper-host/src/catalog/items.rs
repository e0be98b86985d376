//! The callable items of a catalog with their definitions.

use std::collections::HashMap;
use std::sync::Arc;

use innkeeper_config::name;
use innkeeper_protocol::view::{Prompt, Resource, ResourceTemplate, Tool};

use super::{Catalog, UnavailableServer, unavailable_error};
use crate::connection::listing::Definition;
use crate::error::{CallError, UnavailableReason};

/// A callable tool of a catalog.
#[derive(Clone, Copy, Debug)]
pub struct CatalogTool<'c> {
    /// The name for calls.
    pub public_name: &'c str,
    /// The name of the server.
    pub server: &'c str,
    /// The definition, with the server's own name of the tool.
    pub definition: &'c Definition<Tool>,
}

/// A tool that a server offered while the server was ready, and that cannot be called now.
#[derive(Clone, Copy, Debug)]
pub struct UnavailableCatalogTool<'c> {
    /// The name for calls.
    pub public_name: &'c str,
    /// The name of the server.
    pub server: &'c str,
    /// Why the server is unavailable.
    pub reason: &'c UnavailableReason,
}

/// A server that accepts no calls now.
#[derive(Clone, Copy, Debug)]
pub struct UnavailableCatalogServer<'c> {
    name: &'c Arc<str>,
    server: &'c UnavailableServer,
}

impl UnavailableCatalogServer<'_> {
    /// Returns the error of a request to the server. The request is not sent.
    pub fn error(&self) -> CallError {
        unavailable_error(self.name, self.server)
    }

    /// Returns whether the host knows the items of the server, because the server was ready before.
    pub fn was_ready(&self) -> bool {
        self.server.entry.is_some()
    }

    /// Returns whether the server offered a tool with this own name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.server
            .entry
            .iter()
            .flat_map(|entry| &entry.routes.tools)
            .any(|tool| *tool.name == *name)
    }

    /// Returns whether the server offered a prompt with this own name.
    pub fn has_prompt(&self, name: &str) -> bool {
        self.server
            .entry
            .iter()
            .flat_map(|entry| &entry.routes.prompts)
            .any(|prompt| *prompt.name == *name)
    }

    /// Returns whether the server listed this URI, or a template that matches the URI.
    pub fn has_resource(&self, uri: &str) -> bool {
        self.server.entry.iter().any(|entry| entry.has_resource(uri))
    }
}

/// A callable prompt of a catalog.
#[derive(Clone, Copy, Debug)]
pub struct CatalogPrompt<'c> {
    /// The name for calls.
    pub public_name: &'c str,
    /// The name of the server.
    pub server: &'c str,
    /// The definition, with the server's own name of the prompt.
    pub definition: &'c Definition<Prompt>,
}

/// A readable resource of a catalog.
#[derive(Clone, Copy, Debug)]
pub struct CatalogResource<'c> {
    /// The URI. Several servers can list one URI; a read then needs the name of the server.
    pub uri: &'c str,
    /// The name of the server.
    pub server: &'c str,
    /// The definition.
    pub definition: &'c Definition<Resource>,
}

/// A usable resource template of a catalog.
#[derive(Clone, Copy, Debug)]
pub struct CatalogTemplate<'c> {
    /// The URI template. Several servers can list one template.
    pub uri_template: &'c str,
    /// The name of the server.
    pub server: &'c str,
    /// The definition.
    pub definition: &'c Definition<ResourceTemplate>,
}

impl Catalog {
    /// Returns all callable tools with their definitions, in the order of the configuration and of
    /// each server's list. A server has at most 10,000 tools.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn example(host: &innkeeper_host::Host) {
    /// for tool in host.catalog().tools() {
    ///     let view = &tool.definition.view;
    ///     println!("{}: {:?}", tool.public_name, view.description);
    ///     println!("{}", view.input_schema);
    /// }
    /// # }
    /// ```
    pub fn tools(&self) -> impl Iterator<Item = CatalogTool<'_>> {
        self.entries().flat_map(move |entry| {
            let tools = entry.listing.tools.iter();
            let definitions: HashMap<&str, &Definition<Tool>> =
                tools.map(|tool| (tool.view.name.as_str(), tool)).collect();
            entry.routes.tools.iter().filter_map(move |route| {
                let is_routed = Arc::ptr_eq(self.tools.get(&route.public_name)?, route);
                let definition = *definitions.get(&*route.name).filter(|_| is_routed)?;
                let public_name = &*route.public_name;
                let server = &*entry.connection.server;
                Some(CatalogTool { public_name, server, definition })
            })
        })
    }

    /// Returns the tools of servers that became unavailable, in the order of the configuration and of
    /// the last list of each server. A server that the host stopped is not among them.
    pub fn unavailable_tools(&self) -> impl Iterator<Item = UnavailableCatalogTool<'_>> {
        let servers = self.unavailable.iter();
        let lost = servers.filter(|(_, server)| server.reason != UnavailableReason::Shutdown);
        lost.flat_map(move |(server, unavailable)| {
            let tools = unavailable.entry.iter().flat_map(|entry| &entry.routes.tools);
            let tools = tools.filter(move |tool| self.resolves_to(&tool.public_name, server));
            tools.map(move |tool| UnavailableCatalogTool {
                public_name: &tool.public_name,
                server,
                reason: &unavailable.reason,
            })
        })
    }

    /// Returns a server by name, if the server accepts no calls.
    pub fn unavailable_server(&self, name: &str) -> Option<UnavailableCatalogServer<'_>> {
        let (name, server) = self.unavailable.get_key_value(name)?;
        Some(UnavailableCatalogServer { name, server })
    }

    /// Returns all callable prompts with their definitions, in the order of the configuration and of
    /// each server's list. A server has at most 10,000 prompts.
    pub fn prompts(&self) -> impl Iterator<Item = CatalogPrompt<'_>> {
        self.entries().flat_map(move |entry| {
            let server = &*entry.connection.server;
            // Each definition of the listing has a route.
            entry.routes.prompts.iter().zip(&entry.listing.prompts).filter_map(
                move |(route, definition)| {
                    let public_name = name::public_name(server, &route.name);
                    let (public_name, routed) = self.prompts.get_key_value(&public_name)?;
                    Arc::ptr_eq(routed, route).then_some(CatalogPrompt {
                        public_name,
                        server,
                        definition,
                    })
                },
            )
        })
    }

    /// Returns all readable resources with their definitions, in the order of the configuration and
    /// of each server's list. A server has at most 10,000 resources.
    pub fn resources(&self) -> impl Iterator<Item = CatalogResource<'_>> {
        self.entries().flat_map(|entry| {
            let server = &*entry.connection.server;
            entry.listing.resources.iter().map(move |definition| {
                let uri = definition.view.uri.as_str();
                CatalogResource { uri, server, definition }
            })
        })
    }

    /// Returns all usable resource templates with their definitions, in the order of the
    /// configuration and of each server's list. A server has at most 10,000 templates.
    pub fn resource_templates(&self) -> impl Iterator<Item = CatalogTemplate<'_>> {
        self.entries().flat_map(|entry| {
            let server = &*entry.connection.server;
            entry.listing.resource_templates.iter().map(move |definition| {
                let uri_template = definition.view.uri_template.as_str();
                CatalogTemplate { uri_template, server, definition }
            })
        })
    }
}
