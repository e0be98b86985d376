//! A validated schema: every keyword has a valid value.

use serde_json::{Map, Value};

use super::type_set::TypeSet;

/// A schema. A new schema accepts every value.
#[derive(Debug, Clone)]
pub(super) struct SchemaNode {
    /// JSON pointer of the original schema.
    pub(super) at: String,
    pub(super) types: TypeSet,
    pub(super) annotations: Annotations,
    /// Values of `enum`.
    pub(super) enum_values: Option<Vec<Value>>,
    /// Keywords without subschemas.
    pub(super) keywords: Map<String, Value>,
    pub(super) members: ObjectMembers,
    pub(super) array_items: ArrayItems,
    pub(super) any_of: Vec<Self>,
    /// Keywords with subschemas that only full JSON Schema supports.
    pub(super) applicators: Vec<(&'static str, Subschemas)>,
    pub(super) ref_target: RefTarget,
}

/// Texts for the model.
#[derive(Debug, Clone, Default)]
pub(super) struct Annotations {
    pub(super) description: Option<String>,
    /// Descriptions of lost keywords, appended to the description.
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ObjectMembers {
    pub(super) properties: Vec<Property>,
    /// Required names without a declared property.
    pub(super) undeclared_required: Vec<String>,
    pub(super) additional_properties: AdditionalProperties,
}

#[derive(Debug, Clone)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) original_name: String,
    pub(super) node: SchemaNode,
    pub(super) required: bool,
    /// Whether `null` represents an absent property.
    pub(super) absent_as_null: bool,
}

/// Constraints on undeclared members.
#[derive(Debug, Clone, Default)]
pub(super) enum AdditionalProperties {
    #[default]
    Unspecified,
    Open,
    Closed,
    Schema(Box<SchemaNode>),
}

#[derive(Debug, Clone, Default)]
pub(super) struct ArrayItems {
    pub(super) prefix: Vec<SchemaNode>,
    /// Schema of the items after the prefix.
    pub(super) items: Option<Box<SchemaNode>>,
}

/// Subschemas of a keyword in [`SchemaNode::applicators`].
#[derive(Debug, Clone)]
pub(super) enum Subschemas {
    Single(Box<SchemaNode>),
    List(Vec<SchemaNode>),
    Named(Vec<(String, SchemaNode)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefTarget {
    /// No reference.
    None,
    /// Index of a definition.
    Definition(usize),
    /// Removed: too deep, too large, or recursive.
    Truncated,
}

impl SchemaNode {
    pub(super) fn any(at: &str) -> Self {
        Self {
            at: at.to_owned(),
            types: TypeSet::ANY,
            annotations: Annotations::default(),
            enum_values: None,
            keywords: Map::new(),
            members: ObjectMembers::default(),
            array_items: ArrayItems::default(),
            any_of: Vec::new(),
            applicators: Vec::new(),
            ref_target: RefTarget::None,
        }
    }

    /// Returns a schema that accepts no value.
    pub(super) fn never(at: &str) -> Self {
        let mut node = Self::any(at);
        node.applicators.push(("not", Subschemas::Single(Box::new(Self::any(at)))));
        node
    }

    pub(super) fn with_types(at: &str, types: TypeSet) -> Self {
        Self { types, ..Self::any(at) }
    }

    /// Whether the schema itself rejects values, apart from its union and its reference.
    pub(super) fn has_assertions(&self) -> bool {
        self.types != TypeSet::ANY
            || self.enum_values.is_some()
            || self.keywords.keys().any(|key| super::keyword::is_assertion(key))
            || !self.members.is_empty()
            || !self.array_items.prefix.is_empty()
            || self.array_items.items.is_some()
            || !self.applicators.is_empty()
    }

    /// Makes the types and `enum` consistent. Returns `false` on a contradiction, in which `enum`
    /// takes precedence.
    pub(super) fn reconcile_types(&mut self) -> bool {
        let Some(choices) = &mut self.enum_values else { return true };
        let agreeing = |value: &Value| self.types.intersects(TypeSet::from_value(value));
        let agrees = choices.iter().any(agreeing);
        if agrees {
            choices.retain(agreeing);
        } else {
            let types = choices.iter().map(TypeSet::from_value);
            self.types = types.fold(TypeSet::NONE, TypeSet::union);
        }
        agrees
    }

    /// Removes constraints on objects or arrays if the types exclude them.
    pub(super) fn drop_inapplicable(&mut self) {
        if !self.types.intersects(TypeSet::OBJECT) {
            self.members = ObjectMembers::default();
        }
        if !self.types.intersects(TypeSet::ARRAY) {
            self.array_items = ArrayItems::default();
        }
    }

    /// Lets every array under this schema say that its items are any values, if it says nothing.
    fn add_items(&mut self) {
        let is_array = self.types != TypeSet::ANY && self.types.intersects(TypeSet::ARRAY);
        if is_array && self.array_items.items.is_none() {
            self.array_items.items = Some(Box::new(Self::any(&self.at)));
        }
        self.children_mut().into_iter().for_each(Self::add_items);
    }

    /// Returns the direct subschemas.
    pub(super) fn children_mut(&mut self) -> Vec<&mut Self> {
        let mut all: Vec<&mut Self> = self.any_of.iter_mut().collect();
        all.extend(self.members.properties.iter_mut().map(|property| &mut property.node));
        if let AdditionalProperties::Schema(node) = &mut self.members.additional_properties {
            all.push(node);
        }
        all.extend(self.array_items.prefix.iter_mut());
        all.extend(self.array_items.items.as_deref_mut());
        for (_, sub) in &mut self.applicators {
            match sub {
                Subschemas::Single(node) => all.push(node),
                Subschemas::List(nodes) => all.extend(nodes),
                Subschemas::Named(nodes) => all.extend(nodes.iter_mut().map(|(_, node)| node)),
            }
        }
        all
    }

    /// Returns the direct subschemas.
    pub(super) fn children(&self) -> Vec<&Self> {
        let mut all: Vec<&Self> = self.any_of.iter().collect();
        all.extend(self.members.properties.iter().map(|property| &property.node));
        if let AdditionalProperties::Schema(node) = &self.members.additional_properties {
            all.push(node);
        }
        all.extend(&self.array_items.prefix);
        all.extend(self.array_items.items.as_deref());
        for (_, sub) in &self.applicators {
            match sub {
                Subschemas::Single(node) => all.push(node),
                Subschemas::List(nodes) => all.extend(nodes),
                Subschemas::Named(nodes) => all.extend(nodes.iter().map(|(_, node)| node)),
            }
        }
        all
    }

    /// Number of schemas, including itself.
    pub(super) fn size(&self) -> usize {
        1 + self.children().into_iter().map(Self::size).sum::<usize>()
    }
}

impl ObjectMembers {
    pub(super) fn is_empty(&self) -> bool {
        self.properties.is_empty()
            && self.undeclared_required.is_empty()
            && !self.restricts_additional()
    }

    /// Whether undeclared members are forbidden or have a schema.
    pub(super) fn restricts_additional(&self) -> bool {
        match &self.additional_properties {
            AdditionalProperties::Unspecified | AdditionalProperties::Open => false,
            AdditionalProperties::Closed | AdditionalProperties::Schema(_) => true,
        }
    }
}

/// A complete schema: the root and its definitions.
#[derive(Debug, Clone)]
pub(super) struct SchemaTree {
    pub(super) root: SchemaNode,
    pub(super) definitions: Vec<Definition>,
}

#[derive(Debug, Clone)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) node: SchemaNode,
}

impl SchemaTree {
    /// Lets every array say that its items are any values, if it says nothing about them.
    pub(super) fn add_items(&mut self) {
        self.root.add_items();
        self.definitions.iter_mut().for_each(|definition| definition.node.add_items());
    }

    /// Returns for each definition whether the root can reach it.
    pub(super) fn reachable_definitions(&self) -> Vec<bool> {
        let mut reachable = vec![false; self.definitions.len()];
        let mut ahead = vec![&self.root];
        while let Some(node) = ahead.pop() {
            ahead.extend(node.children());
            if let RefTarget::Definition(at) = node.ref_target
                && !reachable[at]
            {
                reachable[at] = true;
                ahead.push(&self.definitions[at].node);
            }
        }
        reachable
    }
}
