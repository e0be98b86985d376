//! Templates: one for each family of models, and those of one's own.

use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value, context};
use thiserror::Error;

use super::example;
use super::shown::Shown;
use super::turn::{Role, Turn};
use crate::{Family, Tools};

/// What rendering may cost: one for each step of a template and for each 64 bytes it handles, so
/// that a prompt is never much longer than 6 MB. The longest in use are a hundredth of that.
pub(super) const FUEL: u64 = 100_000;

/// The longest template, in bytes; those here have some two thousand.
pub(super) const SOURCE: usize = 64 << 10;

/// The words around tools and history, for one family of models.
#[derive(Debug, Clone)]
pub struct Template {
    name: String,
    family: Family,
    source: String,
}

/// Why a template gives no prompt.
#[derive(Debug, Error)]
pub enum TemplateError {
    /// It is not written as templates are.
    #[error("line {line} of the template `{name}` is wrong: {reason}")]
    Syntax {
        /// The template.
        name: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// It asks for what is not there, or does with it what cannot be done.
    #[error("line {line} of the template `{name}` fails: {reason}")]
    Render {
        /// The template.
        name: String,
        /// The line, counted from 1; 0 if none is to blame.
        line: usize,
        /// What failed.
        reason: String,
    },
    /// Rendering it takes too long, or gives too much.
    #[error(
        "the template `{name}` makes a prompt that is too long: shorten what goes in, or the template"
    )]
    TooMuch {
        /// The template.
        name: String,
    },
    /// The template itself is too long.
    #[error("the template `{name}` has {length} bytes, {SOURCE} are the limit")]
    TooLong {
        /// The template.
        name: String,
        /// Its length in bytes.
        length: usize,
    },
}

impl Template {
    /// The template of a model's family, found by the model's name.
    pub fn of(model: &str) -> Self {
        Self::of_family(Family::of(model))
    }

    /// The template of a family.
    pub fn of_family(family: Family) -> Self {
        let source = match family {
            Family::Generic => include_str!("templates/generic.jinja"),
            Family::Llama31 => include_str!("templates/llama3.1.jinja"),
            Family::Mistral => include_str!("templates/mistral.jinja"),
            Family::Qwen25Coder => include_str!("templates/qwen2.5-coder.jinja"),
        };
        Self { name: family.name().to_owned(), family, source: source.to_owned() }
    }

    /// A template of one's own, in Jinja's language, under a name that errors say.
    ///
    /// It is given `system`, the text to begin with; `tools`, each with `name`, `description` and
    /// `parameters`, safe to stand on one line; `form` and `example`, a call in the family's form;
    /// and `turns`, each with `role` and `text`, empty where only the system text is wanted. Asking
    /// for anything else is an error.
    ///
    /// # Errors
    ///
    /// It is longer than 64 KiB, or not written as templates are.
    pub fn own(
        name: impl Into<String>,
        family: Family,
        source: impl Into<String>,
    ) -> Result<Self, TemplateError> {
        let template = Self { name: name.into(), family, source: source.into() };
        let length = template.source.len();
        if length > SOURCE {
            return Err(TemplateError::TooLong { name: template.name, length });
        }
        let checked =
            environment().template_from_named_str(&template.name, &template.source).map(drop);
        match checked {
            Ok(()) => Ok(template),
            Err(error) => Err(template.wrong(&error)),
        }
    }

    /// The form of calls that the template asks for.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The system text with the tools and the rules of calling them; without tools, the system text
    /// as it is.
    ///
    /// # Errors
    ///
    /// A template of one's own fails, or there is too much to say.
    pub fn enhance(&self, system: &str, tools: &Tools) -> Result<String, TemplateError> {
        if tools.is_empty() {
            return Ok(system.to_owned());
        }
        self.render(system, tools, &[])
    }

    /// A whole prompt: the system text with the tools, what was said so far, the new message of the
    /// person, and the beginning of the model's turn.
    ///
    /// # Errors
    ///
    /// A template of one's own fails, or there is too much to say.
    pub fn conversation(
        &self,
        system: &str,
        tools: &Tools,
        history: &[Turn],
        message: &str,
    ) -> Result<String, TemplateError> {
        let mut turns = history.to_vec();
        turns.push(Turn::new(Role::User, message));
        self.render(system, tools, &turns)
    }

    fn render(&self, system: &str, tools: &Tools, turns: &[Turn]) -> Result<String, TemplateError> {
        let offered: Vec<Value> = tools
            .iter()
            .map(|tool| {
                let Shown { name, description, parameters } = Shown::of(tool);
                context! { name, description, parameters }
            })
            .collect();
        let said: Vec<Value> = turns
            .iter()
            .map(|turn| context! { role => turn.role.label(), text => turn.written() })
            .collect();
        let values = context! {
            system => system,
            tools => offered,
            form => self.family.form(),
            example => example::call(self.family, tools).unwrap_or_default(),
            turns => said,
        };
        let environment = environment();
        let template = environment.template_from_named_str(&self.name, &self.source);
        template.and_then(|it| it.render(values)).map_err(|error| self.wrong(&error))
    }

    fn wrong(&self, error: &minijinja::Error) -> TemplateError {
        let name = self.name.clone();
        let line = error.line().unwrap_or_default();
        let reason = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        match error.kind() {
            ErrorKind::OutOfFuel => TemplateError::TooMuch { name },
            ErrorKind::SyntaxError => TemplateError::Syntax { name, line, reason },
            _ => TemplateError::Render { name, line, reason },
        }
    }
}

/// Where templates are rendered: bounded, with nothing escaped for HTML, and with no way to name
/// another template.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment
}
