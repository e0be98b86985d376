//! A compiled schema, which rejects values that would cost too much.

use std::borrow::Cow;

use jsonschema::{Draft, Validator};
use serde_json::Value;

use crate::correction;
use crate::cost::{NodeGroups, SchemaBounds};
use crate::draft::{self, detect_draft};
use crate::error::{CheckError, SchemaError};
use crate::eval_cost::{CostEstimator, EvalCost};
use crate::graph::SchemaGraph;
use crate::limits;
use crate::match_cost::{MatchCost, PatternCosts};
use crate::messages;
use crate::pattern;
use crate::schema_size;
use crate::source::SchemaSource;
use crate::value_size::ValueSize;
use crate::violation::Violation;

/// Number of subschema visits that are always allowed, about 20 ms.
const BASE_VISITS: u64 = 1 << 20;

/// Number of additional subschema visits for each value in the value: larger values may take
/// longer.
const VISITS_PER_VALUE: u64 = 1 << 10;

/// Maximum number of subschema visits for values of any size: some tenths of a second, which the
/// timeout of a call does not cover.
const MAX_VISITS: u64 = 1 << 24;

/// Maximum cost of a schema that is applied without measuring the value: the longest request, 8
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

/// Message for values whose violations would take too long to locate.
const UNLOCATED_MESSAGE: &str =
    "does not match the schema; the value is too large or too deep to locate the problem";

/// The graph of a schema within its limits.
pub(crate) struct SchemaOutline {
    draft: Draft,
    graph: SchemaGraph,
    groups: NodeGroups,
    bounds: SchemaBounds,
}

impl SchemaOutline {
    /// Checks the size, the references and the expanded cost of `schema`.
    ///
    /// # Errors
    ///
    /// Returns the exceeded limit, or the invalid reference.
    pub(crate) fn new(schema: &Value) -> Result<Self, SchemaError> {
        schema_size::check_size(schema)?;
        let draft = detect_draft(schema)?;
        let graph = SchemaGraph::from_schema(schema, draft.id_keyword())?;
        let groups = NodeGroups::find(&graph);
        let bounds = SchemaBounds::new(&graph, &groups)?;
        Ok(Self { draft, graph, groups, bounds })
    }

    /// Builds the validator without measuring the patterns, which takes longer than the build.
    /// Returns `None` if there are no patterns, or if that is impossible.
    fn build_with_small_patterns(&self, schema: &Value) -> Option<(Validator, MatchCost)> {
        let bounds = pattern::bound_small(&self.graph.patterns)?;
        let validator = pattern::options(self.draft, &bounds).build(schema).ok()?;
        Some((validator, MatchCost::from_bounds(&self.graph, &self.groups, bounds)))
    }

    fn build_with_measured_patterns(
        &self,
        schema: &Value,
    ) -> Result<(Validator, MatchCost), SchemaError> {
        let patterns = pattern::measure(&self.graph.patterns)?;
        let build = |draft| pattern::options(draft, &patterns).build(schema);
        // Many servers write draft-07 without declaring it.
        let undeclared = schema.get("$schema").is_none();
        let validator = build(self.draft)
            .or_else(|error| build(Draft::Draft7).ok().filter(|_| undeclared).ok_or(error))
            .map_err(|error| {
                let pointer = error.instance_path().as_str().to_owned();
                SchemaError::Invalid { pointer }
            })?;
        Ok((validator, MatchCost::from_measured(&self.graph, &self.groups, patterns)))
    }
}

#[derive(Debug)]
pub(crate) struct CompiledSchema {
    /// The compiled schema, if it is a [correction](crate::correction) of the source.
    corrected: Option<Value>,
    validator: Validator,
    graph: SchemaGraph,
    bounds: SchemaBounds,
    match_cost: MatchCost,
    /// Whether the schema is cheap for values of any size and depth.
    pub(crate) is_cheap: bool,
}

impl CompiledSchema {
    /// Checks the limits of `schema` and compiles it, corrected if necessary.
    ///
    /// # Errors
    ///
    /// Returns the reason why the schema is unusable.
    pub(crate) fn new(schema: &Value) -> Result<Self, SchemaError> {
        let compiled = Self::compile(schema);
        if !matches!(compiled, Err(SchemaError::Invalid { .. })) && !draft::is_draft3(schema) {
            return compiled;
        }
        let corrected = correction::correct(schema, detect_draft(schema)?);
        let recompiled = Self::compile(&corrected);
        recompiled.map(|schema| Self { corrected: Some(corrected), ..schema }).or(compiled)
    }

    fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let outline = SchemaOutline::new(schema)?;
        let (validator, match_cost) = match outline.build_with_small_patterns(schema) {
            Some(built) => built,
            None => outline.build_with_measured_patterns(schema)?,
        };
        let SchemaOutline { graph, bounds, .. } = outline;
        let is_cheap =
            !bounds.recursive && bounds.cost <= MAX_UNCHECKED_COST && graph.patterns.is_empty();
        Ok(Self { corrected: None, validator, graph, bounds, match_cost, is_cheap })
    }

    /// Returns the violations of `value`, sorted by pointer, at most 32.
    ///
    /// # Errors
    ///
    /// Returns an error if the value would cost too much.
    pub(crate) fn violations(
        &self,
        schema: &SchemaSource,
        value: &Value,
    ) -> Result<Vec<Violation>, CheckError> {
        match self.rejection_reason(value) {
            Some(reason) => Err(reason),
            None if self.validator.is_valid(value) => Ok(Vec::new()),
            None => Ok(self.list_violations(schema, value)),
        }
    }

    /// Returns only the first error: all errors of a hostile value under a hostile schema would
    /// take memory for each.
    pub(crate) fn first_violation(
        &self,
        schema: &SchemaSource,
        value: &Value,
    ) -> Result<Option<Violation>, CheckError> {
        match self.rejection_reason(value) {
            Some(reason) => Err(reason),
            None if self.validator.is_valid(value) => Ok(None),
            None if self.bounds.recursive => {
                Ok(Some(Violation::of_whole_value(UNLOCATED_MESSAGE.to_owned())))
            }
            None => {
                let error = self.validator.validate(value).err();
                let schema = self.source_value(schema);
                Ok(messages::violations(&schema, error.into_iter()).into_iter().next())
            }
        }
    }

    fn source_value<'s>(&'s self, source: &'s SchemaSource) -> Cow<'s, Value> {
        let corrected = self.corrected.as_ref().map(Cow::Borrowed);
        corrected.unwrap_or_else(|| source.to_value().unwrap_or_default())
    }

    /// Returns why the schema must not be applied to `value`, if so.
    fn rejection_reason(&self, value: &Value) -> Option<CheckError> {
        if self.is_cheap {
            return None;
        }
        let size = ValueSize::measure(value);
        if self.bounds.recursive && self.bounds.depth * (size.depth + 1) > limits::MAX_DEPTH {
            return Some(CheckError::TooDeep);
        }
        let visits = self.visit_budget(size);
        let within = self.bounds.cost.saturating_mul(size.values) <= visits;
        let is_within = |costs: &PatternCosts| within && costs.match_steps(size) <= MAX_MATCH_STEPS;
        if is_within(self.match_cost.known()) || is_within(self.match_cost.measured(&self.graph)) {
            return None;
        }
        let limit = EvalCost { visits, steps: MAX_MATCH_STEPS, ..EvalCost::UNLIMITED };
        let exceeds = self.estimate_cost(value, limit).exceeds(limit);
        exceeds.then_some(CheckError::TooLarge)
    }

    pub(crate) fn visit_budget(&self, size: ValueSize) -> u64 {
        let visits = VISITS_PER_VALUE.saturating_mul(size.values).saturating_add(BASE_VISITS);
        let visits = visits.min(MAX_VISITS);
        if self.match_cost.needs_backtracking() { visits / MAX_REEVALUATIONS } else { visits }
    }

    fn estimate_cost(&self, value: &Value, limit: EvalCost) -> EvalCost {
        let patterns = &self.match_cost.known().patterns;
        CostEstimator::new(&self.graph, &self.bounds, patterns).estimate(value, limit)
    }

    fn list_violations(&self, schema: &SchemaSource, value: &Value) -> Vec<Violation> {
        // Without recursion, creating only the first error is always affordable.
        let errors = if self.bounds.recursive { MAX_ERROR_COST } else { u64::MAX };
        let visits = self.visit_budget(ValueSize::measure(value));
        let limit =
            EvalCost { visits, copied_bytes: MAX_COPIED_BYTES, errors, ..EvalCost::UNLIMITED };
        let load = self.estimate_cost(value, limit);
        if load.exceeds(limit) {
            return vec![Violation::of_whole_value(UNLOCATED_MESSAGE.to_owned())];
        }
        let schema = self.source_value(schema);
        if load.errors <= MAX_ERROR_COST {
            messages::violations(&schema, self.validator.iter_errors(value))
        } else {
            messages::violations(&schema, self.validator.validate(value).err().into_iter())
        }
    }
}
