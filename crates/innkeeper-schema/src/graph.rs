//! The graph of a schema's subschemas, parsed without compiling the schema.

use std::collections::HashMap;

/// Index of a node in [`SchemaGraph::nodes`].
pub(crate) type NodeId = usize;

/// The location to which a subschema applies, relative to the parent's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Applicator {
    /// The same value.
    InPlace,
    /// The same value, as one of several alternatives that may fail.
    Alternative,
    /// The same value, by reference.
    Reference,
    /// The member of that name.
    Member(Box<str>),
    /// The members that the parent does not name.
    OtherMember,
    /// Every member.
    EachMember,
    /// The name of every member.
    MemberName,
    /// The element at that index.
    Element(usize),
    /// Every element.
    EachElement,
}

impl Applicator {
    /// Returns whether the subschema applies to the same value.
    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace | Self::Alternative | Self::Reference)
    }
}

#[derive(Debug, Default)]
pub(crate) struct SchemaNode {
    /// Cost of one visit, in units of a subschema with a few keywords.
    pub(crate) weight: u64,
    /// Maximum number of errors of one visit, without its subschemas.
    pub(crate) max_errors: u64,
    /// Applied subschemas.
    pub(crate) edges: Vec<(Applicator, NodeId)>,
    /// Regular expressions for strings, by index into [`SchemaGraph::patterns`].
    pub(crate) patterns: Vec<usize>,
    /// Regular expressions for member names.
    pub(crate) name_patterns: Vec<usize>,
    /// Whether the node has `unevaluatedProperties` or `unevaluatedItems`.
    pub(crate) has_unevaluated: bool,
}

/// A schema as a graph.
///
/// The graph contains the keywords of all drafts, so that it has at least the nodes that the
/// compiler of any one draft uses.
#[derive(Debug, Default)]
pub(crate) struct SchemaGraph {
    /// Nodes; the first is the whole schema.
    pub(crate) nodes: Vec<SchemaNode>,
    /// Distinct regular expressions.
    pub(crate) patterns: Vec<String>,
}

impl SchemaGraph {
    pub(crate) fn add_node(&mut self) -> NodeId {
        self.nodes.push(SchemaNode { weight: 1, ..SchemaNode::default() });
        self.nodes.len() - 1
    }

    /// Adds the cost of `unevaluatedProperties` and `unevaluatedItems`: to collect the evaluated
    /// parts, the validator applies every in-place subschema again, at every level.
    pub(crate) fn mark_evaluated(&mut self) {
        let unevaluated: Vec<NodeId> =
            (0..self.nodes.len()).filter(|node| self.nodes[*node].has_unevaluated).collect();
        let mut marks = HashMap::new();
        let mut unread = unevaluated.clone();
        while let Some(node) = unread.pop() {
            let mark = self.mark(&mut marks, node);
            let mut edges = Vec::new();
            for (applicator, target) in self.nodes[node].edges.clone() {
                if applicator.is_in_place() {
                    if !marks.contains_key(&target) {
                        unread.push(target);
                    }
                    edges.push((Applicator::InPlace, self.mark(&mut marks, target)));
                }
                if matches!(
                    applicator,
                    Applicator::InPlace | Applicator::Alternative | Applicator::OtherMember
                ) {
                    edges.push((applicator, target));
                }
            }
            self.nodes[mark].edges = edges;
        }
        for node in unevaluated {
            self.nodes[node].edges.push((Applicator::InPlace, marks[&node]));
        }
    }

    fn mark(&mut self, marks: &mut HashMap<NodeId, NodeId>, node: NodeId) -> NodeId {
        *marks.entry(node).or_insert_with(|| self.add_node())
    }
}
