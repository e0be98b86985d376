//! What a schema can cost to compile and to apply, bounded without doing either.

use super::graph::{Graph, Node, NodeId};

/// The most a schema may cost with every reference written out, in visited subschemas; schemas in
/// use stay below a few thousand, and compiling one at the limit takes tens of milliseconds.
const COST: u64 = 100_000;

/// The most subschemas that may apply inside one another; each takes up to 1 KiB of stack in an
/// unoptimised build, and the smallest stack to be expected has 1 MiB.
pub(super) const DEPTH: usize = 768;

/// The most distinct regular expressions; compiling takes up to a millisecond for each.
const PATTERNS: usize = 64;

/// What is known of a schema from its graph.
#[derive(Debug, PartialEq)]
pub(super) struct Bounds {
    /// Visited subschemas for a value with one of everything; a recursion counts once.
    pub(super) cost: u64,
    /// Whether a part contains itself, so that the depth of the value counts too.
    pub(super) recursive: bool,
    /// The nodes that contain themselves.
    pub(super) cyclic: Vec<bool>,
    /// The most subschemas inside one another: at one value if recursive, else altogether.
    pub(super) depth: usize,
    /// Nodes in an order in which whatever applies to a value comes before what it applies there.
    pub(super) order: Vec<NodeId>,
}

impl Bounds {
    /// Checks `graph`.
    ///
    /// # Errors
    ///
    /// What is out of bounds, as a sentence.
    pub(super) fn of(graph: &Graph) -> Result<Self, String> {
        if graph.patterns.len() > PATTERNS {
            return Err(format!("it has more than {PATTERNS} patterns"));
        }
        let order = order(graph).ok_or("a part of it refers back to itself without an end")?;
        let parts = Parts::of(graph);
        let weigh = |node: &Node| node.weight;
        let at_one_value = longest_and_heaviest(graph, &order, weigh);
        let cost = parts.unfolded(graph, weigh).max(at_one_value.1);
        if cost > COST {
            return Err(format!("its parts refer to one another more than {COST} times over"));
        }
        let cyclic: Vec<bool> =
            (0..graph.nodes.len()).map(|node| parts.cyclic(graph, node)).collect();
        let recursive = cyclic.contains(&true);
        let depth = if recursive { at_one_value.0 } else { parts.deepest(graph) };
        if depth > DEPTH {
            return Err(format!("more than {DEPTH} of its parts lie inside one another"));
        }
        Ok(Self { cost, recursive, cyclic, depth, order })
    }
}

/// The sum of `weigh` over every visit of a value with one of everything.
pub(super) fn unfolded(graph: &Graph, weigh: impl Fn(&Node) -> u64) -> u64 {
    Parts::of(graph).unfolded(graph, weigh)
}

/// `None` if a node applies itself to the very same value.
fn order(graph: &Graph) -> Option<Vec<NodeId>> {
    let mut waiting = vec![0_usize; graph.nodes.len()];
    for target in graph.nodes.iter().flat_map(staying) {
        waiting[target] += 1;
    }
    let mut order: Vec<NodeId> =
        (0..graph.nodes.len()).filter(|node| waiting[*node] == 0).collect();
    let mut next = 0;
    while let Some(node) = order.get(next) {
        next += 1;
        for target in staying(&graph.nodes[*node]) {
            waiting[target] -= 1;
            if waiting[target] == 0 {
                order.push(target);
            }
        }
    }
    (order.len() == graph.nodes.len()).then_some(order)
}

fn staying(node: &Node) -> impl Iterator<Item = NodeId> {
    node.edges.iter().filter(|(step, _)| step.stays()).map(|(_, target)| *target)
}

/// The longest chain and the largest sum of nodes that apply to one value.
fn longest_and_heaviest(
    graph: &Graph,
    order: &[NodeId],
    weigh: impl Fn(&Node) -> u64,
) -> (usize, u64) {
    let mut at = vec![(0_usize, 0_u64); graph.nodes.len()];
    for node in order.iter().rev() {
        let mut longest = 0;
        let mut sum = weigh(&graph.nodes[*node]);
        for target in staying(&graph.nodes[*node]) {
            longest = longest.max(at[target].0);
            sum = sum.saturating_add(at[target].1);
        }
        at[*node] = (longest + 1, sum);
    }
    at.into_iter().fold((0, 0), |most, one| (most.0.max(one.0), most.1.max(one.1)))
}

/// The nodes that can be reached from the whole schema, grouped so that those that contain one
/// another are together, and every group comes after those it contains.
struct Parts {
    groups: Vec<Vec<NodeId>>,
    /// The group of each node; `usize::MAX` if it cannot be reached.
    group: Vec<usize>,
}

impl Parts {
    /// Tarjan's strongly connected components, without recursion.
    fn of(graph: &Graph) -> Self {
        let count = graph.nodes.len();
        let mut parts = Self { groups: Vec::new(), group: vec![usize::MAX; count] };
        let mut seen = vec![usize::MAX; count];
        let mut lowest = vec![0; count];
        let mut open = Vec::new();
        let mut path = vec![(0, 0)];
        let mut time = 0;
        while let Some((node, edge)) = path.pop() {
            if edge == 0 {
                seen[node] = time;
                lowest[node] = time;
                time += 1;
                open.push(node);
            } else {
                let (_, target) = graph.nodes[node].edges[edge - 1];
                lowest[node] = lowest[node].min(lowest[target]);
            }
            let mut edges = graph.nodes[node].edges.iter().enumerate().skip(edge);
            let entered = edges.find_map(|(index, (_, target))| {
                if seen[*target] == usize::MAX {
                    return Some((index, *target));
                }
                if parts.group[*target] == usize::MAX {
                    lowest[node] = lowest[node].min(seen[*target]);
                }
                None
            });
            if let Some((index, target)) = entered {
                path.push((node, index + 1));
                path.push((target, 0));
            } else if lowest[node] == seen[node] {
                parts.close(&mut open, node);
            }
        }
        parts
    }

    fn close(&mut self, open: &mut Vec<NodeId>, node: NodeId) {
        let start = open.iter().rposition(|one| *one == node).unwrap_or(0);
        let group = open.split_off(start);
        for one in &group {
            self.group[*one] = self.groups.len();
        }
        self.groups.push(group);
    }

    fn cyclic(&self, graph: &Graph, node: NodeId) -> bool {
        let alone = self.groups.get(self.group[node]).is_none_or(|group| group.len() == 1);
        !alone || graph.nodes[node].edges.iter().any(|(_, target)| *target == node)
    }

    /// The sum of `weigh` with everything written out; a group counts as a whole, once.
    fn unfolded(&self, graph: &Graph, weigh: impl Fn(&Node) -> u64) -> u64 {
        self.fold(graph, &weigh, u64::saturating_add)
    }

    fn deepest(&self, graph: &Graph) -> usize {
        let deepest = self.fold(graph, &|_| 1, |one, other| one.max(other + 1));
        usize::try_from(deepest).unwrap_or(usize::MAX)
    }

    fn fold(
        &self,
        graph: &Graph,
        own: &impl Fn(&Node) -> u64,
        join: impl Fn(u64, u64) -> u64,
    ) -> u64 {
        let mut sums: Vec<u64> = Vec::with_capacity(self.groups.len());
        for (index, group) in self.groups.iter().enumerate() {
            let held =
                group.iter().fold(0_u64, |sum, node| sum.saturating_add(own(&graph.nodes[*node])));
            let contained = group
                .iter()
                .flat_map(|node| &graph.nodes[*node].edges)
                .map(|(_, target)| self.group[*target])
                .filter(|target| *target != index);
            sums.push(contained.fold(held, |sum, target| join(sum, sums[target])));
        }
        sums.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn bounds(schema: &Value) -> Result<Bounds, String> {
        Bounds::of(&Graph::read(schema, "$id").unwrap())
    }

    #[test]
    fn a_schema_without_references_costs_what_it_has() {
        let found = bounds(&json!({"properties": {"a": true, "b": {"items": true}}})).unwrap();
        assert_eq!((found.cost, found.recursive, found.depth), (4, false, 3));
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
        let found = bounds(&list).unwrap();
        assert_eq!((found.cost, found.recursive, found.depth), (2, true, 2));
    }

    #[test]
    fn what_applies_to_a_value_comes_before_what_it_applies_there() {
        let graph = Graph::read(&json!({"allOf": [{"not": true}], "items": {"$ref": "#"}}), "$id");
        let graph = graph.unwrap();
        let order = Bounds::of(&graph).unwrap().order;
        for (place, node) in order.iter().enumerate() {
            for target in staying(&graph.nodes[*node]) {
                assert!(order[place..].contains(&target), "{node} before {target}");
            }
        }
    }
}
