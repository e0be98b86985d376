//! The metadata of the gateway as a protected resource (RFC 9728).

use serde_json::{Value, json};

use super::OauthSettings;

/// The first part of the path of the metadata.
const WELL_KNOWN_PATH: &str = "/.well-known/oauth-protected-resource";

/// The metadata document with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceMetadata {
    resource: String,
    issuer: String,
    scopes: Vec<String>,
    /// Scheme and authority of the resource.
    origin: String,
    path: String,
    /// The path before that of an endpoint; `None` if the audience is not the URL of `/mcp`.
    base: Option<String>,
}

/// The first parts of the paths of endpoints.
const ENDPOINT_PATHS: [&str; 5] = ["mcp", "sse", "tools", "openapi.json", "endpoints"];

impl ResourceMetadata {
    /// Returns the metadata for the audience of the settings; `None` if the audience is not a URL.
    pub(super) fn new(settings: &OauthSettings) -> Option<Self> {
        let resource = settings.audience.as_str();
        let (scheme, rest) = resource.split_once("://")?;
        let is_http = ["https", "http"].iter().any(|known| known.eq_ignore_ascii_case(scheme));
        let authority = rest.split('/').next().unwrap_or_default();
        let is_printable =
            rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\?#".contains(&byte));
        if !is_http || authority.is_empty() || !is_printable {
            return None;
        }
        let path = &rest[authority.len()..];
        let path = if path == "/" { "" } else { path };
        Some(Self {
            resource: resource.to_owned(),
            issuer: settings.issuer.clone(),
            scopes: settings.required_scopes.clone(),
            origin: format!("{scheme}://{authority}"),
            path: format!("{WELL_KNOWN_PATH}{path}"),
            base: path.strip_suffix("/mcp").map(ToOwned::to_owned),
        })
    }

    /// Returns the metadata for the URL that a client uses, which must be the resource (RFC 9728, 3.3):
    /// that of the endpoint with this path. Of other paths, and if the audience is not the URL of `/mcp`,
    /// the resource is the audience.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        self.of_endpoint(path).unwrap_or_else(|| self.clone())
    }

    /// Returns the metadata for the path of an endpoint; `None` for another path.
    pub(crate) fn of_endpoint(&self, path: &str) -> Option<Self> {
        let base = self.base.as_deref()?;
        let path = path.trim_end_matches('/');
        let first = path.strip_prefix('/')?.split('/').next()?;
        let is_endpoint = ENDPOINT_PATHS.contains(&first);
        (is_endpoint
            && path.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte)))
        .then(|| Self {
            resource: format!("{}{base}{path}", self.origin),
            path: format!("{WELL_KNOWN_PATH}{base}{path}"),
            ..self.clone()
        })
    }

    /// Returns the path of the documents of all endpoints, without that of the endpoint.
    pub(crate) fn endpoints_path(&self) -> Option<String> {
        Some(format!("{WELL_KNOWN_PATH}{}", self.base.as_deref()?))
    }

    /// Returns the resource, which a token can have as its audience.
    pub(super) fn resource(&self) -> &str {
        &self.resource
    }

    /// Returns the path where clients expect the document: the well-known path, followed by the path
    /// of the resource.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the URL of the document, as in challenges.
    pub fn url(&self) -> String {
        format!("{}{}", self.origin, self.path)
    }

    /// Returns the scopes that each token must contain.
    pub(super) fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns the document.
    pub fn document(&self) -> Value {
        let mut document = json!({
            "resource": self.resource,
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
        });
        if !self.scopes.is_empty() {
            document["scopes_supported"] = json!(self.scopes);
        }
        document
    }
}
