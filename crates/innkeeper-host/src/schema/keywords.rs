//! Reading the keywords of a schema into a graph.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

use super::graph::{Graph, NodeId, Step};
use super::reference::{self, Target};

/// How many places references may lead to by the names of anchors. A name used twice is rare, and a
/// thousand references to a name used a thousand times would take long to read alone.
const LED: usize = 10_000;

/// A schema half read.
#[derive(Debug)]
pub(super) struct Reader<'s> {
    schema: &'s Value,
    id_keyword: &'static str,
    graph: Graph,
    /// Nodes by the address of their JSON, which stays where it is while it is borrowed.
    nodes: HashMap<*const Value, NodeId>,
    patterns: HashMap<&'s str, usize>,
    unread: VecDeque<(&'s Value, NodeId)>,
    references: VecDeque<(NodeId, &'s str)>,
    anchors: HashMap<&'s str, Vec<NodeId>>,
    /// Whether a part declares a base of its own, against which its references would count.
    rebased: bool,
}

impl<'s> Reader<'s> {
    pub(super) fn new(schema: &'s Value, id_keyword: &'static str) -> Self {
        Self {
            schema,
            id_keyword,
            graph: Graph::default(),
            nodes: HashMap::new(),
            patterns: HashMap::new(),
            unread: VecDeque::new(),
            references: VecDeque::new(),
            anchors: HashMap::new(),
            rebased: false,
        }
    }

    pub(super) fn read(mut self) -> Result<Graph, String> {
        self.node(self.schema);
        let mut named = Vec::new();
        let mut referring = false;
        loop {
            while let Some((value, node)) = self.unread.pop_front() {
                match value {
                    Value::Object(keywords) => self.keywords(node, keywords),
                    Value::Bool(false) => self.graph.nodes[node].failures = 1,
                    _ => {}
                }
            }
            // A reference may lead to a part that only it makes a subschema, so read on.
            let Some((from, text)) = self.references.pop_front() else { break };
            referring = true;
            match reference::resolve(self.schema, text)? {
                Target::Part(part) => self.edge(from, Step::Reference, part),
                Target::Anchor(name) => named.push((from, text, name)),
            }
        }
        let mut led = 0;
        for (from, text, name) in named {
            let targets = self.anchors.get(name).ok_or_else(|| reference::nowhere(text))?;
            led += targets.len();
            if led > LED {
                return Err(format!("its references lead to more than {LED} anchors of one name"));
            }
            let edges = targets.iter().map(|target| (Step::Reference, *target));
            self.graph.nodes[from].edges.extend(edges);
        }
        if self.rebased && referring {
            return Err(format!("it has references and a nested `{}`", self.id_keyword));
        }
        Ok(self.graph)
    }

    fn node(&mut self, value: &'s Value) -> NodeId {
        if let Some(node) = self.nodes.get(&std::ptr::from_ref(value)) {
            return *node;
        }
        let node = self.graph.push();
        self.nodes.insert(value, node);
        self.unread.push_back((value, node));
        node
    }

    fn edge(&mut self, from: NodeId, step: Step, value: &'s Value) {
        let target = self.node(value);
        self.graph.nodes[from].edges.push((step, target));
    }

    fn pattern(&mut self, pattern: &'s str) -> usize {
        *self.patterns.entry(pattern).or_insert_with(|| {
            self.graph.patterns.push(pattern.to_owned());
            self.graph.patterns.len() - 1
        })
    }

    fn keywords(&mut self, node: NodeId, keywords: &'s Map<String, Value>) {
        let mut held = 0;
        for (keyword, value) in keywords {
            self.graph.nodes[node].failures += failures(keyword, value);
            if !self.of_value(node, keyword, value)
                && !self.of_object(node, keyword, value)
                && !self.of_array(node, keyword, value)
                && !self.of_schema(node, keyword, value)
            {
                held += count(value);
            }
        }
        let node = &mut self.graph.nodes[node];
        node.weight = 1 + (held + node.edges.len()) as u64 / 4;
    }

    fn of_value(&mut self, node: NodeId, keyword: &str, value: &'s Value) -> bool {
        match (keyword, value) {
            ("allOf", Value::Array(all)) => {
                all.iter().for_each(|value| self.edge(node, Step::Here, value));
            }
            ("anyOf" | "oneOf", Value::Array(all)) => {
                all.iter().for_each(|value| self.edge(node, Step::Alternative, value));
            }
            ("not" | "if" | "then" | "else", _) => self.edge(node, Step::Here, value),
            ("pattern", Value::String(pattern)) => {
                let pattern = self.pattern(pattern);
                self.graph.nodes[node].patterns.push(pattern);
            }
            _ => return false,
        }
        true
    }

    fn of_object(&mut self, node: NodeId, keyword: &str, value: &'s Value) -> bool {
        match (keyword, value) {
            ("properties", Value::Object(members)) => {
                for (name, value) in members {
                    self.edge(node, Step::Member(name.as_str().into()), value);
                }
            }
            ("patternProperties", Value::Object(members)) => {
                for (pattern, value) in members {
                    let pattern = self.pattern(pattern);
                    self.graph.nodes[node].name_patterns.push(pattern);
                    self.edge(node, Step::EachMember, value);
                }
            }
            ("additionalProperties", _) => self.edge(node, Step::OtherMember, value),
            ("unevaluatedProperties", _) => {
                self.graph.nodes[node].unevaluated = true;
                self.edge(node, Step::OtherMember, value);
            }
            ("propertyNames", _) => self.edge(node, Step::Name, value),
            ("dependentSchemas" | "dependencies", Value::Object(members)) => {
                for value in members.values().filter(|value| !value.is_array()) {
                    self.edge(node, Step::Here, value);
                }
            }
            _ => return false,
        }
        true
    }

    fn of_array(&mut self, node: NodeId, keyword: &str, value: &'s Value) -> bool {
        match (keyword, value) {
            ("items" | "prefixItems", Value::Array(all)) => {
                for (index, value) in all.iter().enumerate() {
                    self.edge(node, Step::Element(index), value);
                }
            }
            ("items" | "additionalItems" | "contains", _) => {
                self.edge(node, Step::EachElement, value);
            }
            ("unevaluatedItems", _) => {
                self.graph.nodes[node].unevaluated = true;
                self.edge(node, Step::EachElement, value);
            }
            _ => return false,
        }
        true
    }

    /// Reads a keyword that names subschemas, refers to them, or holds them for others.
    fn of_schema(&mut self, node: NodeId, keyword: &str, value: &'s Value) -> bool {
        match (keyword, value) {
            ("$defs" | "definitions", Value::Object(members)) => {
                for value in members.values() {
                    self.node(value);
                }
            }
            ("contentSchema", _) => {
                self.node(value);
            }
            ("$ref" | "$dynamicRef", Value::String(text)) => {
                self.references.push_back((node, text));
            }
            // Always the whole schema, whatever its text says: so the validator has it.
            ("$recursiveRef", Value::String(_)) => self.references.push_back((node, "#")),
            ("$anchor" | "$dynamicAnchor", Value::String(name)) => {
                self.anchors.entry(name).or_default().push(node);
            }
            ("$schema", _) => self.rebased |= node != 0,
            (_, Value::String(id)) if keyword == self.id_keyword => match id.strip_prefix('#') {
                Some(name) => self.anchors.entry(name).or_default().push(node),
                None => self.rebased |= node != 0,
            },
            _ => return false,
        }
        true
    }
}

/// How many errors one keyword can yield at most, without its subschemas'.
fn failures(keyword: &str, value: &Value) -> u64 {
    match keyword {
        "required" | "dependentRequired" | "dependencies" => count(value) as u64,
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

/// The number of JSON values in `value`, itself included.
pub(super) fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}
