//! A tool's input schema in the words of each provider, with a report of what it lost on the way.
//!
//! A schema is read into what JSON Schema 2020-12 can say, whatever draft or dialect it is in
//! (`fit/read.rs`), its root is made an object (`fit/root.rs`), what the provider does not take is said
//! another way or in the description (`fit/lower.rs`), and for a strict form every object is closed
//! (`fit/strict.rs`). What a provider takes is data (`fit/rules.rs`). A strict form that cannot be had
//! becomes the plain one, and the report says why.
//!
//! In OpenAI's strict form a property that may be absent is required and may be `null`;
//! Gemini gets some parameters under another name. [`Fitted::unfit`] is the way back.
//!
//! Nothing is unbounded: a schema is read 64 levels deep and as if it were 1 MiB long, with its
//! references written out where they cannot stay. What is beyond accepts everything, and the report
//! says where. JSON that is no schema gives the schema of any object.

mod back;
mod keyword;
mod losses;
mod lower;
mod merge;
mod node;
mod read;
mod root;
mod rules;
mod strict;
mod types;
mod write;

use serde_json::Value;

use crate::Json;
use losses::Losses;
pub use losses::{Change, Loss};
use node::Tree;
use rules::Rules;
use strict::Spent;

/// Whose words a schema is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI without `strict`: JSON Schema.
    OpenAi,
    /// OpenAI with `strict`.
    OpenAiStrict,
    /// Anthropic without `strict`: JSON Schema.
    Anthropic,
    /// Anthropic with `strict`. What a whole request may have of it, [`fit_all`] knows.
    AnthropicStrict,
    /// Gemini's `parametersJsonSchema`.
    Gemini,
    /// Ollama's tools.
    Ollama,
    /// JSON Schema 2020-12 without references, to stand inside another schema or a grammar.
    JsonSchema,
}

impl Dialect {
    fn rules(self) -> &'static Rules {
        match self {
            Self::OpenAi => &rules::OPENAI,
            Self::OpenAiStrict => &rules::OPENAI_STRICT,
            Self::Anthropic => &rules::ANTHROPIC,
            Self::AnthropicStrict => &rules::ANTHROPIC_STRICT,
            Self::Gemini => &rules::GEMINI,
            Self::Ollama => &rules::OLLAMA,
            Self::JsonSchema => &rules::JSON_SCHEMA,
        }
    }

    /// The form to fall back to.
    fn plain(self) -> &'static Rules {
        match self {
            Self::OpenAi | Self::OpenAiStrict => &rules::OPENAI,
            Self::Anthropic | Self::AnthropicStrict => &rules::ANTHROPIC,
            Self::Gemini => &rules::GEMINI,
            Self::Ollama => &rules::OLLAMA,
            Self::JsonSchema => &rules::JSON_SCHEMA,
        }
    }
}

/// A fitted schema.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// What to send.
    pub schema: Value,
    /// Whether to send it with `strict`.
    pub strict: bool,
    /// What is said otherwise than in the tool's own schema, a thousand at most.
    pub losses: Vec<Loss>,
    /// How many losses are not listed; one that is told twice counts twice.
    pub unlisted: usize,
    tree: Tree,
    spent: Spent,
}

impl Fitted {
    /// The arguments as the tool's own schema has them: members under their own names, and without
    /// each `null` that stands for a member that is not there. Everything else stays as it is.
    pub fn unfit(&self, arguments: Json) -> Json {
        back::unfit(&self.tree, arguments)
    }
}

/// Fits one schema.
pub fn fit(schema: &Value, dialect: Dialect) -> Fitted {
    let rules = dialect.rules();
    let mut losses = Losses::default();
    let mut tree = shape(schema, rules, &mut losses);
    let Some(strict) = &rules.strict else {
        return finish(tree, rules, false, Spent::default(), losses);
    };
    match strict::tighten(&mut tree, strict, &mut losses) {
        Ok(spent) => finish(tree, rules, true, spent, losses),
        Err(obstacle) => plain(schema, dialect, obstacle),
    }
}

/// Fits the schemas of one request, in the order they are offered: where a provider limits how much of
/// a request is strict, the first ones are.
pub fn fit_all<'a>(schemas: impl IntoIterator<Item = &'a Value>, dialect: Dialect) -> Vec<Fitted> {
    let mut tools = 0;
    let mut spent = Spent::default();
    let mut all = Vec::new();
    for schema in schemas {
        let mut fitted = fit(schema, dialect);
        if let Some(strict) = dialect.rules().strict.as_ref().filter(|_| fitted.strict) {
            let optional = spent.optional.saturating_add(fitted.spent.optional);
            let unions = spent.unions.saturating_add(fitted.spent.unions);
            let full = tools == strict.most_tools
                || optional > strict.most_optional
                || unions > strict.most_unions;
            if full {
                let (pointer, keyword) = (String::new(), "strict".to_owned());
                let obstacle = Loss { pointer, keyword, change: Change::NotStrict };
                fitted = plain(schema, dialect, obstacle);
            } else {
                tools += 1;
                spent = Spent { optional, unions, ..spent };
            }
        }
        all.push(fitted);
    }
    all
}

/// The plain form of a schema that has no strict one.
fn plain(schema: &Value, dialect: Dialect, obstacle: Loss) -> Fitted {
    let rules = dialect.plain();
    let mut losses = Losses::default();
    losses.list.push(obstacle);
    let tree = shape(schema, rules, &mut losses);
    finish(tree, rules, false, Spent::default(), losses)
}

fn shape(schema: &Value, rules: &Rules, losses: &mut Losses) -> Tree {
    let mut tree = read::read(schema, rules, losses);
    root::object(&mut tree.root, losses);
    if !rules.full {
        lower::lower(&mut tree, rules, losses);
    }
    tree
}

fn finish(tree: Tree, rules: &Rules, strict: bool, spent: Spent, losses: Losses) -> Fitted {
    let schema = write::tree(&tree, rules.full);
    let Losses { list, unlisted, .. } = losses;
    Fitted { schema, strict, losses: list, unlisted, tree, spent }
}

#[cfg(test)]
mod tests;
