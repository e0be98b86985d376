//! The cost of matching the regular expressions of a schema.

use std::sync::OnceLock;

use crate::cost::NodeGroups;
use crate::graph::SchemaGraph;
use crate::pattern::{self, PatternCost};
use crate::value_size::ValueSize;

/// The cost of the regular expressions of a schema: an upper bound, measured at the first value that
/// exceeds the bound.
#[derive(Debug)]
pub(crate) struct MatchCost {
    bound: PatternCosts,
    /// `None` if the bound is already measured.
    measured: OnceLock<Option<PatternCosts>>,
}

impl MatchCost {
    /// Creates the cost from upper bounds.
    pub(crate) fn from_bounds(
        graph: &SchemaGraph,
        groups: &NodeGroups,
        bounds: Vec<PatternCost>,
    ) -> Self {
        Self { bound: PatternCosts::new(graph, groups, bounds), measured: OnceLock::new() }
    }

    pub(crate) fn from_measured(
        graph: &SchemaGraph,
        groups: &NodeGroups,
        patterns: Vec<PatternCost>,
    ) -> Self {
        Self { bound: PatternCosts::new(graph, groups, patterns), measured: OnceLock::from(None) }
    }

    /// Returns the costs as exact as known.
    pub(crate) fn known(&self) -> &PatternCosts {
        self.measured.get().and_then(Option::as_ref).unwrap_or(&self.bound)
    }

    /// Returns the measured costs. An expression that the validator did not compile may be too
    /// large to measure; the bound remains.
    pub(crate) fn measured(&self, graph: &SchemaGraph) -> &PatternCosts {
        self.measured
            .get_or_init(|| {
                let patterns = pattern::measure(&graph.patterns).ok()?;
                Some(PatternCosts::new(graph, &NodeGroups::find(graph), patterns))
            })
            .as_ref()
            .unwrap_or(&self.bound)
    }

    pub(crate) fn needs_backtracking(&self) -> bool {
        self.bound.patterns.iter().any(|pattern| pattern.needs_backtracking)
    }
}

/// The cost of each expression, and the sums over the schema.
#[derive(Debug)]
pub(crate) struct PatternCosts {
    /// Costs, by index into [`SchemaGraph::patterns`].
    pub(crate) patterns: Vec<PatternCost>,
    /// Maximum number of steps per byte of text, for a value with one of each part.
    linear: u64,
    /// Maximum number of steps per pair of bytes.
    backtracking: u64,
}

impl PatternCosts {
    fn new(graph: &SchemaGraph, groups: &NodeGroups, patterns: Vec<PatternCost>) -> Self {
        let sum = |backtracks| {
            let is_counted = |one: &PatternCost| one.needs_backtracking == backtracks;
            if !patterns.iter().any(is_counted) {
                return 0;
            }
            groups.unfolded_weight(graph, |node| {
                let all = node.patterns.iter().chain(&node.name_patterns);
                all.map(|index| patterns[*index]).filter(is_counted).map(|one| one.size).sum()
            })
        };
        Self { linear: sum(false), backtracking: sum(true), patterns }
    }

    /// Returns the maximum number of steps for a value of that size.
    pub(crate) fn match_steps(&self, size: ValueSize) -> u64 {
        let text = size.text_bytes + size.values;
        let backtracking = self.backtracking.saturating_mul(text);
        self.linear.saturating_add(backtracking).saturating_mul(text)
    }
}
