//! Prompt templates of the model families, and custom templates.

use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value, context};
use thiserror::Error;

use super::example;
use super::message::{PromptMessage, Role};
use super::sanitized_tool::SanitizedTool;
use crate::{ModelFamily, Tools};

/// Maximum cost of rendering: one unit per template step and per 64 bytes, so that a prompt has at
/// most about 6 MB. Usual prompts need a hundredth of the limit.
pub(super) const RENDER_FUEL: u64 = 100_000;

/// Maximum size of a template in bytes; the built-in templates have about 2,000.
pub(super) const MAX_SOURCE_BYTES: usize = 64 << 10;

/// A prompt template for a model family: tools, rules and history.
#[derive(Debug, Clone)]
pub struct Template {
    name: String,
    family: ModelFamily,
    source: String,
}

/// An error of a template.
#[derive(Debug, Error)]
pub enum TemplateError {
    /// The template has a syntax error.
    #[error("invalid template `{name}`, line {line}: {reason}")]
    Syntax {
        /// Name of the template.
        name: String,
        /// Line number, from 1.
        line: usize,
        /// Description of the syntax error.
        reason: String,
    },
    /// The template uses an undefined value or an invalid operation.
    #[error("cannot render template `{name}`, line {line}: {reason}")]
    Render {
        /// Name of the template.
        name: String,
        /// Line number, from 1; 0 if unknown.
        line: usize,
        /// Description of the error.
        reason: String,
    },
    /// Rendering exceeds the limit of time or output size.
    #[error("prompt of template `{name}` too long: shorten the input or the template")]
    RenderLimitExceeded {
        /// Name of the template.
        name: String,
    },
    /// The template itself is too long.
    #[error("template `{name}` too long: {length} bytes, limit {MAX_SOURCE_BYTES}")]
    SourceTooLong {
        /// Name of the template.
        name: String,
        /// Size of the template in bytes.
        length: usize,
    },
}

impl Template {
    /// Returns the template of a model's family, which the model's name determines.
    pub fn for_model(model: &str) -> Self {
        Self::for_family(ModelFamily::for_model(model))
    }

    /// Returns the template of a family.
    pub fn for_family(family: ModelFamily) -> Self {
        let source = match family {
            ModelFamily::Generic => include_str!("templates/generic.jinja"),
            ModelFamily::Llama31 => include_str!("templates/llama3.1.jinja"),
            ModelFamily::Mistral => include_str!("templates/mistral.jinja"),
            ModelFamily::Qwen25Coder => include_str!("templates/qwen2.5-coder.jinja"),
        };
        Self { name: family.name().to_owned(), family, source: source.to_owned() }
    }

    /// Creates a custom template in the Jinja language. `name` appears in error messages.
    ///
    /// Available variables: `system`, the application's system prompt; `tools`, each with `name`,
    /// `description` and `parameters`, which are safe on one line; `form` and `example`, a call in
    /// the family's form; and `turns`, the messages, each with `role` and `text`, empty for a
    /// system prompt. Any other variable is an error.
    ///
    /// # Errors
    ///
    /// Returns an error if the template is longer than 64 KiB or has a syntax error.
    pub fn from_source(
        name: impl Into<String>,
        family: ModelFamily,
        source: impl Into<String>,
    ) -> Result<Self, TemplateError> {
        let template = Self { name: name.into(), family, source: source.into() };
        let length = template.source.len();
        if length > MAX_SOURCE_BYTES {
            return Err(TemplateError::SourceTooLong { name: template.name, length });
        }
        let checked =
            environment().template_from_named_str(&template.name, &template.source).map(drop);
        match checked {
            Ok(()) => Ok(template),
            Err(error) => Err(template.to_template_error(&error)),
        }
    }

    /// Returns the family whose call form the template uses.
    pub fn family(&self) -> ModelFamily {
        self.family
    }

    /// Returns the system prompt with the tools and the rules for calls. Without tools, returns
    /// `system` unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error if a custom template fails or the prompt is too long.
    pub fn system_prompt(&self, system: &str, tools: &Tools) -> Result<String, TemplateError> {
        if tools.is_empty() {
            return Ok(system.to_owned());
        }
        self.render(system, tools, &[])
    }

    /// Returns a complete prompt: the system prompt with the tools, the history, the new user
    /// message, and the start of the model's response.
    ///
    /// # Errors
    ///
    /// Returns an error if a custom template fails or the prompt is too long.
    pub fn conversation_prompt(
        &self,
        system: &str,
        tools: &Tools,
        history: &[PromptMessage],
        message: &str,
    ) -> Result<String, TemplateError> {
        let mut messages = history.to_vec();
        messages.push(PromptMessage::new(Role::User, message));
        self.render(system, tools, &messages)
    }

    fn render(
        &self,
        system: &str,
        tools: &Tools,
        messages: &[PromptMessage],
    ) -> Result<String, TemplateError> {
        let tool_values: Vec<Value> = tools
            .iter()
            .map(|tool| {
                let SanitizedTool { name, description, parameters } =
                    SanitizedTool::from_tool(tool);
                context! { name, description, parameters }
            })
            .collect();
        let message_values: Vec<Value> = messages
            .iter()
            .map(|message| context! { role => message.role.label(), text => message.to_prompt_text() })
            .collect();
        let values = context! {
            system => system,
            tools => tool_values,
            form => self.family.call_template(),
            example => example::example_call(self.family, tools).unwrap_or_default(),
            turns => message_values,
        };
        let environment = environment();
        let template = environment.template_from_named_str(&self.name, &self.source);
        template
            .and_then(|compiled| compiled.render(values))
            .map_err(|error| self.to_template_error(&error))
    }

    fn to_template_error(&self, error: &minijinja::Error) -> TemplateError {
        let name = self.name.clone();
        let line = error.line().unwrap_or_default();
        let reason = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        match error.kind() {
            ErrorKind::OutOfFuel => TemplateError::RenderLimitExceeded { name },
            ErrorKind::SyntaxError => TemplateError::Syntax { name, line, reason },
            _ => TemplateError::Render { name, line, reason },
        }
    }
}

/// Returns the rendering environment: bounded, without HTML escaping, and without access to other
/// templates.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(RENDER_FUEL));
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment
}
