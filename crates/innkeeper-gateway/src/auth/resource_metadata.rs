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
}

impl ResourceMetadata {
    /// Returns the metadata for the audience of the settings; `None` if the audience is not a URL.
    pub(super) fn new(settings: &OauthSettings) -> Option<Self> {
        let resource = settings.audience.as_str();
        let (scheme, rest) = resource.split_once("://")?;
        let is_http = ["https", "http"].iter().any(|known| known.eq_ignore_ascii_case(scheme));
        let authority = rest.split('/').next().unwrap_or_default();
        let is_printable = |byte: u8| byte.is_ascii_graphic() && !b"\"\\?#".contains(&byte);
        if !is_http || authority.is_empty() || !rest.bytes().all(is_printable) {
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
        })
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
