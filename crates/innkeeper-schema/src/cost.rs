//! Bounds the cost of compiling and applying a schema without doing either.

use crate::error::SchemaError;
use crate::graph::{NodeId, SchemaGraph, SchemaNode};
use crate::limits::{MAX_COST, MAX_DEPTH, MAX_PATTERNS};

/// Bounds of a schema, computed from its graph.
#[derive(Debug, PartialEq)]
pub(crate) struct SchemaBounds {
    /// Number of visited subschemas for a value with one of each part; a recursion counts once.
    pub(crate) cost: u64,
    /// Whether a subschema contains itself, so that the depth of the value matters.
    pub(crate) recursive: bool,
    /// Whether each node contains itself.
    pub(crate) cyclic: Vec<bool>,
    /// Maximum number of nested subschemas: at one value for a recursive schema, otherwise in
    /// total.
    pub(crate) depth: usize,
    /// Nodes in topological order: a node comes before the nodes that it applies to the same value.
    pub(crate) order: Vec<NodeId>,
}

impl SchemaBounds {
    /// Checks the bounds of `graph`.
    ///
    /// # Errors
    ///
    /// Returns the exceeded bound.
    pub(crate) fn new(graph: &SchemaGraph, node_groups: &NodeGroups) -> Result<Self, SchemaError> {
        if graph.patterns.len() > MAX_PATTERNS {
            return Err(SchemaError::TooManyPatterns);
        }
        let order = topological_order(graph).ok_or(SchemaError::SelfReference)?;
        let weigh = |node: &SchemaNode| node.weight;
        let at_one_value = longest_and_heaviest(graph, &order, weigh);
        let cost = node_groups.unfolded_weight(graph, weigh).max(at_one_value.1);
        if cost > MAX_COST {
            return Err(SchemaError::TooCostly);
        }
        let cyclic: Vec<bool> =
            (0..graph.nodes.len()).map(|node| node_groups.is_cyclic(graph, node)).collect();
        let recursive = cyclic.contains(&true);
        let depth = if recursive { at_one_value.0 } else { node_groups.deepest(graph) };
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooManyNestedSubschemas);
        }
        Ok(Self { cost, recursive, cyclic, depth, order })
    }
}

/// Returns `None` if a node applies itself to the same value.
fn topological_order(graph: &SchemaGraph) -> Option<Vec<NodeId>> {
    let mut waiting = vec![0_usize; graph.nodes.len()];
    for target in graph.nodes.iter().flat_map(in_place_targets) {
        waiting[target] += 1;
    }
    let mut order: Vec<NodeId> =
        (0..graph.nodes.len()).filter(|node| waiting[*node] == 0).collect();
    let mut next = 0;
    while let Some(node) = order.get(next) {
        next += 1;
        for target in in_place_targets(&graph.nodes[*node]) {
            waiting[target] -= 1;
            if waiting[target] == 0 {
                order.push(target);
            }
        }
    }
    (order.len() == graph.nodes.len()).then_some(order)
}

fn in_place_targets(node: &SchemaNode) -> impl Iterator<Item = NodeId> {
    node.edges.iter().filter(|(applicator, _)| applicator.is_in_place()).map(|(_, target)| *target)
}

/// Returns the longest chain and the largest sum of nodes that apply to one value.
fn longest_and_heaviest(
    graph: &SchemaGraph,
    order: &[NodeId],
    weigh: impl Fn(&SchemaNode) -> u64,
) -> (usize, u64) {
    let mut at = vec![(0_usize, 0_u64); graph.nodes.len()];
    for node in order.iter().rev() {
        let mut longest = 0;
        let mut sum = weigh(&graph.nodes[*node]);
        for target in in_place_targets(&graph.nodes[*node]) {
            longest = longest.max(at[target].0);
            sum = sum.saturating_add(at[target].1);
        }
        at[*node] = (longest + 1, sum);
    }
    at.into_iter().fold((0, 0), |acc, item| (acc.0.max(item.0), acc.1.max(item.1)))
}

/// The reachable nodes in groups of nodes that contain one another; a group comes after the groups
/// that it contains.
pub(crate) struct NodeGroups {
    members: Vec<NodeId>,
    /// End of each group in `members`.
    ends: Vec<usize>,
    /// Group of each node; `usize::MAX` for an unreachable node.
    group: Vec<usize>,
}

impl NodeGroups {
    /// Finds strongly connected components with Tarjan's algorithm, without recursion.
    pub(crate) fn find(graph: &SchemaGraph) -> Self {
        let count = graph.nodes.len();
        let mut node_groups = Self {
            members: Vec::with_capacity(count),
            ends: Vec::with_capacity(count),
            group: vec![usize::MAX; count],
        };
        let mut visited = vec![usize::MAX; count];
        let mut lowest = vec![0; count];
        let mut open = Vec::new();
        let mut path = vec![(0, 0)];
        let mut time = 0;
        while let Some((node, edge)) = path.pop() {
            if edge == 0 {
                visited[node] = time;
                lowest[node] = time;
                time += 1;
                open.push(node);
            } else {
                let (_, target) = graph.nodes[node].edges[edge - 1];
                lowest[node] = lowest[node].min(lowest[target]);
            }
            let mut edges = graph.nodes[node].edges.iter().enumerate().skip(edge);
            let entered = edges.find_map(|(index, (_, target))| {
                if visited[*target] == usize::MAX {
                    return Some((index, *target));
                }
                if node_groups.group[*target] == usize::MAX {
                    lowest[node] = lowest[node].min(visited[*target]);
                }
                None
            });
            if let Some((index, target)) = entered {
                path.push((node, index + 1));
                path.push((target, 0));
            } else if lowest[node] == visited[node] {
                node_groups.close(&mut open, node);
            }
        }
        node_groups
    }

    fn close(&mut self, open: &mut Vec<NodeId>, node: NodeId) {
        let start = open.iter().rposition(|member| *member == node).unwrap_or(0);
        for member in open.drain(start..) {
            self.group[member] = self.ends.len();
            self.members.push(member);
        }
        self.ends.push(self.members.len());
    }

    /// Returns the nodes of a group; empty for the group of unreachable nodes.
    fn members(&self, group: usize) -> &[NodeId] {
        let Some(end) = self.ends.get(group) else { return &[] };
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.members[start..*end]
    }

    fn is_cyclic(&self, graph: &SchemaGraph, node: NodeId) -> bool {
        let is_single = self.members(self.group[node]).len() <= 1;
        !is_single || graph.nodes[node].edges.iter().any(|(_, target)| *target == node)
    }

    /// Returns the sum of `weigh` over the expanded graph, which are the visits of a value with one
    /// of each part; a group counts once, as a whole.
    pub(crate) fn unfolded_weight(
        &self,
        graph: &SchemaGraph,
        weigh: impl Fn(&SchemaNode) -> u64,
    ) -> u64 {
        self.fold(graph, &weigh, u64::saturating_add)
    }

    fn deepest(&self, graph: &SchemaGraph) -> usize {
        let deepest = self.fold(graph, &|_| 1, |one, other| one.max(other + 1));
        usize::try_from(deepest).unwrap_or(usize::MAX)
    }

    fn fold(
        &self,
        graph: &SchemaGraph,
        weigh: &impl Fn(&SchemaNode) -> u64,
        join: impl Fn(u64, u64) -> u64,
    ) -> u64 {
        let mut sums: Vec<u64> = Vec::with_capacity(self.ends.len());
        for index in 0..self.ends.len() {
            let group = self.members(index);
            let total = group
                .iter()
                .fold(0_u64, |sum, node| sum.saturating_add(weigh(&graph.nodes[*node])));
            let contained = group
                .iter()
                .flat_map(|node| &graph.nodes[*node].edges)
                .map(|(_, target)| self.group[*target])
                .filter(|target| *target != index);
            sums.push(contained.fold(total, |sum, target| join(sum, sums[target])));
        }
        sums.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn bounds(schema: &Value) -> Result<SchemaBounds, SchemaError> {
        let graph = SchemaGraph::from_schema(schema, "$id").unwrap();
        SchemaBounds::new(&graph, &NodeGroups::find(&graph))
    }

    #[test]
    fn a_schema_without_references_costs_what_it_has() {
        let limits = bounds(&json!({"properties": {"a": true, "b": {"items": true}}})).unwrap();
        assert_eq!((limits.cost, limits.recursive, limits.depth), (4, false, 3));
    }

    #[test]
    fn a_part_referred_to_twice_costs_twice() {
        let part = json!({"$defs": {"a": {"allOf": [true, true]}}, "properties": {
            "x": {"$ref": "#/$defs/a"}, "y": {"$ref": "#/$defs/a"},
        }});
        assert_eq!(bounds(&part).unwrap().cost, 1 + 2 * (1 + 3));
    }

    #[test]
    fn a_recursion_counts_once_and_is_known_as_one() {
        let list = json!({"properties": {"next": {"$ref": "#"}}});
        let limits = bounds(&list).unwrap();
        assert_eq!((limits.cost, limits.recursive, limits.depth), (2, true, 2));
    }

    #[test]
    fn what_applies_to_a_value_comes_before_what_it_applies_there() {
        let graph = SchemaGraph::from_schema(
            &json!({"allOf": [{"not": true}], "items": {"$ref": "#"}}),
            "$id",
        );
        let graph = graph.unwrap();
        let order = SchemaBounds::new(&graph, &NodeGroups::find(&graph)).unwrap().order;
        for (position, node) in order.iter().enumerate() {
            for target in in_place_targets(&graph.nodes[*node]) {
                assert!(order[position..].contains(&target), "{node} before {target}");
            }
        }
    }
}
