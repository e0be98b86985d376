//! A schema that has been understood: what is in it is well formed, whatever came in.

use serde_json::{Map, Value};

use super::types::Types;

/// One schema. A new one accepts everything.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The JSON pointer of where it came from.
    pub(super) at: String,
    pub(super) types: Types,
    pub(super) words: Words,
    /// `enum`.
    pub(super) choices: Option<Vec<Value>>,
    /// Every keyword that holds no schema.
    pub(super) keywords: Map<String, Value>,
    pub(super) members: Members,
    pub(super) elements: Elements,
    pub(super) any_of: Vec<Self>,
    /// Keywords with schemas in them that only full JSON Schema has.
    pub(super) rest: Vec<(&'static str, Sub)>,
    pub(super) link: Link,
}

/// What a model reads.
#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    pub(super) description: Option<String>,
    /// What the schema lost, for behind the description.
    pub(super) notes: Vec<String>,
}

/// What is said of an object's members.
#[derive(Debug, Clone, Default)]
pub(super) struct Members {
    pub(super) properties: Vec<Property>,
    /// Required names that no property has.
    pub(super) missing: Vec<String>,
    pub(super) additional: Additional,
}

#[derive(Debug, Clone)]
pub(super) struct Property {
    /// Its name in the fitted schema.
    pub(super) name: String,
    /// Its name in the tool's schema.
    pub(super) original: String,
    pub(super) node: Node,
    pub(super) required: bool,
    /// Whether `null` stands for its absence.
    pub(super) absent_as_null: bool,
}

/// What is said of members that are no properties.
#[derive(Debug, Clone, Default)]
pub(super) enum Additional {
    #[default]
    Unstated,
    Open,
    Closed,
    Schema(Box<Node>),
}

/// What is said of an array's items.
#[derive(Debug, Clone, Default)]
pub(super) struct Elements {
    pub(super) prefix: Vec<Node>,
    /// Of those behind the prefix.
    pub(super) items: Option<Box<Node>>,
}

/// What stands behind a keyword of [`Node::rest`].
#[derive(Debug, Clone)]
pub(super) enum Sub {
    One(Box<Node>),
    List(Vec<Node>),
    Named(Vec<(String, Node)>),
}

/// Where the rest of a schema is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// Here.
    None,
    /// In the definition of this number.
    Definition(usize),
    /// Nowhere: it was too deep, too large, or inside itself.
    Cut,
}

impl Node {
    pub(super) fn any(at: &str) -> Self {
        Self {
            at: at.to_owned(),
            types: Types::ANY,
            words: Words::default(),
            choices: None,
            keywords: Map::new(),
            members: Members::default(),
            elements: Elements::default(),
            any_of: Vec::new(),
            rest: Vec::new(),
            link: Link::None,
        }
    }

    /// Accepts nothing.
    pub(super) fn never(at: &str) -> Self {
        let mut node = Self::any(at);
        node.rest.push(("not", Sub::One(Box::new(Self::any(at)))));
        node
    }

    pub(super) fn of(at: &str, types: Types) -> Self {
        Self { types, ..Self::any(at) }
    }

    /// Whether it refuses anything by itself, its union and its link aside.
    pub(super) fn asserts(&self) -> bool {
        self.types != Types::ANY
            || self.choices.is_some()
            || self.keywords.keys().any(|key| super::keyword::asserts(key))
            || !self.members.is_empty()
            || !self.elements.prefix.is_empty()
            || self.elements.items.is_some()
            || !self.rest.is_empty()
    }

    /// Takes out what is said of objects and arrays where there can be none.
    pub(super) fn only_own(&mut self) {
        if !self.types.meets(Types::OBJECT) {
            self.members = Members::default();
        }
        if !self.types.meets(Types::ARRAY) {
            self.elements = Elements::default();
        }
    }

    /// Every schema directly inside.
    pub(super) fn children_mut(&mut self) -> Vec<&mut Self> {
        let mut all: Vec<&mut Self> = self.any_of.iter_mut().collect();
        all.extend(self.members.properties.iter_mut().map(|it| &mut it.node));
        if let Additional::Schema(node) = &mut self.members.additional {
            all.push(node);
        }
        all.extend(self.elements.prefix.iter_mut());
        all.extend(self.elements.items.as_deref_mut());
        for (_, sub) in &mut self.rest {
            match sub {
                Sub::One(node) => all.push(node),
                Sub::List(nodes) => all.extend(nodes),
                Sub::Named(nodes) => all.extend(nodes.iter_mut().map(|(_, node)| node)),
            }
        }
        all
    }

    /// Every schema directly inside.
    pub(super) fn children(&self) -> Vec<&Self> {
        let mut all: Vec<&Self> = self.any_of.iter().collect();
        all.extend(self.members.properties.iter().map(|it| &it.node));
        if let Additional::Schema(node) = &self.members.additional {
            all.push(node);
        }
        all.extend(&self.elements.prefix);
        all.extend(self.elements.items.as_deref());
        for (_, sub) in &self.rest {
            match sub {
                Sub::One(node) => all.push(node),
                Sub::List(nodes) => all.extend(nodes),
                Sub::Named(nodes) => all.extend(nodes.iter().map(|(_, node)| node)),
            }
        }
        all
    }

    /// How many schemas it is, itself included.
    pub(super) fn size(&self) -> usize {
        1 + self.children().into_iter().map(Self::size).sum::<usize>()
    }
}

impl Members {
    pub(super) fn is_empty(&self) -> bool {
        self.properties.is_empty()
            && self.missing.is_empty()
            && !matches!(self.additional, Additional::Closed | Additional::Schema(_))
    }
}

/// A whole schema: its root and what it refers to.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub(super) root: Node,
    pub(super) definitions: Vec<Definition>,
}

#[derive(Debug, Clone)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) node: Node,
}

impl Tree {
    /// Which definitions can be reached from the root.
    pub(super) fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.definitions.len()];
        let mut ahead = vec![&self.root];
        while let Some(node) = ahead.pop() {
            ahead.extend(node.children());
            if let Link::Definition(at) = node.link
                && !reached[at]
            {
                reached[at] = true;
                ahead.push(&self.definitions[at].node);
            }
        }
        reached
    }
}
