//! Validates a tool's arguments or results against its JSON Schema.
//!
//! A schema comes from a server and may be hostile. [`ArgumentSchema::new`] only parses a schema,
//! which bounds the cost of compiling and applying it; the first call compiles it. Arguments that
//! would cost too much are rejected before validation. `format` is an annotation, as in the
//! specification: it is not checked.

mod cost;
mod eval_cost;
mod graph;
mod keywords;
mod messages;
mod pattern;
mod reference;
mod result_schema;
mod value_size;

#[cfg(test)]
mod tests;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use jsonschema::{Draft, Validator};
use serde_json::Value;
use serde_json::value::RawValue;

use self::cost::SchemaBounds;
use self::eval_cost::{CostEstimator, EvalCost};
use self::graph::SchemaGraph;
use self::pattern::PatternCost;
use self::value_size::ValueSize;
use crate::error::ArgumentProblem;

pub(crate) use self::result_schema::ResultSchema;

/// Maximum size of a schema in bytes; the largest known schemas have a few ten thousand.
const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// Maximum number of JSON values in a schema.
const MAX_SCHEMA_VALUES: usize = 5_000;

/// Number of subschema visits that are always allowed, about 20 ms.
const BASE_VISITS: u64 = 1 << 20;

/// Number of additional subschema visits for each value in the arguments: larger arguments may take
/// longer.
const VISITS_PER_VALUE: u64 = 1 << 10;

/// Maximum number of subschema visits for arguments of any size: some tenths of a second, which the
/// timeout of a call does not cover.
const MAX_VISITS: u64 = 1 << 24;

/// Maximum cost of a schema that is applied without measuring the arguments: the longest request, 8
/// MiB, has four million values.
const MAX_UNCHECKED_COST: u64 = 1 << 4;

/// Maximum number of times a schema is applied again after undecided matches, to find out whether
/// the matches matter.
const MAX_REEVALUATIONS: u64 = 64;

/// Maximum number of steps for pattern matching: less than a second without optimizations.
const MAX_MATCH_STEPS: u64 = 1 << 32;

/// Maximum cost of the errors created for inspection: up to a quarter of a second.
const MAX_ERROR_COST: u64 = 1 << 17;

/// Maximum memory that errors may copy, in bytes.
const MAX_COPIED_BYTES: u64 = 128 << 20;

/// Message for arguments whose problems would take too long to locate.
const UNLOCATED_MESSAGE: &str =
    "does not match the schema; the value is too large or too deep to locate the problem";

/// The JSON Schema of a tool's arguments, compiled once at the first use.
pub(crate) struct ArgumentSchema {
    raw: Box<RawValue>,
    compiled: OnceLock<Result<CompiledSchema, String>>,
}

impl ArgumentSchema {
    /// Checks a schema without compiling it; an empty schema accepts any object.
    ///
    /// # Errors
    ///
    /// Returns why the tool cannot be listed: the schema is too large or too costly, describes no
    /// object, has references that lead out of it, or has an unknown dialect.
    pub(crate) fn new(raw: &RawValue) -> Result<Self, String> {
        Self::new_bounded(raw, describes_objects)
            .map_err(|reason| format!("unusable input schema: {reason}"))
    }

    fn new_bounded(raw: &RawValue, describes: impl Fn(&Value) -> bool) -> Result<Self, String> {
        let raw = if raw.get() == "null" { RawValue::TRUE } else { raw };
        if raw.get().len() > MAX_SCHEMA_BYTES {
            return Err(format!("longer than {MAX_SCHEMA_BYTES} bytes"));
        }
        let schema = parse(raw)?;
        if keywords::count_values(&schema) > MAX_SCHEMA_VALUES {
            return Err(format!("more than {MAX_SCHEMA_VALUES} values"));
        }
        if !describes(&schema) {
            return Err("does not describe an object".to_owned());
        }
        let draft = detect_draft(&schema)?;
        let graph = SchemaGraph::from_schema(&schema, draft.id_keyword())?;
        SchemaBounds::new(&graph)?;
        Ok(Self { raw: raw.to_owned(), compiled: OnceLock::new() })
    }

    /// Returns the parts of `arguments` that do not match, sorted by pointer, at most 32; empty if
    /// all match.
    ///
    /// Arguments that are too large or too deep for this schema, and a schema that fails to
    /// compile, are one problem of the whole object.
    pub(crate) fn check(&self, arguments: &Value) -> Vec<ArgumentProblem> {
        if !arguments.is_object() {
            let actual = messages::json_type(arguments);
            return whole_value_problem(&format!("expected object, found {actual}"));
        }
        self.violations(arguments).unwrap_or_else(|reason| whole_value_problem(&reason))
    }

    /// Returns the problems, or why they cannot be determined.
    fn violations(&self, value: &Value) -> Result<Vec<ArgumentProblem>, String> {
        self.with_compiled(|compiled| compiled.check(value, &self.raw))
    }

    /// Returns the first problem, or why it cannot be determined.
    fn first_violation(&self, value: &Value) -> Result<Option<ArgumentProblem>, String> {
        self.with_compiled(|compiled| compiled.first_violation(value, &self.raw))
    }

    fn with_compiled<T>(
        &self,
        check: impl FnOnce(&CompiledSchema) -> Result<T, &'static str>,
    ) -> Result<T, String> {
        let compiled = self.compiled.get_or_init(|| {
            catch_panic(|| CompiledSchema::new(&self.raw))
                .unwrap_or_else(|| Err("compilation failed".to_owned()))
                .map_err(|reason| format!("unusable input schema of the tool: {reason}"))
        });
        let compiled = compiled.as_ref().map_err(Clone::clone)?;
        catch_panic(|| check(compiled))
            .unwrap_or(Err("cannot be checked against the tool's input schema"))
            .map_err(str::to_owned)
    }
}

/// Returns the result of `run`, or `None` if it panics.
///
/// Hostile schemas can trigger assertions of the validator. The validator stores no state between
/// runs, so a panic leaves nothing inconsistent.
fn catch_panic<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}

impl fmt::Debug for ArgumentSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentSchema").field("raw", &self.raw.get()).finish_non_exhaustive()
    }
}

fn whole_value_problem(message: &str) -> Vec<ArgumentProblem> {
    vec![ArgumentProblem { pointer: String::new(), message: message.to_owned() }]
}

fn parse(raw: &RawValue) -> Result<Value, String> {
    serde_json::from_str(raw.get()).map_err(|error| format!("invalid JSON: {error}"))
}

fn describes_objects(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(keywords) => match keywords.get("type") {
            None => true,
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            Some(kind) => kind == "object",
        },
        _ => false,
    }
}

fn detect_draft(schema: &Value) -> Result<Draft, String> {
    let declared = schema.get("$schema").and_then(Value::as_str);
    let Some(uri) = declared else { return Ok(Draft::Draft202012) };
    match Draft::from_schema_uri(uri) {
        supported @ (Draft::Draft4
        | Draft::Draft6
        | Draft::Draft7
        | Draft::Draft201909
        | Draft::Draft202012) => Ok(supported),
        _ => Err(format!("unknown dialect {}", messages::quote(uri))),
    }
}

/// A compiled schema.
struct CompiledSchema {
    validator: Validator,
    graph: SchemaGraph,
    bounds: SchemaBounds,
    patterns: Vec<PatternCost>,
    matching_cost: MatchingCost,
    /// Whether the schema is cheap for arguments of any size and depth.
    is_cheap: bool,
}

/// Maximum number of matching steps per byte of text, for a value with one of each part.
struct MatchingCost {
    linear: u64,
    backtracking: u64,
}

impl CompiledSchema {
    fn new(raw: &RawValue) -> Result<Self, String> {
        let schema = parse(raw)?;
        let declared = detect_draft(&schema)?;
        let graph = SchemaGraph::from_schema(&schema, declared.id_keyword())?;
        let bounds = SchemaBounds::new(&graph)?;
        let patterns = pattern::measure(&graph.patterns)?;
        let build = |draft| pattern::options(draft, &patterns).build(&schema);
        // Many servers write draft-07 without declaring it.
        let undeclared = schema.get("$schema").is_none();
        let validator = build(declared)
            .or_else(|error| build(Draft::Draft7).ok().filter(|_| undeclared).ok_or(error))
            .map_err(|error| {
                format!("invalid at {}", messages::quote(error.instance_path().as_str()))
            })?;
        let matching_cost = MatchingCost::new(&graph, &patterns);
        let is_cheap =
            !bounds.recursive && bounds.cost <= MAX_UNCHECKED_COST && graph.patterns.is_empty();
        Ok(Self { validator, graph, bounds, patterns, matching_cost, is_cheap })
    }

    fn check(
        &self,
        arguments: &Value,
        raw: &RawValue,
    ) -> Result<Vec<ArgumentProblem>, &'static str> {
        match self.rejection_reason(arguments) {
            Some(reason) => Err(reason),
            None if self.validator.is_valid(arguments) => Ok(Vec::new()),
            None => Ok(self.list_problems(arguments, raw)),
        }
    }

    /// Returns only the first error: all errors of a hostile value under a hostile schema would
    /// take memory for each.
    fn first_violation(
        &self,
        value: &Value,
        raw: &RawValue,
    ) -> Result<Option<ArgumentProblem>, &'static str> {
        match self.rejection_reason(value) {
            Some(reason) => Err(reason),
            None if self.validator.is_valid(value) => Ok(None),
            None if self.bounds.recursive => Ok(whole_value_problem(UNLOCATED_MESSAGE).pop()),
            None => {
                let error = self.validator.validate(value).err();
                let schema = parse(raw).unwrap_or_default();
                Ok(messages::problems(&schema, error.into_iter()).into_iter().next())
            }
        }
    }

    /// Returns why the schema must not be applied to `arguments`, if so.
    fn rejection_reason(&self, arguments: &Value) -> Option<&'static str> {
        if self.is_cheap {
            return None;
        }
        let size = ValueSize::measure(arguments);
        if self.bounds.recursive && self.bounds.depth * (size.depth + 1) > cost::MAX_DEPTH {
            return Some("nested too deeply for the tool's input schema");
        }
        let visits = self.visit_budget(size);
        let within = self.bounds.cost.saturating_mul(size.values) <= visits;
        if within && self.matching_cost.match_steps(size) <= MAX_MATCH_STEPS {
            return None;
        }
        let limit = EvalCost { visits, steps: MAX_MATCH_STEPS, ..EvalCost::UNLIMITED };
        let exceeds = self.estimate_cost(arguments, limit).exceeds(limit);
        exceeds.then_some("too large to be checked against the tool's input schema")
    }

    fn visit_budget(&self, size: ValueSize) -> u64 {
        let visits = VISITS_PER_VALUE.saturating_mul(size.values).saturating_add(BASE_VISITS);
        let visits = visits.min(MAX_VISITS);
        let undecided = self.patterns.iter().any(|pattern| pattern.needs_backtracking);
        if undecided { visits / MAX_REEVALUATIONS } else { visits }
    }

    fn estimate_cost(&self, arguments: &Value, limit: EvalCost) -> EvalCost {
        CostEstimator::new(&self.graph, &self.bounds, &self.patterns).estimate(arguments, limit)
    }

    fn list_problems(&self, arguments: &Value, raw: &RawValue) -> Vec<ArgumentProblem> {
        // Without recursion, creating only the first error is always affordable.
        let errors = if self.bounds.recursive { MAX_ERROR_COST } else { u64::MAX };
        let visits = self.visit_budget(ValueSize::measure(arguments));
        let limit =
            EvalCost { visits, copied_bytes: MAX_COPIED_BYTES, errors, ..EvalCost::UNLIMITED };
        let load = self.estimate_cost(arguments, limit);
        if load.exceeds(limit) {
            return whole_value_problem(UNLOCATED_MESSAGE);
        }
        let schema = parse(raw).unwrap_or_default();
        if load.errors <= MAX_ERROR_COST {
            messages::problems(&schema, self.validator.iter_errors(arguments))
        } else {
            messages::problems(&schema, self.validator.validate(arguments).err().into_iter())
        }
    }
}

impl MatchingCost {
    fn new(graph: &SchemaGraph, patterns: &[PatternCost]) -> Self {
        let sum = |backtracks| {
            cost::unfolded_weight(graph, |node| {
                let all = node.patterns.iter().chain(&node.name_patterns);
                let all = all.map(|pattern| patterns[*pattern]);
                all.filter(|one| one.needs_backtracking == backtracks).map(|one| one.size).sum()
            })
        };
        Self { linear: sum(false), backtracking: sum(true) }
    }

    fn match_steps(&self, size: ValueSize) -> u64 {
        let text = size.text_bytes + size.values;
        let backtracking = self.backtracking.saturating_mul(text);
        self.linear.saturating_add(backtracking).saturating_mul(text)
    }
}
