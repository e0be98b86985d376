//! Resources and resource templates as a server describes them.

use serde_json::value::RawValue;

use super::{Object, ViewError, uri_matches};

/// A resource in a server's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// What it is called.
    pub name: String,
    /// What people may be shown instead.
    pub title: Option<String>,
    /// What it holds.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
}

/// A template that addresses of resources can be made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceTemplate {
    /// The template, after RFC 6570.
    pub uri_template: String,
    /// What its resources are called.
    pub name: String,
    /// What people may be shown instead.
    pub title: Option<String>,
    /// What its resources hold.
    pub description: Option<String>,
    /// The media type that all of its resources have.
    pub mime_type: Option<String>,
}

impl Resource {
    /// Reads one item of `resources/list`.
    ///
    /// # Errors
    ///
    /// If `uri` or `name` is not a string.
    pub fn read(raw: &RawValue) -> Result<Self, ViewError> {
        let wanted = ["uri", "name", "title", "description", "mimeType", "size"];
        let resource = Object::read(raw, wanted)?;
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
    /// If `uriTemplate` or `name` is not a string.
    pub fn read(raw: &RawValue) -> Result<Self, ViewError> {
        let wanted = ["uriTemplate", "name", "title", "description", "mimeType"];
        let template = Object::read(raw, wanted)?;
        Ok(Self {
            uri_template: template.required_string("uriTemplate")?,
            name: template.required_string("name")?,
            title: template.string("title"),
            description: template.string("description"),
            mime_type: template.string("mimeType"),
        })
    }

    /// Whether `uri` can have been made of this template; see [`uri_matches`].
    pub fn matches(&self, uri: &str) -> bool {
        uri_matches(&self.uri_template, uri)
    }
}
