//! Lowering of a tool's input schema to a provider's dialect, with a loss report.
//!
//! `read.rs` reads a schema of any draft or dialect as JSON Schema 2020-12. `root.rs` converts the
//! root to an object. `lower.rs` replaces keywords that the provider does not support, or moves
//! them to the description. `strict.rs` closes every object for a strict dialect. `rules.rs` has
//! the keywords of the dialects as data, and `limits.rs` the limits of the providers. If the strict
//! form is impossible, the result is the form that is not strict, and the report contains the
//! reason.
//!
//! In OpenAI's strict form, an optional property is required and may be `null`. Anthropic and Gemini
//! get some parameters under different names. [`LoweredSchema::restore_arguments`] reverses both.
//!
//! The size is bounded: 64 levels and 1 MiB, including the references that must be inlined. A
//! subschema beyond these limits accepts everything, and the report contains its location. JSON
//! that is not a schema gives the schema of any object.

mod keyword;
mod limits;
mod losses;
mod lower;
mod merge;
mod node;
mod parameter_names;
mod read;
mod restore;
mod root;
mod rules;
mod strict;
mod type_set;
mod write;

use serde_json::Value;

use crate::Json;
pub use limits::{EnumTextLimit, StrictLimits, ToolLimits};
use losses::LossCollector;
pub use losses::{SchemaLoss, SchemaLossKind};
use node::SchemaTree;
use rules::DialectRules;
use strict::StrictUsage;

/// A provider's dialect of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI without `strict`: JSON Schema.
    OpenAi,
    /// OpenAI with `strict`.
    OpenAiStrict,
    /// Anthropic without `strict`: JSON Schema.
    Anthropic,
    /// Anthropic with `strict`. [`lower_schemas`] applies the limits per request.
    AnthropicStrict,
    /// Gemini's `parametersJsonSchema`.
    Gemini,
    /// Ollama's tools.
    Ollama,
    /// JSON Schema 2020-12 without references, for use inside another schema or a grammar.
    JsonSchema,
}

impl Dialect {
    fn rules(self) -> &'static DialectRules {
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

    /// Returns the dialect of the form without `strict`.
    fn non_strict(self) -> Self {
        match self {
            Self::OpenAiStrict => Self::OpenAi,
            Self::AnthropicStrict => Self::Anthropic,
            Self::OpenAi | Self::Anthropic | Self::Gemini | Self::Ollama | Self::JsonSchema => self,
        }
    }
}

/// A schema in a provider's dialect.
#[derive(Debug, Clone)]
pub struct LoweredSchema {
    /// The schema for the request.
    pub schema: Value,
    /// Whether the request marks the schema as `strict`.
    pub strict: bool,
    /// Differences from the tool's own schema, at most 1,000.
    pub losses: Vec<SchemaLoss>,
    /// Number of losses that are not listed; may count duplicates.
    pub omitted_losses: usize,
    tree: SchemaTree,
    /// Whether some properties have other names than in the tool's own schema.
    is_renamed: bool,
    usage: StrictUsage,
}

impl LoweredSchema {
    /// Returns whether some parameters have other names than in the tool's own schema.
    pub fn has_renamed_parameters(&self) -> bool {
        self.is_renamed
    }

    /// Converts arguments for this schema to arguments for the tool's own schema: restores the
    /// names of members and removes each `null` that represents an absent member. Other values stay
    /// unchanged.
    pub fn restore_arguments(&self, arguments: Json) -> Json {
        // No dialect needs both.
        match self.is_renamed {
            true => parameter_names::restore(&self.tree, arguments),
            false => restore::remove_absent(&self.tree, arguments),
        }
    }
}

/// Lowers one schema.
pub fn lower_schema(schema: &Value, dialect: Dialect) -> LoweredSchema {
    let mut losses = LossCollector::default();
    let mut tree = build_tree(schema, dialect, &mut losses);
    let Some(limits) = &dialect.limits().strict else {
        return finish(tree, dialect, None, losses);
    };
    match strict::make_strict(&mut tree, limits, dialect.rules().all_required, &mut losses) {
        Ok(usage) => finish(tree, dialect, Some(usage), losses),
        Err(obstacle) => lower_non_strict(schema, dialect, obstacle),
    }
}

/// Lowers the schemas of one request, in listed order. If a provider limits strict schemas per
/// request, the first schemas are strict.
pub fn lower_schemas<'a>(
    schemas: impl IntoIterator<Item = &'a Value>,
    dialect: Dialect,
) -> Vec<LoweredSchema> {
    let mut tools = 0;
    let mut spent = StrictUsage::default();
    let mut all = Vec::new();
    for schema in schemas {
        let mut lowered = lower_schema(schema, dialect);
        if let Some(strict) = dialect.limits().strict.as_ref().filter(|_| lowered.strict) {
            let optional = spent.optional.saturating_add(lowered.usage.optional);
            let unions = spent.unions.saturating_add(lowered.usage.unions);
            let full = tools == strict.max_tools
                || optional > strict.max_optional
                || unions > strict.max_unions;
            if full {
                let pointer = String::new();
                let keyword = "strict".to_owned();
                let obstacle = SchemaLoss { pointer, keyword, kind: SchemaLossKind::NotStrict };
                lowered = lower_non_strict(schema, dialect, obstacle);
            } else {
                tools += 1;
                spent = StrictUsage { optional, unions, ..spent };
            }
        }
        all.push(lowered);
    }
    all
}

/// Lowers a schema that has no strict form.
fn lower_non_strict(schema: &Value, dialect: Dialect, obstacle: SchemaLoss) -> LoweredSchema {
    let mut losses = LossCollector::default();
    losses.list.push(obstacle);
    let dialect = dialect.non_strict();
    let tree = build_tree(schema, dialect, &mut losses);
    finish(tree, dialect, None, losses)
}

fn build_tree(schema: &Value, dialect: Dialect, losses: &mut LossCollector) -> SchemaTree {
    let rules = dialect.rules();
    let mut tree = read::read(schema, rules, losses);
    root::make_object(&mut tree.root, losses);
    if !rules.full_json_schema {
        lower::lower_tree(&mut tree, dialect, losses);
    }
    tree
}

/// Applies the limits that hold with and without `strict`, and serializes the schema. `usage` is
/// that of the strict form.
fn finish(
    mut tree: SchemaTree,
    dialect: Dialect,
    usage: Option<StrictUsage>,
    mut losses: LossCollector,
) -> LoweredSchema {
    let limits = dialect.limits();
    if limits.requires_items {
        tree.add_items();
    }
    let is_renamed = limits
        .parameter_names
        .is_some_and(|names| parameter_names::rename(&mut tree, names, &mut losses));
    let schema = write::write_tree(&tree, dialect.rules().full_json_schema);
    let LossCollector { list, omitted, .. } = losses;
    LoweredSchema {
        schema,
        strict: usage.is_some(),
        losses: list,
        omitted_losses: omitted,
        tree,
        is_renamed,
        usage: usage.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
