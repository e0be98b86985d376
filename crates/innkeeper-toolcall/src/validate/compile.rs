//! Compilation of a schema, after checks of its size and references.

use std::collections::HashMap;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{Draft, PatternOptions, ValidationOptions, Validator};
use serde_json::Value;

use super::cost::{MAX_SCHEMA_NESTING, ValidationCost};
use super::{Violation, messages};

/// Maximum number of JSON values in a schema; the largest known schemas have some hundreds.
const MAX_SCHEMA_VALUES: usize = 5_000;

/// Maximum nesting of arrays and objects in a schema; the JSON parser has the same limit.
pub(super) const MAX_SCHEMA_DEPTH: usize = 128;

/// Maximum number of values with inlined references; compiling that many takes tens of
/// milliseconds.
const MAX_EXPANDED_VALUES: u64 = 100_000;

/// Tried size limits of compiled regular expressions, in bytes. Compiling an expression of the last
/// size takes about 0.1 s.
const REGEX_SIZE_LIMITS: [usize; 3] = [1 << 14, 1 << 18, 1 << 22];

/// Maximum number of regular expressions in a schema, because each takes time to compile.
const MAX_PATTERNS: usize = 64;

/// Maximum number of backtracking steps of one match; above the limit, the match is undecided.
const MAX_BACKTRACKS: usize = 20_000;

/// Maximum number of match steps: text bytes times expression size; takes seconds at worst.
const MAX_MATCH_STEPS: u64 = 1 << 32;

/// Maximum number of visits for reporting all violations; above the limit, only the first violation
/// is reported.
pub(super) const MAX_EXPLAINED_VISITS: usize = 1 << 14;

/// Maximum number of reported violations.
pub(super) const MAX_VIOLATIONS: usize = 32;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct CompiledSchema {
    validator: Validator,
    /// Cost of the regular expressions; `None` without expressions.
    regex_cost: Option<RegexCost>,
}

#[derive(Debug, Clone, Copy)]
struct RegexCost {
    size_limit: usize,
    backtracks: bool,
}

impl CompiledSchema {
    /// Compiles `schema`.
    ///
    /// # Errors
    ///
    /// Returns the reason why the schema is unusable.
    pub(super) fn new(schema: &Value) -> Result<Self, String> {
        let declared = detect_draft(schema)?;
        let patterns = count_patterns(schema, declared)?;
        let cost =
            ReferenceExpansion { root: schema, target_costs: HashMap::new() }.cost(schema, 0)?;
        if cost > MAX_EXPANDED_VALUES {
            return Err(format!("references expand to more than {MAX_EXPANDED_VALUES} values"));
        }
        // Many servers use draft-07 without `$schema`.
        let fallback = schema.get("$schema").is_none().then_some(Draft::Draft7);
        let drafts: Vec<Draft> = std::iter::once(declared).chain(fallback).collect();
        let regex_costs = [false, true].into_iter().flat_map(|backtracks| {
            REGEX_SIZE_LIMITS
                .into_iter()
                .map(move |size_limit| RegexCost { size_limit, backtracks })
        });
        let mut invalid_at = String::new();
        for regex_cost in regex_costs.take(if patterns == 0 { 1 } else { usize::MAX }) {
            for draft in &drafts {
                match validation_options(*draft, regex_cost).build(schema) {
                    Ok(validator) => {
                        return Ok(Self {
                            validator,
                            regex_cost: (patterns > 0).then_some(regex_cost),
                        });
                    }
                    Err(error) => {
                        invalid_at = messages::describe_pointer(error.instance_path().as_str());
                    }
                }
            }
        }
        Err(format!("invalid at {invalid_at}"))
    }

    /// Returns the violations; `None` if validation would cost too much.
    pub(super) fn violations(&self, schema: &Value, arguments: &Value) -> Option<Vec<Violation>> {
        let load = ValidationCost::estimate(schema, arguments)?;
        if self.regex_cost.is_some_and(|matching| matching.match_steps(&load) > MAX_MATCH_STEPS) {
            return None;
        }
        if self.validator.is_valid(arguments) {
            return Some(Vec::new());
        }
        let max_violations = if load.visits <= MAX_EXPLAINED_VISITS { MAX_VIOLATIONS } else { 1 };
        let mut violations = Vec::new();
        for error in self.validator.iter_errors(arguments).take(max_violations) {
            if matches!(
                error.kind(),
                Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. }
            ) {
                return None;
            }
            violations.push(messages::violation(&error));
        }
        Some(violations)
    }
}

impl RegexCost {
    fn match_steps(self, load: &ValidationCost) -> u64 {
        let starts = if self.backtracks { load.max_string_bytes as u64 + 1 } else { 1 };
        (self.size_limit as u64).saturating_mul(load.text_bytes as u64).saturating_mul(starts)
    }
}

fn detect_draft(schema: &Value) -> Result<Draft, String> {
    let Some(uri) = schema.get("$schema").and_then(Value::as_str) else {
        return Ok(Draft::Draft202012);
    };
    match Draft::from_schema_uri(uri) {
        supported @ (Draft::Draft4
        | Draft::Draft6
        | Draft::Draft7
        | Draft::Draft201909
        | Draft::Draft202012) => Ok(supported),
        _ => Err(format!("unknown dialect {}", crate::repair::quote_backticks(uri))),
    }
}

/// Counts the regular expressions of a schema, and rejects keywords that change the targets of
/// references. Checks every value, so that no keyword is missed.
fn count_patterns(schema: &Value, draft: Draft) -> Result<usize, String> {
    if !(schema.is_object() || schema.is_boolean()) {
        return Err("not an object".to_owned());
    }
    let (mut values, mut patterns) = (0, 0);
    let mut open = vec![(schema, 1)];
    while let Some((value, depth)) = open.pop() {
        values += 1;
        if values > MAX_SCHEMA_VALUES {
            return Err(format!("more than {MAX_SCHEMA_VALUES} values"));
        }
        if depth > MAX_SCHEMA_DEPTH && (value.is_array() || value.is_object()) {
            return Err(format!("more than {MAX_SCHEMA_DEPTH} levels of nested values"));
        }
        open.extend(value.as_array().into_iter().flatten().map(|item| (item, depth + 1)));
        let Some(members) = value.as_object() else { continue };
        open.extend(members.values().map(|member| (member, depth + 1)));
        let based = |key| value.get(key).is_some_and(Value::is_string);
        let rebased = based("$id") || draft == Draft::Draft4 && based("id");
        if rebased && !std::ptr::eq(value, schema) {
            return Err("unsupported nested `$id`".to_owned());
        }
        if ["$dynamicRef", "$recursiveRef"].into_iter().any(based) {
            return Err("unsupported dynamic reference".to_owned());
        }
        patterns += usize::from(based("pattern"));
        patterns +=
            value.get("patternProperties").and_then(Value::as_object).map_or(0, |all| all.len());
    }
    if patterns > MAX_PATTERNS {
        return Err(format!("more than {MAX_PATTERNS} patterns"));
    }
    Ok(patterns)
}

/// Counts values with inlined references; counts each target once.
struct ReferenceExpansion<'s> {
    root: &'s Value,
    /// Costs of reference targets; 0 while a target is being counted.
    target_costs: HashMap<&'s str, u64>,
}

impl<'s> ReferenceExpansion<'s> {
    fn cost(&mut self, value: &'s Value, nested: usize) -> Result<u64, String> {
        if nested > MAX_SCHEMA_NESTING {
            return Err(format!("more than {MAX_SCHEMA_NESTING} nested subschemas"));
        }
        let mut sum = 1_u64;
        match value {
            Value::Array(items) => {
                for item in items {
                    sum = sum.saturating_add(self.cost(item, nested + 1)?);
                }
            }
            Value::Object(members) => {
                for member in members.values() {
                    sum = sum.saturating_add(self.cost(member, nested + 1)?);
                }
                if let Some(Value::String(reference)) = members.get("$ref") {
                    sum = sum.saturating_add(self.target_cost(reference, nested)?);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(sum)
    }

    fn target_cost(&mut self, reference: &'s str, nested: usize) -> Result<u64, String> {
        if let Some(cached) = self.target_costs.get(reference) {
            return Ok(*cached);
        }
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let target = target.ok_or_else(|| {
            format!("unresolved reference {}", crate::repair::quote_backticks(reference))
        })?;
        self.target_costs.insert(reference, 0);
        let cost = self.cost(target, nested + 1)?;
        self.target_costs.insert(reference, cost);
        Ok(cost)
    }
}

fn validation_options(draft: Draft, matching: RegexCost) -> ValidationOptions<'static> {
    let options = jsonschema::options()
        .with_draft(draft)
        .offline()
        .should_validate_formats(false)
        .without_content_encoding_support("base64")
        .without_content_media_type_support("application/json");
    let RegexCost { size_limit, backtracks } = matching;
    if backtracks {
        options.with_pattern_options(
            PatternOptions::fancy_regex()
                .backtrack_limit(MAX_BACKTRACKS)
                .size_limit(size_limit)
                .dfa_size_limit(size_limit),
        )
    } else {
        options.with_pattern_options(
            PatternOptions::regex().size_limit(size_limit).dfa_size_limit(size_limit),
        )
    }
}
