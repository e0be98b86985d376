//! What one schema can cost on one value, found without applying it.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::cost::Bounds;
use super::graph::{Graph, NodeId, Step};
use super::pattern::Pattern;

/// How far down a value is looked at; deeper ones are beyond what JSON parsers accept.
const DEPTH: usize = 512;

/// The memory of one JSON value without the text in it, in bytes.
const VALUE: u64 = 72;

/// How large a value is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Size {
    /// How many values it consists of, itself included.
    pub(super) values: u64,
    /// The length of all names and strings, in bytes.
    pub(super) text: u64,
    /// How many arrays and objects lie inside one another.
    pub(super) depth: usize,
}

impl Size {
    pub(super) fn of(value: &Value) -> Self {
        let mut size = Self::default();
        size.add(value, 0);
        size
    }

    fn add(&mut self, value: &Value, depth: usize) {
        self.values += 1;
        self.depth = self.depth.max(depth);
        match value {
            Value::String(text) => self.text += text.len() as u64,
            Value::Array(elements) if depth < DEPTH => {
                elements.iter().for_each(|element| self.add(element, depth + 1));
            }
            Value::Object(members) if depth < DEPTH => {
                for (name, member) in members {
                    self.text += name.len() as u64;
                    self.add(member, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn memory(self) -> u64 {
        self.values * VALUE + self.text
    }
}

/// What applying a schema to a value takes at most.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Load {
    /// Subschemas visited to say whether it fits, by weight.
    pub(super) visits: u64,
    /// Steps of matching against regular expressions.
    pub(super) steps: u64,
    /// Errors, if none of it fits, by what it takes to make them.
    pub(super) failures: u64,
    /// Memory of the parts that errors within alternatives hold copies of, in bytes.
    pub(super) copied: u64,
}

/// How often a subschema is applied to one value.
#[derive(Clone, Copy, Default)]
struct Visits {
    /// To say whether it fits: what contains itself is only looked at once for each value.
    once: u64,
    /// To say why it does not.
    each: u64,
    /// Of these, within alternatives.
    copied: u64,
}

/// Subschemas applied to one value, in the order of [`Bounds::order`].
type Applied = BTreeMap<usize, Visits>;

/// Adds up a [`Load`].
pub(super) struct Scale<'s> {
    graph: &'s Graph,
    bounds: &'s Bounds,
    /// The place of each node in [`Bounds::order`].
    places: Vec<usize>,
    patterns: &'s [Pattern],
    /// Where adding up may stop.
    most_visits: u64,
    load: Load,
}

impl<'s> Scale<'s> {
    pub(super) fn new(graph: &'s Graph, bounds: &'s Bounds, patterns: &'s [Pattern]) -> Self {
        let mut places = vec![0; graph.nodes.len()];
        for (place, node) in bounds.order.iter().enumerate() {
            places[*node] = place;
        }
        Self { graph, bounds, places, patterns, most_visits: 0, load: Load::default() }
    }

    /// The load of `value`; no longer exact once it has more than `most_visits`.
    pub(super) fn weigh(mut self, value: &Value, most_visits: u64) -> Load {
        self.most_visits = most_visits;
        let mut applied = Applied::new();
        self.apply(&mut applied, 0, Visits { once: 1, each: 1, copied: 0 });
        self.visit(value, applied, 0);
        self.load
    }

    fn apply(&self, applied: &mut Applied, node: NodeId, visits: Visits) {
        let sum = applied.entry(self.places[node]).or_default();
        sum.once = sum.once.saturating_add(visits.once);
        sum.each = sum.each.saturating_add(visits.each);
        sum.copied = sum.copied.saturating_add(visits.copied);
    }

    fn visit(&mut self, value: &Value, mut applied: Applied, depth: u64) {
        let mut below = Below::of(value);
        let mut copies = 0_u64;
        while let Some((place, mut visits)) = applied.pop_first() {
            let id = self.bounds.order[place];
            let node = &self.graph.nodes[id];
            if self.bounds.cyclic[id] {
                visits.once = visits.once.min(1);
            }
            let copied = visits.copied.saturating_mul(node.failures);
            copies = copies.saturating_add(copied);
            self.count(id, visits, copied, depth);
            self.matched(id, visits, value);
            if self.load.visits > self.most_visits {
                return;
            }
            for (step, target) in &node.edges {
                if step.stays() {
                    let copied =
                        if *step == Step::Alternative { visits.each } else { visits.copied };
                    self.apply(&mut applied, *target, Visits { copied, ..visits });
                }
            }
            below.enter(self, id, visits);
        }
        if copies > 0 {
            let memory = Size::of(value).memory();
            self.load.copied = self.load.copied.saturating_add(copies.saturating_mul(memory));
        }
        for (value, applied) in below.values.into_iter().zip(below.applied) {
            if !applied.is_empty() {
                self.visit(value, applied, depth + 1);
            }
        }
    }

    fn count(&mut self, node: NodeId, visits: Visits, copied: u64, depth: u64) {
        let node = &self.graph.nodes[node];
        let weight = visits.once.saturating_mul(node.weight);
        self.load.visits = self.load.visits.saturating_add(weight);
        // The path of an error is as long as the value is deep; one within alternatives is
        // handed through all of them.
        let failures = visits.each.saturating_mul(node.failures).saturating_mul(1 + depth / 4);
        let failures = failures.saturating_add(copied.saturating_mul(4));
        self.load.failures = self.load.failures.saturating_add(failures);
    }

    fn matched(&mut self, node: NodeId, visits: Visits, value: &Value) {
        let node = &self.graph.nodes[node];
        let mut steps = 0_u64;
        let mut add = |pattern: &usize, text: &str| {
            steps = steps.saturating_add(self.patterns[*pattern].steps(text.len()));
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
        self.load.steps = self.load.steps.saturating_add(steps.saturating_mul(visits.once));
    }
}

/// What is inside one value, and what is applied to it.
struct Below<'v> {
    values: Vec<&'v Value>,
    applied: Vec<Applied>,
    members: Option<(&'v Map<String, Value>, HashMap<&'v str, usize>)>,
}

impl<'v> Below<'v> {
    fn of(value: &'v Value) -> Self {
        let (values, members): (Vec<&Value>, _) = match value {
            Value::Array(elements) => (elements.iter().collect(), None),
            Value::Object(members) => {
                let places = members.keys().enumerate().map(|(place, name)| (name.as_str(), place));
                (members.values().collect(), Some((members, places.collect())))
            }
            _ => (Vec::new(), None),
        };
        Self { applied: values.iter().map(|_| Applied::new()).collect(), values, members }
    }

    /// Applies what the node applies to the parts of the value.
    fn enter(&mut self, scale: &mut Scale<'_>, node: NodeId, visits: Visits) {
        let graph = scale.graph;
        let edges = &graph.nodes[node].edges;
        let Some((members, places)) = &self.members else {
            for (step, target) in edges {
                let applied = match step {
                    Step::EachElement => self.applied.as_mut_slice(),
                    Step::Element(index) => self.applied.get_mut(*index..=*index).unwrap_or_default(),
                    _ => continue,
                };
                applied.iter_mut().for_each(|one| scale.apply(one, *target, visits));
            }
            return;
        };
        let mut named = vec![false; self.values.len()];
        for (step, target) in edges {
            match step {
                Step::Member(name) => {
                    if let Some(place) = places.get(&**name) {
                        named[*place] = true;
                        scale.apply(&mut self.applied[*place], *target, visits);
                    }
                }
                Step::EachMember => {
                    self.applied.iter_mut().for_each(|one| scale.apply(one, *target, visits));
                }
                Step::Name => {
                    for name in members.keys() {
                        let mut applied = Applied::new();
                        scale.apply(&mut applied, *target, visits);
                        scale.visit(&Value::String(name.clone()), applied, 0);
                    }
                }
                _ => {}
            }
        }
        for (_, target) in edges.iter().filter(|(step, _)| *step == Step::OtherMember) {
            for (place, one) in self.applied.iter_mut().enumerate() {
                if !named[place] {
                    scale.apply(one, *target, visits);
                }
            }
        }
    }
}
