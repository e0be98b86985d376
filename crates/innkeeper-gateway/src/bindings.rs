//! The servers and endpoints that each client is bound to.
//!
//! A client that is bound to servers gets endpoints of its own: those of all clients, reduced to its servers. A
//! list, an offering, a subscription or a task of such an endpoint knows nothing of other servers, and no
//! method has to ask whether the client may use one.

use std::collections::HashMap;
use std::sync::Arc;

use innkeeper_host::config::{BindingConfig, MCP_ENDPOINT, ServeConfig};

use crate::options::{EndpointOptions, GatewayOptions};
use crate::principal::Principal;

/// What a client is bound to. The default is bound to nothing: the client may use everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The servers that the client may use. Default: all servers.
    pub servers: Option<Vec<String>>,
    /// The names of the endpoints that the client may use, with `/mcp` for the endpoint without a name.
    /// Default: all endpoints.
    pub endpoints: Option<Vec<String>>,
}

impl Binding {
    /// Returns whether the client may use everything.
    pub(crate) fn is_unbound(&self) -> bool {
        self.servers.is_none() && self.endpoints.is_none()
    }

    fn has_endpoint(&self, endpoint: &Endpoint) -> bool {
        if endpoint.is_legacy {
            let has_server = endpoint.options.servers.as_ref().is_none_or(|own| !own.is_empty());
            return self.endpoints.is_none() && has_server;
        }
        let name = endpoint.name.as_deref().unwrap_or(MCP_ENDPOINT);
        self.endpoints.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
    }

    /// Returns the options of an endpoint, reduced to the servers of the client.
    fn reduce(&self, options: &EndpointOptions) -> EndpointOptions {
        let Some(own) = &self.servers else { return options.clone() };
        let servers = own.iter().filter(|server| options.has_server(server));
        EndpointOptions { servers: Some(servers.cloned().collect()), ..options.clone() }
    }
}

impl From<&BindingConfig> for Binding {
    fn from(config: &BindingConfig) -> Self {
        let BindingConfig { servers, endpoints } = config;
        Self { servers: servers.clone(), endpoints: endpoints.clone() }
    }
}

/// The bindings of all clients.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    clients: HashMap<Arc<str>, Binding>,
    others: Binding,
}

impl Bindings {
    /// Creates the bindings of single clients, and the binding of all other clients.
    pub fn new(clients: impl IntoIterator<Item = (Principal, Binding)>, others: Binding) -> Self {
        let clients = clients.into_iter().map(|(client, own)| (Arc::clone(client.id()), own));
        Self { clients: clients.collect(), others }
    }

    /// Creates the bindings of the configuration. The local user may use everything.
    pub fn from_config(config: &ServeConfig) -> Self {
        let keys = config.auth.api_keys.iter();
        let keys =
            keys.map(|key| (Principal::new(key.principal.as_str()), Binding::from(&key.binding)));
        let local = (Principal::local_user(), Binding::default());
        let tokens = config.auth.oauth.as_ref().map(|oauth| Binding::from(&oauth.binding));
        Self::new(keys.chain([local]), tokens.unwrap_or_default())
    }

    fn binding_of(&self, client: &Principal) -> &Binding {
        self.clients.get(client.id()).unwrap_or(&self.others)
    }
}

/// An endpoint: what clients of one address see.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// `None` for `/mcp`.
    pub(crate) name: Option<String>,
    pub(crate) options: EndpointOptions,
    /// Whether clients use the legacy era only: it changes no result of a server of either era.
    pub(crate) is_legacy: bool,
    /// Whether the endpoint belongs to clients that are bound to some servers.
    pub(crate) is_bound: bool,
}

impl Endpoint {
    fn new(name: Option<String>, options: EndpointOptions) -> Self {
        Self { name, options, is_legacy: false, is_bound: false }
    }
}

/// All endpoints: those of all clients, then those of bound clients.
#[derive(Debug)]
pub(crate) struct Endpoints {
    all: Vec<Endpoint>,
    bindings: Bindings,
    /// The places of the endpoints of a binding, by those of the endpoints of all clients; `None` for an
    /// endpoint that the binding does not have.
    places: HashMap<Binding, Box<[Option<usize>]>>,
}

impl Endpoints {
    /// Returns the endpoints of a gateway: that at `/mcp`, the named ones, and one for each server with
    /// connections of its own.
    pub(crate) fn from_options(options: &GatewayOptions, bindings: Bindings) -> Self {
        let unnamed = Endpoint::new(None, options.endpoint.clone());
        let named = options.named_endpoints.iter();
        let named = named.map(|(name, own)| Endpoint::new(Some(name.clone()), own.clone()));
        let of_servers = options.connection_servers.iter().map(|server| Endpoint {
            is_legacy: true,
            ..Endpoint::new(None, EndpointOptions::for_server(server))
        });
        Self::new(std::iter::once(unnamed).chain(named).chain(of_servers).collect(), bindings)
    }

    fn new(common: Vec<Endpoint>, bindings: Bindings) -> Self {
        let mut all = common;
        let count = all.len();
        let mut places = HashMap::new();
        let bound = bindings.clients.values().chain([&bindings.others]);
        for binding in bound.filter(|binding| !binding.is_unbound()) {
            if places.contains_key(binding) {
                continue;
            }
            let mut own = Vec::with_capacity(count);
            for index in 0..count {
                let Endpoint { name, options, is_legacy, .. } = &all[index];
                let reduced = Endpoint {
                    name: name.clone(),
                    options: binding.reduce(options),
                    is_legacy: *is_legacy,
                    is_bound: true,
                };
                let place = match &binding.servers {
                    _ if !binding.has_endpoint(&reduced) => None,
                    None => Some(index),
                    Some(_) => {
                        all.push(reduced);
                        Some(all.len() - 1)
                    }
                };
                own.push(place);
            }
            places.insert(binding.clone(), own.into());
        }
        Self { all, bindings, places }
    }

    /// Returns all endpoints, those of all clients first.
    pub(crate) fn all(&self) -> &[Endpoint] {
        &self.all
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Endpoint> {
        self.all.get(index)
    }

    pub(crate) fn options(&self, index: usize) -> &EndpointOptions {
        &self.all[index].options
    }

    /// Returns whether an endpoint changes no result of a server of either era.
    pub(crate) fn is_legacy(&self, index: usize) -> bool {
        self.all.get(index).is_some_and(|endpoint| endpoint.is_legacy)
    }

    /// Returns what an endpoint is called in questions: the number may be another one after a restart.
    /// `None` for `/mcp`.
    pub(crate) fn label(&self, index: usize) -> Option<String> {
        let endpoint = self.all.get(index)?;
        let servers = endpoint.options.servers.as_ref().filter(|_| endpoint.is_legacy);
        // No name of an endpoint has a colon.
        let of_server = servers.and_then(|servers| Some(format!(":{}", servers.first()?)));
        of_server.or_else(|| endpoint.name.clone())
    }

    /// Returns the index of the endpoint that a client gets in place of the endpoint of all clients; `None`
    /// for an unknown endpoint and for one that the client is not bound to.
    pub(crate) fn find(&self, client: &Principal, name: Option<&str>) -> Option<usize> {
        self.place_for(
            client,
            self.all
                .iter()
                .position(|endpoint| !endpoint.is_legacy && endpoint.name.as_deref() == name)?,
        )
    }

    /// Returns the index of the endpoint that a client gets in place of the one with this index.
    pub(crate) fn place_for(&self, client: &Principal, index: usize) -> Option<usize> {
        match self.places.get(self.bindings.binding_of(client)) {
            None => Some(index),
            Some(own) => *own.get(index)?,
        }
    }

    /// Returns whether no client is bound: every client then gets the same from a shared server.
    pub(crate) fn are_same_for_all(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns whether a client may use everything.
    pub(crate) fn is_unbound(&self, client: &Principal) -> bool {
        self.bindings.binding_of(client).is_unbound()
    }

    pub(crate) fn offer_server(&self, client: &Principal, server: &str) -> bool {
        let common = self.all.iter().enumerate();
        let mut common = common.filter(|(_, one)| !one.is_bound && !one.is_legacy);
        common.any(|(index, _)| {
            let own = self.place_for(client, index).and_then(|place| self.all.get(place));
            own.is_some_and(|endpoint| endpoint.options.has_server(server))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owned(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn endpoint(name: Option<&str>, servers: Option<&[&str]>) -> Endpoint {
        let options =
            EndpointOptions { servers: servers.and_then(owned), ..EndpointOptions::default() };
        Endpoint::new(name.map(ToOwned::to_owned), options)
    }

    fn endpoints() -> Endpoints {
        let common = vec![
            endpoint(None, None),
            endpoint(Some("x"), Some(&["a", "b"])),
            endpoint(Some("y"), Some(&["c"])),
        ];
        let bindings = [
            ("a", Binding { servers: owned(&["a"]), endpoints: None }),
            ("a2", Binding { servers: owned(&["a"]), endpoints: None }),
            ("x", Binding { servers: None, endpoints: owned(&["x"]) }),
            ("both", Binding { servers: owned(&["b"]), endpoints: owned(&["/mcp", "y"]) }),
        ];
        let bindings = bindings.map(|(name, binding)| (Principal::new(name), binding));
        Endpoints::new(common, Bindings::new(bindings, Binding::default()))
    }

    fn servers(endpoints: &Endpoints, client: &str, name: Option<&str>) -> Option<Vec<String>> {
        let index = endpoints.find(&Principal::new(client), name)?;
        let options = &endpoints.get(index)?.options;
        Some(
            ["a", "b", "c"]
                .map(ToOwned::to_owned)
                .into_iter()
                .filter(|name| options.has_server(name))
                .collect(),
        )
    }

    /// Attack: remote | a client uses an endpoint or a server that its key is not bound to | the endpoint is
    /// unknown, and the others do not have the server | Isolation
    #[test]
    fn a_bound_client_has_the_servers_and_endpoints_of_its_key_only() {
        let endpoints = endpoints();
        let of = |client, name| servers(&endpoints, client, name);
        for (client, expected) in [
            ("a", [owned(&["a"]), owned(&["a"]), owned(&[])]),
            ("a2", [owned(&["a"]), owned(&["a"]), owned(&[])]),
            ("x", [None, owned(&["a", "b"]), None]),
            ("both", [owned(&["b"]), None, owned(&[])]),
            ("else", [owned(&["a", "b", "c"]), owned(&["a", "b"]), owned(&["c"])]),
        ] {
            assert_eq!(
                [None, Some("x"), Some("y")].map(|name| of(client, name)),
                expected,
                "{client}"
            );
            assert_eq!(of(client, Some("z")), None);
        }
        assert_eq!(endpoints.all().len(), 3 + 3 + 2, "equal bindings share endpoints");
        let offers = |client: &str| {
            ["a", "b", "c"].map(|server| endpoints.offer_server(&Principal::new(client), server))
        };
        assert_eq!(offers("a"), [true, false, false]);
        assert_eq!(offers("x"), [true, true, false]);
        assert_eq!(offers("both"), [false, true, false]);
        assert_eq!(offers("else"), [true; 3]);
    }

    #[test]
    fn the_bindings_of_the_configuration_are_those_of_its_clients() {
        let serve = json!({
            "auth": {
                "apiKeys": [
                    {"principal": "ci", "sha256": "0".repeat(64), "servers": [], "endpoints": ["/mcp", "e"]},
                    {"principal": "ann", "sha256": "1".repeat(64)},
                ],
                "oauth": {"issuer": "https://a.b", "audience": "https://a.b",
                    "jwksUrl": "https://a.b", "endpoints": ["e"]},
            },
            "endpoints": {"e": {}},
        });
        let bindings = Bindings::from_config(&crate::test_config::serve(&serve));
        let of = |client: &str| bindings.binding_of(&Principal::new(client)).clone();
        assert_eq!(of("ci"), Binding { servers: owned(&[]), endpoints: owned(&["/mcp", "e"]) });
        assert_eq!(of("oauth:any"), Binding { servers: None, endpoints: owned(&["e"]) });
        assert!(of("ann").is_unbound() && of("local").is_unbound());
    }
}
