//! Parses the keywords of a schema into a graph.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

use crate::error::SchemaError;
use crate::graph::{Applicator, NodeId, SchemaGraph};
use crate::limits::MAX_ANCHOR_TARGETS;
use crate::reference::{self, ReferenceTarget};

impl SchemaGraph {
    /// Parses a schema; `id_keyword` is the draft's name for `$id`.
    ///
    /// # Errors
    ///
    /// Returns the reference that points outside the schema or has no target.
    pub(crate) fn from_schema(
        schema: &Value,
        id_keyword: &'static str,
    ) -> Result<Self, SchemaError> {
        let mut graph = SchemaReader::new(schema, id_keyword).read()?;
        graph.mark_evaluated();
        Ok(graph)
    }
}

/// A parser for a schema, with its partial graph.
#[derive(Debug)]
struct SchemaReader<'s> {
    schema: &'s Value,
    id_keyword: &'static str,
    graph: SchemaGraph,
    /// Nodes by the address of their JSON, which is stable while borrowed.
    nodes: HashMap<*const Value, NodeId>,
    patterns: HashMap<&'s str, usize>,
    pending: PendingParts<'s>,
    anchors: HashMap<&'s str, Vec<NodeId>>,
    /// Whether a subschema declares its own base, which would change the meaning of its references.
    has_nested_base: bool,
}

/// The parts of a schema that are found and not parsed.
#[derive(Debug, Default)]
struct PendingParts<'s> {
    subschemas: VecDeque<(&'s Value, NodeId)>,
    references: VecDeque<(NodeId, &'s str)>,
}

impl<'s> SchemaReader<'s> {
    fn new(schema: &'s Value, id_keyword: &'static str) -> Self {
        Self {
            schema,
            id_keyword,
            graph: SchemaGraph::default(),
            nodes: HashMap::new(),
            patterns: HashMap::new(),
            pending: PendingParts::default(),
            anchors: HashMap::new(),
            has_nested_base: false,
        }
    }

    fn read(mut self) -> Result<SchemaGraph, SchemaError> {
        self.node_for(self.schema);
        let mut named = Vec::new();
        let mut referring = false;
        loop {
            while let Some((value, node)) = self.pending.subschemas.pop_front() {
                match value {
                    Value::Object(keywords) => self.read_keywords(node, keywords),
                    Value::Bool(false) => self.graph.nodes[node].max_errors = 1,
                    _ => {}
                }
            }
            // A reference may make another part of the document a subschema, so parsing continues.
            let Some((from, text)) = self.pending.references.pop_front() else { break };
            referring = true;
            match reference::resolve(self.schema, text)? {
                ReferenceTarget::Subschema(schema_part) => {
                    self.add_edge(from, Applicator::Reference, schema_part);
                }
                ReferenceTarget::Anchor(name) => named.push((from, text, name)),
            }
        }
        let mut led = 0;
        for (from, text, name) in named {
            let targets = self.anchors.get(name).ok_or_else(|| reference::unresolved(text))?;
            led += targets.len();
            if led > MAX_ANCHOR_TARGETS {
                return Err(SchemaError::TooManyAnchors);
            }
            let edges = targets.iter().map(|target| (Applicator::Reference, *target));
            self.graph.nodes[from].edges.extend(edges);
        }
        if self.has_nested_base && referring {
            return Err(SchemaError::NestedBase { id_keyword: self.id_keyword });
        }
        Ok(self.graph)
    }

    fn node_for(&mut self, value: &'s Value) -> NodeId {
        if let Some(node) = self.nodes.get(&std::ptr::from_ref(value)) {
            return *node;
        }
        let node = self.graph.add_node();
        self.nodes.insert(value, node);
        self.pending.subschemas.push_back((value, node));
        node
    }

    fn add_edge(&mut self, from: NodeId, applicator: Applicator, value: &'s Value) {
        let target = self.node_for(value);
        self.graph.nodes[from].edges.push((applicator, target));
    }

    fn add_pattern(&mut self, pattern: &'s str) -> usize {
        *self.patterns.entry(pattern).or_insert_with(|| {
            self.graph.patterns.push(pattern.to_owned());
            self.graph.patterns.len() - 1
        })
    }

    fn read_keywords(&mut self, node: NodeId, keywords: &'s Map<String, Value>) {
        let mut held = 0;
        for (keyword, value) in keywords {
            self.graph.nodes[node].max_errors += max_errors(keyword, value);
            if !self.read_value_keyword(node, keyword, value)
                && !self.read_object_keyword(node, keyword, value)
                && !self.read_array_keyword(node, keyword, value)
                && !self.read_schema_keyword(node, keyword, value)
            {
                held += count_values(value);
            }
        }
        let node = &mut self.graph.nodes[node];
        node.weight = 1 + (held + node.edges.len()) as u64 / 4;
    }

    fn read_value_keyword(&mut self, node: NodeId, keyword: &str, value: &'s Value) -> bool {
        match (keyword, value) {
            ("allOf", Value::Array(all)) => {
                all.iter().for_each(|value| self.add_edge(node, Applicator::InPlace, value));
            }
            ("anyOf" | "oneOf", Value::Array(all)) => {
                all.iter().for_each(|value| self.add_edge(node, Applicator::Alternative, value));
            }
            ("not" | "if" | "then" | "else", _) => self.add_edge(node, Applicator::InPlace, value),
            ("pattern", Value::String(pattern)) => {
                let pattern = self.add_pattern(pattern);
                self.graph.nodes[node].patterns.push(pattern);
            }
            _ => return false,
        }
        true
    }

    fn read_object_keyword(&mut self, node: NodeId, keyword: &str, value: &'s Value) -> bool {
        match (keyword, value) {
            ("properties", Value::Object(members)) => {
                for (name, value) in members {
                    self.add_edge(node, Applicator::Member(name.as_str().into()), value);
                }
            }
            ("patternProperties", Value::Object(members)) => {
                for (pattern, value) in members {
                    let pattern = self.add_pattern(pattern);
                    self.graph.nodes[node].name_patterns.push(pattern);
                    self.add_edge(node, Applicator::EachMember, value);
                }
            }
            ("additionalProperties", _) => self.add_edge(node, Applicator::OtherMember, value),
            ("unevaluatedProperties", _) => {
                self.graph.nodes[node].has_unevaluated = true;
                self.add_edge(node, Applicator::OtherMember, value);
            }
            ("propertyNames", _) => self.add_edge(node, Applicator::MemberName, value),
            ("dependentSchemas" | "dependencies", Value::Object(members)) => {
                for value in members.values().filter(|value| !value.is_array()) {
                    self.add_edge(node, Applicator::InPlace, value);
                }
            }
            _ => return false,
        }
        true
    }

    fn read_array_keyword(&mut self, node: NodeId, keyword: &str, value: &'s Value) -> bool {
        match (keyword, value) {
            ("items" | "prefixItems", Value::Array(all)) => {
                for (index, value) in all.iter().enumerate() {
                    self.add_edge(node, Applicator::Element(index), value);
                }
            }
            ("items" | "additionalItems" | "contains", _) => {
                self.add_edge(node, Applicator::EachElement, value);
            }
            ("unevaluatedItems", _) => {
                self.graph.nodes[node].has_unevaluated = true;
                self.add_edge(node, Applicator::EachElement, value);
            }
            _ => return false,
        }
        true
    }

    /// Parses a keyword that contains, references or defines subschemas.
    fn read_schema_keyword(&mut self, node: NodeId, keyword: &str, value: &'s Value) -> bool {
        match (keyword, value) {
            ("$defs" | "definitions", Value::Object(members)) => {
                for value in members.values() {
                    self.node_for(value);
                }
            }
            ("contentSchema", _) => {
                self.node_for(value);
            }
            ("$ref" | "$dynamicRef", Value::String(text)) => {
                self.pending.references.push_back((node, text));
            }
            // The target is always the whole schema, whatever the text: the validator ignores it.
            ("$recursiveRef", Value::String(_)) => self.pending.references.push_back((node, "#")),
            ("$anchor" | "$dynamicAnchor", Value::String(name)) => {
                self.anchors.entry(name).or_default().push(node);
            }
            ("$schema", _) => self.has_nested_base |= node != 0,
            (_, Value::String(id)) if keyword == self.id_keyword => match id.strip_prefix('#') {
                Some(name) => self.anchors.entry(name).or_default().push(node),
                None => self.has_nested_base |= node != 0,
            },
            _ => return false,
        }
        true
    }
}

/// Returns the maximum number of errors of a keyword, without its subschemas.
fn max_errors(keyword: &str, value: &Value) -> u64 {
    match keyword {
        "required" | "dependentRequired" | "dependencies" => count_values(value) as u64,
        "type" | "enum" | "const" | "not" | "anyOf" | "oneOf" => 1,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => 1,
        "pattern" | "minLength" | "maxLength" => 1,
        "minItems" | "maxItems" | "uniqueItems" | "contains" => 1,
        "additionalItems" | "unevaluatedItems" => 1,
        "minProperties" | "maxProperties" | "propertyNames" => 1,
        "additionalProperties" | "unevaluatedProperties" => 1,
        _ => 0,
    }
}

/// Returns the number of JSON values in `value`, including itself.
pub(crate) fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count_values).sum(),
        Value::Object(members) => members.values().map(count_values).sum(),
        _ => 0,
    }
}
