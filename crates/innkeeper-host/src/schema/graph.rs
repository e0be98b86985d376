//! The subschemas of one schema and which of them apply where, read without compiling it.

use std::collections::HashMap;

use serde_json::Value;

use super::keywords::Reader;

/// The place of a node in [`Graph::nodes`].
pub(super) type NodeId = usize;

/// Where a subschema applies, seen from the value its parent applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// To the same value.
    Here,
    /// To the same value, as one of several that may fail.
    Alternative,
    /// To the same value, by reference.
    Reference,
    /// To the member of that name.
    Member(Box<str>),
    /// To the members the parent does not name.
    OtherMember,
    /// To every member.
    EachMember,
    /// To the name of every member.
    Name,
    /// To the element at that index.
    Element(usize),
    /// To every element.
    EachElement,
}

impl Step {
    /// Whether it stays at the value, consuming nothing of it.
    pub(super) fn stays(&self) -> bool {
        matches!(self, Self::Here | Self::Alternative | Self::Reference)
    }
}

/// One subschema.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// What one visit costs, in units of a subschema with a few keywords.
    pub(super) weight: u64,
    /// How many errors one visit can yield at most, without its subschemas'.
    pub(super) failures: u64,
    /// What else is applied.
    pub(super) edges: Vec<(Step, NodeId)>,
    /// Regular expressions a string is matched against, by index into [`Graph::patterns`].
    pub(super) patterns: Vec<usize>,
    /// Regular expressions the names of members are matched against.
    pub(super) name_patterns: Vec<usize>,
    /// Whether `unevaluatedProperties` or `unevaluatedItems` is among its keywords.
    pub(super) unevaluated: bool,
}

/// A schema as a graph.
///
/// It reads the keywords of all drafts at once, so that it never has less in it than the compiler
/// of any one draft will see.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// The first is the whole schema.
    pub(super) nodes: Vec<Node>,
    /// The distinct regular expressions.
    pub(super) patterns: Vec<String>,
}

impl Graph {
    /// Reads a schema; `id_keyword` is what its draft calls `$id`.
    ///
    /// # Errors
    ///
    /// A reference that leads out of the schema or nowhere, as a sentence.
    pub(super) fn read(schema: &Value, id_keyword: &'static str) -> Result<Self, String> {
        let mut graph = Reader::new(schema, id_keyword).read()?;
        graph.mark_evaluated();
        Ok(graph)
    }

    pub(super) fn push(&mut self) -> NodeId {
        self.nodes.push(Node { weight: 1, ..Node::default() });
        self.nodes.len() - 1
    }

    /// Adds what `unevaluatedProperties` and `unevaluatedItems` cost: to learn what was evaluated,
    /// the validator applies everything that stays at the value once more, at every level.
    fn mark_evaluated(&mut self) {
        let asking: Vec<NodeId> =
            (0..self.nodes.len()).filter(|node| self.nodes[*node].unevaluated).collect();
        let mut marks = HashMap::new();
        let mut unread = asking.clone();
        while let Some(node) = unread.pop() {
            let mark = self.mark(&mut marks, node);
            let mut edges = Vec::new();
            for (step, target) in self.nodes[node].edges.clone() {
                if step.stays() {
                    if !marks.contains_key(&target) {
                        unread.push(target);
                    }
                    edges.push((Step::Here, self.mark(&mut marks, target)));
                }
                if matches!(step, Step::Here | Step::Alternative | Step::OtherMember) {
                    edges.push((step, target));
                }
            }
            self.nodes[mark].edges = edges;
        }
        for node in asking {
            self.nodes[node].edges.push((Step::Here, marks[&node]));
        }
    }

    fn mark(&mut self, marks: &mut HashMap<NodeId, NodeId>, node: NodeId) -> NodeId {
        *marks.entry(node).or_insert_with(|| self.push())
    }
}
