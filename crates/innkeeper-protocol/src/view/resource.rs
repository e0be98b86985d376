//! Resource definitions and resource templates.

use serde_json::value::RawValue;

use super::{ObjectView, ViewError, uri_matches};

/// A resource in a server's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The URI of the resource.
    pub uri: String,
    /// The name of the resource.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// The description of the contents.
    pub description: Option<String>,
    /// The media type.
    pub mime_type: Option<String>,
    /// The size in bytes.
    pub size: Option<u64>,
}

/// A URI template for resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceTemplate {
    /// The template (RFC 6570).
    pub uri_template: String,
    /// The name of the resources.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// The description of the contents.
    pub description: Option<String>,
    /// The media type of all resources of this template.
    pub mime_type: Option<String>,
}

impl Resource {
    /// Reads one item of `resources/list`.
    ///
    /// # Errors
    ///
    /// Returns an error if `uri` or `name` is not a string.
    pub fn from_raw(raw: &RawValue) -> Result<Self, ViewError> {
        let members = ["uri", "name", "title", "description", "mimeType", "size"];
        let resource = ObjectView::from_raw(raw, members)?;
        Ok(Self {
            uri: resource.required_string("uri")?,
            name: resource.required_string("name")?,
            title: resource.string("title"),
            description: resource.string("description"),
            mime_type: resource.string("mimeType"),
            size: resource.unsigned("size"),
        })
    }
}

impl ResourceTemplate {
    /// Reads one item of `resources/templates/list`.
    ///
    /// # Errors
    ///
    /// Returns an error if `uriTemplate` or `name` is not a string.
    pub fn from_raw(raw: &RawValue) -> Result<Self, ViewError> {
        let members = ["uriTemplate", "name", "title", "description", "mimeType"];
        let template = ObjectView::from_raw(raw, members)?;
        Ok(Self {
            uri_template: template.required_string("uriTemplate")?,
            name: template.required_string("name")?,
            title: template.string("title"),
            description: template.string("description"),
            mime_type: template.string("mimeType"),
        })
    }

    /// Whether this template can expand to `uri`; see [`uri_matches`].
    pub fn matches(&self, uri: &str) -> bool {
        uri_matches(&self.uri_template, uri)
    }
}
