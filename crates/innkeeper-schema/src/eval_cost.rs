//! Estimates the cost of a schema for one value without applying the schema.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use crate::cost::SchemaBounds;
use crate::graph::{Applicator, NodeId, SchemaGraph};
use crate::pattern::PatternCost;
use crate::value_size::ValueSize;

/// The maximum cost of applying a schema to a value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct EvalCost {
    /// Weighted number of subschemas visited for validation.
    pub(crate) visits: u64,
    /// Number of steps for matching regular expressions.
    pub(crate) steps: u64,
    /// Cost of creating all errors if no part matches.
    pub(crate) errors: u64,
    /// Memory that errors within alternatives copy, in bytes.
    pub(crate) copied_bytes: u64,
}

impl EvalCost {
    pub(crate) const UNLIMITED: Self =
        Self { visits: u64::MAX, steps: u64::MAX, errors: u64::MAX, copied_bytes: u64::MAX };

    /// Returns whether any cost is above that in `limit`.
    pub(crate) fn exceeds(self, limit: Self) -> bool {
        self.visits > limit.visits
            || self.steps > limit.steps
            || self.errors > limit.errors
            || self.copied_bytes > limit.copied_bytes
    }
}

/// The number of times a subschema is applied to one value.
#[derive(Clone, Copy, Default)]
struct VisitCounts {
    /// Visits for validation; a recursive subschema counts once for each value.
    to_validate: u64,
    /// Visits for error messages.
    to_explain: u64,
    /// Visits for error messages within alternatives.
    in_alternatives: u64,
}

/// Subschemas applied to one value, in the order of [`SchemaBounds::order`].
type AppliedNodes = BTreeMap<usize, VisitCounts>;

/// Computes an [`EvalCost`].
pub(crate) struct CostEstimator<'s> {
    graph: &'s SchemaGraph,
    bounds: &'s SchemaBounds,
    /// Position of each node in [`SchemaBounds::order`].
    positions: Vec<usize>,
    patterns: &'s [PatternCost],
    /// Cost at which the estimate may stop.
    limit: EvalCost,
    cost: EvalCost,
}

impl<'s> CostEstimator<'s> {
    pub(crate) fn new(
        graph: &'s SchemaGraph,
        bounds: &'s SchemaBounds,
        patterns: &'s [PatternCost],
    ) -> Self {
        let mut positions = vec![0; graph.nodes.len()];
        for (position, node) in bounds.order.iter().enumerate() {
            positions[*node] = position;
        }
        Self {
            graph,
            bounds,
            positions,
            patterns,
            limit: EvalCost::UNLIMITED,
            cost: EvalCost::default(),
        }
    }

    /// Estimates the cost for `value`; inexact above `limit`.
    pub(crate) fn estimate(mut self, value: &Value, limit: EvalCost) -> EvalCost {
        self.limit = limit;
        let mut applied = AppliedNodes::new();
        self.apply(
            &mut applied,
            0,
            VisitCounts { to_validate: 1, to_explain: 1, in_alternatives: 0 },
        );
        self.visit(value, applied, 0);
        self.cost
    }

    fn apply(&self, applied: &mut AppliedNodes, node: NodeId, visits: VisitCounts) {
        let sum = applied.entry(self.positions[node]).or_default();
        sum.to_validate = sum.to_validate.saturating_add(visits.to_validate);
        sum.to_explain = sum.to_explain.saturating_add(visits.to_explain);
        sum.in_alternatives = sum.in_alternatives.saturating_add(visits.in_alternatives);
    }

    fn visit(&mut self, value: &Value, mut applied: AppliedNodes, depth: u64) {
        let mut below = ChildApplications::default();
        let mut copies = 0_u64;
        while let Some((position, mut visits)) = applied.pop_first() {
            let id = self.bounds.order[position];
            let node = &self.graph.nodes[id];
            if self.bounds.cyclic[id] {
                visits.to_validate = visits.to_validate.min(1);
            }
            let copied = visits.in_alternatives.saturating_mul(node.max_errors);
            copies = copies.saturating_add(copied);
            self.add_visits(id, visits, copied, depth);
            self.add_match_steps(id, visits, value);
            if self.cost.exceeds(self.limit) {
                return;
            }
            for (applicator, target) in &node.edges {
                if applicator.is_in_place() {
                    let in_alternatives = if *applicator == Applicator::Alternative {
                        visits.to_explain
                    } else {
                        visits.in_alternatives
                    };
                    self.apply(&mut applied, *target, VisitCounts { in_alternatives, ..visits });
                }
            }
            below.enter(self, id, visits, value);
        }
        if copies > 0 {
            let fingerprints = ValueSize::measure(value).memory_bytes();
            self.cost.copied_bytes =
                self.cost.copied_bytes.saturating_add(copies.saturating_mul(fingerprints));
        }
        for (key, value) in children(value) {
            let applied = below.for_child(self, key);
            if self.cost.exceeds(self.limit) {
                return;
            }
            if !applied.is_empty() {
                self.visit(value, applied, depth + 1);
            }
        }
    }

    fn add_visits(&mut self, node: NodeId, visits: VisitCounts, copied: u64, depth: u64) {
        let node = &self.graph.nodes[node];
        let weight = visits.to_validate.saturating_mul(node.weight);
        self.cost.visits = self.cost.visits.saturating_add(weight);
        // The path of an error is as long as the depth of the value; an error within alternatives
        // passes through all of them.
        let failures =
            visits.to_explain.saturating_mul(node.max_errors).saturating_mul(1 + depth / 4);
        let failures = failures.saturating_add(copied.saturating_mul(4));
        self.cost.errors = self.cost.errors.saturating_add(failures);
    }

    fn add_match_steps(&mut self, node: NodeId, visits: VisitCounts, value: &Value) {
        let node = &self.graph.nodes[node];
        let mut steps = 0_u64;
        let mut add = |pattern: &usize, text: &str| {
            steps = steps.saturating_add(self.patterns[*pattern].match_steps(text.len()));
        };
        match value {
            Value::String(text) => node.patterns.iter().for_each(|pattern| add(pattern, text)),
            Value::Object(members) if !node.name_patterns.is_empty() => {
                for name in members.keys() {
                    node.name_patterns.iter().for_each(|pattern| add(pattern, name));
                }
            }
            _ => {}
        }
        self.cost.steps = self.cost.steps.saturating_add(steps.saturating_mul(visits.to_validate));
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ChildKey<'v> {
    Member(&'v str),
    Element(usize),
}

fn children(value: &Value) -> Box<dyn Iterator<Item = (ChildKey<'_>, &Value)> + '_> {
    match value {
        Value::Array(elements) => Box::new(
            elements.iter().enumerate().map(|(index, child)| (ChildKey::Element(index), child)),
        ),
        Value::Object(members) => {
            Box::new(members.iter().map(|(name, child)| (ChildKey::Member(name), child)))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// The subschemas applied to the children of a value.
#[derive(Default)]
struct ChildApplications<'v> {
    /// Subschemas for every child.
    every: AppliedNodes,
    single: HashMap<ChildKey<'v>, AppliedNodes>,
    /// Subschemas for all children except a set.
    other: Vec<(AppliedNodes, HashSet<ChildKey<'v>>)>,
}

impl<'v> ChildApplications<'v> {
    fn for_child(&mut self, scale: &CostEstimator<'_>, key: ChildKey<'v>) -> AppliedNodes {
        let mut applied = self.every.clone();
        let single = self.single.remove(&key).into_iter();
        let other = self.other.iter().filter(|(_, but)| !but.contains(&key));
        for nodes in single.chain(other.map(|(nodes, _)| nodes.clone())) {
            for (target, visits) in nodes {
                scale.apply(&mut applied, scale.bounds.order[target], visits);
            }
        }
        applied
    }

    fn enter(
        &mut self,
        scale: &mut CostEstimator<'_>,
        node: NodeId,
        visits: VisitCounts,
        value: &'v Value,
    ) {
        match value {
            Value::Array(_) => self.enter_array(scale, node, visits),
            Value::Object(members) => self.enter_object(scale, node, visits, members),
            _ => {}
        }
    }

    fn enter_array(&mut self, scale: &CostEstimator<'_>, node: NodeId, visits: VisitCounts) {
        for (applicator, target) in &scale.graph.nodes[node].edges {
            let applied = match applicator {
                Applicator::EachElement => &mut self.every,
                Applicator::Element(index) => {
                    self.single.entry(ChildKey::Element(*index)).or_default()
                }
                _ => continue,
            };
            scale.apply(applied, *target, visits);
        }
    }

    fn enter_object(
        &mut self,
        scale: &mut CostEstimator<'_>,
        node: NodeId,
        visits: VisitCounts,
        members: &'v Map<String, Value>,
    ) {
        let graph = scale.graph;
        let mut other = AppliedNodes::new();
        let mut named = HashSet::new();
        for (applicator, target) in &graph.nodes[node].edges {
            match applicator {
                Applicator::Member(name) => {
                    if let Some((name, _)) = members.get_key_value(&**name) {
                        let key = ChildKey::Member(name);
                        named.insert(key);
                        scale.apply(self.single.entry(key).or_default(), *target, visits);
                    }
                }
                Applicator::EachMember => scale.apply(&mut self.every, *target, visits),
                Applicator::OtherMember => scale.apply(&mut other, *target, visits),
                Applicator::MemberName => {
                    for name in members.keys() {
                        let mut applied = AppliedNodes::new();
                        scale.apply(&mut applied, *target, visits);
                        scale.visit(&Value::String(name.clone()), applied, 0);
                    }
                }
                _ => {}
            }
        }
        if !other.is_empty() {
            self.other.push((other, named));
        }
    }
}
