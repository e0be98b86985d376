//! `PromptTemplate`: how a model is told of tools, and how its calls are read.

use innkeeper_toolcall::prompt::{Template, TemplateError};
use innkeeper_toolcall::{Family, Format};

/// How a model is told of tools, and in which format its calls are looked for.
///
/// ```
/// use innkeeper::compat::PromptTemplate;
/// use innkeeper::toolcall::{Family, Format};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let template = PromptTemplate::new("custom-model")
///     .with_family(Family::Qwen25Coder)
///     .with_format(Format::named("hermes").ok_or("no such format")?)
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
    /// The template that is best for this model, by its name; any format of calls is read.
    pub fn new(model: impl Into<String>) -> Self {
        let name = model.into();
        Self { layout: Template::of(&name), format: Format::Detect, name }
    }

    /// Calls are asked for in the form of this family, with its layout.
    #[must_use]
    pub fn with_family(mut self, family: Family) -> Self {
        self.layout = Template::of_family(family);
        self
    }

    /// Calls are read in this format, and as JSON that stands alone; in no other.
    #[must_use]
    pub fn with_format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// A layout of one's own, as [`Template::own`] describes it.
    ///
    /// # Errors
    ///
    /// It is not written as templates are.
    pub fn with_layout(mut self, layout: impl Into<String>) -> Result<Self, TemplateError> {
        self.layout = Template::own(self.name.clone(), self.layout.family(), layout)?;
        Ok(self)
    }

    /// What the model is told with.
    pub fn layout(&self) -> &Template {
        &self.layout
    }

    /// In which format its calls are looked for.
    pub fn format(&self) -> Format {
        self.format
    }

    pub(super) fn into_layout(self) -> Template {
        self.layout
    }
}
