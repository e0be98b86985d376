//! What one schema can cost on one value, found without applying it.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::cost::Bounds;
use super::graph::{Graph, NodeId, Step};
use super::pattern::Pattern;
use super::size::Size;

/// What applying a schema to a value takes at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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

impl Load {
    pub(super) const MOST: Self =
        Self { visits: u64::MAX, steps: u64::MAX, failures: u64::MAX, copied: u64::MAX };

    /// Whether there is more of something than in `most`.
    pub(super) fn exceeds(self, most: Self) -> bool {
        self.visits > most.visits
            || self.steps > most.steps
            || self.failures > most.failures
            || self.copied > most.copied
    }
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
    most: Load,
    load: Load,
}

impl<'s> Scale<'s> {
    pub(super) fn new(graph: &'s Graph, bounds: &'s Bounds, patterns: &'s [Pattern]) -> Self {
        let mut places = vec![0; graph.nodes.len()];
        for (place, node) in bounds.order.iter().enumerate() {
            places[*node] = place;
        }
        Self { graph, bounds, places, patterns, most: Load::MOST, load: Load::default() }
    }

    /// The load of `value`; no longer exact once there is more than `most` of something.
    pub(super) fn weigh(mut self, value: &Value, most: Load) -> Load {
        self.most = most;
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
        let mut below = Below::default();
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
            if self.load.exceeds(self.most) {
                return;
            }
            for (step, target) in &node.edges {
                if step.stays() {
                    let copied =
                        if *step == Step::Alternative { visits.each } else { visits.copied };
                    self.apply(&mut applied, *target, Visits { copied, ..visits });
                }
            }
            below.enter(self, id, visits, value);
        }
        if copies > 0 {
            let memory = Size::of(value).memory();
            self.load.copied = self.load.copied.saturating_add(copies.saturating_mul(memory));
        }
        for (place, value) in inside(value) {
            let applied = below.at(self, place);
            if self.load.exceeds(self.most) {
                return;
            }
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

/// Where a part of a value is in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place<'v> {
    Member(&'v str),
    Element(usize),
}

fn inside(value: &Value) -> Box<dyn Iterator<Item = (Place<'_>, &Value)> + '_> {
    match value {
        Value::Array(elements) => {
            Box::new(elements.iter().enumerate().map(|(index, one)| (Place::Element(index), one)))
        }
        Value::Object(members) => {
            Box::new(members.iter().map(|(name, one)| (Place::Member(name), one)))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// What is applied to the parts of one value.
#[derive(Default)]
struct Below<'v> {
    /// To every part.
    every: Applied,
    /// To single parts.
    single: HashMap<Place<'v>, Applied>,
    /// To all parts but some.
    other: Vec<(Applied, HashSet<Place<'v>>)>,
}

impl<'v> Below<'v> {
    fn at(&mut self, scale: &Scale<'_>, place: Place<'v>) -> Applied {
        let mut applied = self.every.clone();
        let single = self.single.remove(&place).into_iter();
        let other = self.other.iter().filter(|(_, but)| !but.contains(&place));
        for one in single.chain(other.map(|(one, _)| one.clone())) {
            for (target, visits) in one {
                scale.apply(&mut applied, scale.bounds.order[target], visits);
            }
        }
        applied
    }

    fn enter(&mut self, scale: &mut Scale<'_>, node: NodeId, visits: Visits, value: &'v Value) {
        match value {
            Value::Array(_) => self.enter_array(scale, node, visits),
            Value::Object(members) => self.enter_object(scale, node, visits, members),
            _ => {}
        }
    }

    fn enter_array(&mut self, scale: &Scale<'_>, node: NodeId, visits: Visits) {
        for (step, target) in &scale.graph.nodes[node].edges {
            let applied = match step {
                Step::EachElement => &mut self.every,
                Step::Element(index) => self.single.entry(Place::Element(*index)).or_default(),
                _ => continue,
            };
            scale.apply(applied, *target, visits);
        }
    }

    fn enter_object(
        &mut self,
        scale: &mut Scale<'_>,
        node: NodeId,
        visits: Visits,
        members: &'v Map<String, Value>,
    ) {
        let graph = scale.graph;
        let mut other = Applied::new();
        let mut named = HashSet::new();
        for (step, target) in &graph.nodes[node].edges {
            match step {
                Step::Member(name) => {
                    if let Some((name, _)) = members.get_key_value(&**name) {
                        let place = Place::Member(name);
                        named.insert(place);
                        scale.apply(self.single.entry(place).or_default(), *target, visits);
                    }
                }
                Step::EachMember => scale.apply(&mut self.every, *target, visits),
                Step::OtherMember => scale.apply(&mut other, *target, visits),
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
        if !other.is_empty() {
            self.other.push((other, named));
        }
    }
}
