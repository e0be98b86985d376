//! Conversion to a strict dialect: closed objects, explicit types, provider limits.

use serde_json::Value;

use super::limits::StrictLimits;
use super::losses::{LossCollector, SchemaLoss, SchemaLossKind};
use super::merge::allow_null;
use super::node::{AdditionalProperties, RefTarget, SchemaNode, SchemaTree};
use super::type_set::TypeSet;

/// Maximum number of references followed to check whether a schema accepts `null`.
const MAX_REFERENCE_CHAIN: usize = 32;

/// The share of a request's limits that one schema uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StrictUsage {
    pub(super) properties: usize,
    pub(super) optional: usize,
    pub(super) unions: usize,
}

/// Converts a lowered tree to the strict form.
///
/// # Errors
///
/// Returns the first keyword that the strict form does not support.
pub(super) fn make_strict(
    tree: &mut SchemaTree,
    limits: &StrictLimits,
    all_required: bool,
    losses: &mut LossCollector,
) -> Result<StrictUsage, SchemaLoss> {
    let definitions = tree.definitions.iter();
    let nullable_definitions: Vec<bool> =
        definitions.map(|entry| accepts_null(&entry.node, tree, MAX_REFERENCE_CHAIN)).collect();
    let reachable = tree.reachable_definitions();
    let mut lowering = StrictLowering {
        limits,
        all_required,
        losses,
        nullable_definitions,
        usage: StrictUsage::default(),
    };
    if matches!(tree.root.members.additional_properties, AdditionalProperties::Unspecified) {
        lowering.close_object(&mut tree.root);
    }
    lowering.make_node_strict(&mut tree.root, 1)?;
    for (definition, _) in
        tree.definitions.iter_mut().zip(reachable).filter(|(_, is_reachable)| *is_reachable)
    {
        lowering.make_node_strict(&mut definition.node, 1)?;
    }
    let usage = lowering.usage;
    check_text(tree, limits)?;
    Ok(usage)
}

/// Checks the limits of the names and of the values of `enum`.
fn check_text(tree: &SchemaTree, limits: &StrictLimits) -> Result<(), SchemaLoss> {
    let reachable = tree.reachable_definitions();
    let used = tree.definitions.iter().zip(reachable).filter(|(_, is_reachable)| *is_reachable);
    let mut chars = 0;
    let mut choices = 0;
    let mut ahead = vec![&tree.root];
    for (definition, _) in used {
        chars += definition.name.chars().count();
        ahead.push(&definition.node);
    }
    while let Some(node) = ahead.pop() {
        let names = node.members.properties.iter().map(|property| &property.name);
        chars += names.map(|name| name.chars().count()).sum::<usize>();
        let values = node.enum_values.as_deref().unwrap_or_default();
        let texts = values.iter().filter_map(Value::as_str);
        let enum_chars: usize = texts.map(|text| text.chars().count()).sum();
        chars += enum_chars;
        choices += values.len();
        let is_large = values.len() > limits.enum_text.unlimited_choices;
        if choices > limits.max_choices || is_large && enum_chars > limits.enum_text.max_chars {
            return Err(not_strict_loss(node, "enum"));
        }
        if chars > limits.max_text_chars {
            return Err(not_strict_loss(node, "properties"));
        }
        ahead.extend(node.children());
    }
    Ok(())
}

fn accepts_null(node: &SchemaNode, tree: &SchemaTree, chain: usize) -> bool {
    let null = Value::Null;
    let here = node.types.intersects(TypeSet::NULL)
        && node.enum_values.as_ref().is_none_or(|choices| choices.contains(&null));
    let Some(chain) = chain.checked_sub(1) else { return false };
    let inside = match node.ref_target {
        RefTarget::Definition(at) => accepts_null(&tree.definitions[at].node, tree, chain),
        RefTarget::None | RefTarget::Truncated => true,
    };
    let union = node.any_of.is_empty()
        || node.any_of.iter().any(|branch| accepts_null(branch, tree, chain));
    here && inside && union
}

struct StrictLowering<'a> {
    limits: &'a StrictLimits,
    /// Whether every property must be required.
    all_required: bool,
    losses: &'a mut LossCollector,
    /// For each definition, whether the definition accepts `null`.
    nullable_definitions: Vec<bool>,
    usage: StrictUsage,
}

fn not_strict_loss(node: &SchemaNode, keyword: &str) -> SchemaLoss {
    SchemaLoss {
        pointer: node.at.clone(),
        keyword: keyword.to_owned(),
        kind: SchemaLossKind::NotStrict,
    }
}

impl StrictLowering<'_> {
    fn make_node_strict(&mut self, node: &mut SchemaNode, level: usize) -> Result<(), SchemaLoss> {
        match node.ref_target {
            RefTarget::Truncated => return Err(not_strict_loss(node, "$ref")),
            RefTarget::Definition(_) => return Ok(()),
            RefTarget::None => {}
        }
        if level > self.limits.max_depth {
            return Err(not_strict_loss(node, "properties"));
        }
        if !node.any_of.is_empty() {
            return node
                .any_of
                .iter_mut()
                .try_for_each(|branch| self.make_node_strict(branch, level));
        }
        if node.types == TypeSet::ANY {
            return Err(not_strict_loss(node, "type"));
        }
        if node.types.intersects(TypeSet::OBJECT) {
            self.make_object_strict(node, level)?;
        }
        if node.types.intersects(TypeSet::ARRAY) {
            let Some(items) = &mut node.array_items.items else {
                return Err(not_strict_loss(node, "items"));
            };
            self.make_node_strict(items, level + 1)?;
        }
        Ok(())
    }

    fn close_object(&mut self, node: &mut SchemaNode) {
        node.members.additional_properties = AdditionalProperties::Closed;
        self.losses.add(&node.at, "additionalProperties", SchemaLossKind::Narrowed);
    }

    fn make_object_strict(
        &mut self,
        node: &mut SchemaNode,
        level: usize,
    ) -> Result<(), SchemaLoss> {
        match node.members.additional_properties {
            AdditionalProperties::Closed => {}
            AdditionalProperties::Unspecified if !node.members.properties.is_empty() => {
                self.close_object(node);
            }
            AdditionalProperties::Unspecified
            | AdditionalProperties::Open
            | AdditionalProperties::Schema(_) => {
                return Err(not_strict_loss(node, "additionalProperties"));
            }
        }
        let at = node.at.clone();
        for property in &mut node.members.properties {
            self.make_node_strict(&mut property.node, level + 1)?;
            self.usage.properties += 1;
            if self.usage.properties > self.limits.max_properties {
                return Err(SchemaLoss {
                    pointer: at,
                    keyword: "properties".into(),
                    kind: SchemaLossKind::NotStrict,
                });
            }
            if !property.required && self.all_required {
                property.required = true;
                self.losses.add(&property.node.at, "required", SchemaLossKind::Replaced);
                if !self.accepts_null(&property.node) {
                    allow_null(&mut property.node);
                    property.absent_as_null = true;
                }
            }
            self.usage.optional += usize::from(!property.required);
            let several =
                property.node.types != TypeSet::ANY && property.node.types.named_types().len() > 1;
            self.usage.unions += usize::from(several || !property.node.any_of.is_empty());
        }
        let StrictLimits { max_optional, max_unions, .. } = *self.limits;
        if self.usage.optional > max_optional {
            return Err(not_strict_loss(node, "required"));
        }
        if self.usage.unions > max_unions {
            return Err(not_strict_loss(node, "anyOf"));
        }
        Ok(())
    }

    fn accepts_null(&self, node: &SchemaNode) -> bool {
        let null = Value::Null;
        let linked = match node.ref_target {
            RefTarget::Definition(at) => self.nullable_definitions.get(at) == Some(&true),
            RefTarget::None | RefTarget::Truncated => true,
        };
        linked
            && node.types.intersects(TypeSet::NULL)
            && node.enum_values.as_ref().is_none_or(|choices| choices.contains(&null))
            && (node.any_of.is_empty()
                || node.any_of.iter().any(|branch| self.accepts_null(branch)))
    }
}
