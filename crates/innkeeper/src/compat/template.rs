//! `PromptTemplate`: the description of tools in the prompt, and the format of calls.

use innkeeper_toolcall::prompt::{Template, TemplateError};
use innkeeper_toolcall::{Format, ModelFamily};

/// A template that describes the tools in the prompt, and the format in which the parser looks for
/// calls.
///
/// ```
/// use innkeeper::compat::PromptTemplate;
/// use innkeeper_toolcall::{Format, ModelFamily};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let template = PromptTemplate::new("custom-model")
///     .with_family(ModelFamily::Qwen25Coder)
///     .with_format(Format::from_name("hermes").ok_or("no such format")?)
///     .with_layout("{{ system }}\nTools:{% for tool in tools %} {{ tool.name }}{% endfor %}\nCall: {{ form }}")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PromptTemplate {
    layout: Template,
    format: Format,
    name: String,
}

impl PromptTemplate {
    /// Creates the template of the model's family, which the name determines. The parser detects
    /// the format of calls.
    pub fn new(model: impl Into<String>) -> Self {
        let name = model.into();
        Self { layout: Template::for_model(&name), format: Format::Detect, name }
    }

    /// Sets the family, which determines the layout and the form of calls in the prompt.
    #[must_use]
    pub fn with_family(mut self, family: ModelFamily) -> Self {
        self.layout = Template::for_family(family);
        self
    }

    /// Sets the format of calls. The parser also accepts standalone JSON calls, but no other
    /// format.
    #[must_use]
    pub fn with_format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Sets a custom layout; see [`Template::from_source`].
    ///
    /// # Errors
    ///
    /// Returns an error if the layout is not a valid template.
    pub fn with_layout(mut self, layout: impl Into<String>) -> Result<Self, TemplateError> {
        self.layout = Template::from_source(self.name.clone(), self.layout.family(), layout)?;
        Ok(self)
    }

    /// Returns the layout of the prompt.
    pub fn layout(&self) -> &Template {
        &self.layout
    }

    /// Returns the format in which the parser looks for calls.
    pub fn format(&self) -> Format {
        self.format
    }

    pub(super) fn into_layout(self) -> Template {
        self.layout
    }
}
