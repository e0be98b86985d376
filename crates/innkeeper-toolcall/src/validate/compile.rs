//! A schema that was found harmless, compiled.

use std::collections::HashMap;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{Draft, PatternOptions, ValidationOptions, Validator};
use serde_json::Value;

use super::cost::{Load, NESTED};
use super::{Violation, words};

/// The most JSON values in a schema; the largest in use have some hundreds.
const VALUES: usize = 5_000;

/// The most arrays and objects inside one another in a schema as it is written; what is read from
/// text cannot have more.
pub(super) const DEEP: usize = 128;

/// The most values with every reference written out; compiling that many takes tens of
/// milliseconds.
const UNFOLDED: u64 = 100_000;

/// The sizes tried for compiled expressions, in bytes. Compiling one of the last size takes about a
/// tenth of a second.
const SIZES: [usize; 3] = [1 << 14, 1 << 18, 1 << 22];

/// The most expressions in a schema, as each may take its time to compile.
const PATTERNS: usize = 64;

/// How often one match may take back a choice, before it is given up as undecided.
const BACKTRACKS: usize = 20_000;

/// Steps of matching at most: the text times the size of an expression; takes seconds at worst.
const STEPS: u64 = 1 << 32;

/// Up to how many visits all that does not fit is told; past it, the first.
pub(super) const EXPLAINED: usize = 1 << 14;

/// The most violations told at once.
pub(super) const VIOLATIONS: usize = 32;

/// A schema ready to be applied.
#[derive(Debug)]
pub(super) struct Compiled {
    validator: Validator,
    /// What its expressions cost; `None` if it has none.
    matching: Option<Matching>,
}

#[derive(Debug, Clone, Copy)]
struct Matching {
    size: usize,
    backtracks: bool,
}

impl Compiled {
    /// Compiles `schema`.
    ///
    /// # Errors
    ///
    /// Why it cannot be used, as a sentence.
    pub(super) fn new(schema: &Value) -> Result<Self, String> {
        let declared = draft(schema)?;
        let patterns = inspect(schema, declared)?;
        let cost = Unfolding { root: schema, known: HashMap::new() }.cost(schema, 0)?;
        if cost > UNFOLDED {
            return Err(format!("its parts refer to one another more than {UNFOLDED} times over"));
        }
        // Many servers write draft-07 and do not say so.
        let fallback = schema.get("$schema").is_none().then_some(Draft::Draft7);
        let drafts: Vec<Draft> = std::iter::once(declared).chain(fallback).collect();
        let ways = [false, true].into_iter().flat_map(|backtracks| {
            SIZES.into_iter().map(move |size| Matching { size, backtracks })
        });
        let mut refused = String::new();
        for way in ways.take(if patterns == 0 { 1 } else { usize::MAX }) {
            for draft in &drafts {
                match options(*draft, way).build(schema) {
                    Ok(validator) => {
                        return Ok(Self { validator, matching: (patterns > 0).then_some(way) });
                    }
                    Err(error) => refused = words::at(error.instance_path().as_str()),
                }
            }
        }
        Err(format!("it is invalid at {refused}"))
    }

    /// What does not fit; `None` where finding out would cost too much.
    pub(super) fn violations(&self, schema: &Value, arguments: &Value) -> Option<Vec<Violation>> {
        let load = Load::of(schema, arguments)?;
        if self.matching.is_some_and(|matching| matching.steps(&load) > STEPS) {
            return None;
        }
        if self.validator.is_valid(arguments) {
            return Some(Vec::new());
        }
        let most = if load.visits <= EXPLAINED { VIOLATIONS } else { 1 };
        let mut violations = Vec::new();
        for error in self.validator.iter_errors(arguments).take(most) {
            if matches!(
                error.kind(),
                Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. }
            ) {
                return None;
            }
            violations.push(words::violation(&error));
        }
        Some(violations)
    }
}

impl Matching {
    fn steps(self, load: &Load) -> u64 {
        let starts = if self.backtracks { load.longest_text as u64 + 1 } else { 1 };
        (self.size as u64).saturating_mul(load.text as u64).saturating_mul(starts)
    }
}

fn draft(schema: &Value) -> Result<Draft, String> {
    let Some(uri) = schema.get("$schema").and_then(Value::as_str) else {
        return Ok(Draft::Draft202012);
    };
    match Draft::from_schema_uri(uri) {
        known @ (Draft::Draft4
        | Draft::Draft6
        | Draft::Draft7
        | Draft::Draft201909
        | Draft::Draft202012) => Ok(known),
        _ => Err(format!("its dialect {} is not known", crate::repair::quoted(uri))),
    }
}

/// Counts the expressions of a schema, and finds what would make its references lead elsewhere than
/// they are followed here. It looks everywhere, so that no keyword is missed.
fn inspect(schema: &Value, draft: Draft) -> Result<usize, String> {
    if !(schema.is_object() || schema.is_boolean()) {
        return Err("it is no object".to_owned());
    }
    let (mut values, mut patterns) = (0, 0);
    let mut open = vec![(schema, 1)];
    while let Some((one, depth)) = open.pop() {
        values += 1;
        if values > VALUES {
            return Err(format!("it has more than {VALUES} values"));
        }
        if depth > DEEP && (one.is_array() || one.is_object()) {
            return Err(format!("more than {DEEP} of its values lie inside one another"));
        }
        open.extend(one.as_array().into_iter().flatten().map(|item| (item, depth + 1)));
        let Some(members) = one.as_object() else { continue };
        open.extend(members.values().map(|member| (member, depth + 1)));
        let based = |key| one.get(key).is_some_and(Value::is_string);
        let rebased = based("$id") || draft == Draft::Draft4 && based("id");
        if rebased && !std::ptr::eq(one, schema) {
            return Err("a part of it has an address of its own".to_owned());
        }
        if ["$dynamicRef", "$recursiveRef"].into_iter().any(based) {
            return Err("a reference in it depends on where it is used".to_owned());
        }
        patterns += usize::from(based("pattern"));
        patterns +=
            one.get("patternProperties").and_then(Value::as_object).map_or(0, |all| all.len());
    }
    if patterns > PATTERNS {
        return Err(format!("it has more than {PATTERNS} patterns"));
    }
    Ok(patterns)
}

/// Counts values with every reference written out, each place once.
struct Unfolding<'s> {
    root: &'s Value,
    /// What is known of the targets of references; nothing, while one is being counted.
    known: HashMap<&'s str, u64>,
}

impl<'s> Unfolding<'s> {
    fn cost(&mut self, value: &'s Value, nested: usize) -> Result<u64, String> {
        if nested > NESTED {
            return Err(format!("more than {NESTED} of its parts lie inside one another"));
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
                    sum = sum.saturating_add(self.target(reference, nested)?);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(sum)
    }

    fn target(&mut self, reference: &'s str, nested: usize) -> Result<u64, String> {
        if let Some(known) = self.known.get(reference) {
            return Ok(*known);
        }
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let target = target.ok_or_else(|| {
            format!("its reference {} leads nowhere in it", crate::repair::quoted(reference))
        })?;
        self.known.insert(reference, 0);
        let cost = self.cost(target, nested + 1)?;
        self.known.insert(reference, cost);
        Ok(cost)
    }
}

fn options(draft: Draft, matching: Matching) -> ValidationOptions<'static> {
    let options = jsonschema::options()
        .with_draft(draft)
        .offline()
        .should_validate_formats(false)
        .without_content_encoding_support("base64")
        .without_content_media_type_support("application/json");
    let Matching { size, backtracks } = matching;
    if backtracks {
        options.with_pattern_options(
            PatternOptions::fancy_regex()
                .backtrack_limit(BACKTRACKS)
                .size_limit(size)
                .dfa_size_limit(size),
        )
    } else {
        options.with_pattern_options(PatternOptions::regex().size_limit(size).dfa_size_limit(size))
    }
}
