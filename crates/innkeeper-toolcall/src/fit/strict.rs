//! The strict forms: every object closed, every type said, limits kept.

use super::losses::{Change, Loss, Losses};
use super::merge::allow_null;
use super::node::{Additional, Link, Node, Tree};
use super::rules::Strict;
use super::types::Types;

/// References followed to see whether `null` is accepted.
const LONGEST_CHAIN: usize = 32;

/// What one schema takes of the limits of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) properties: usize,
    pub(super) optional: usize,
    pub(super) unions: usize,
}

/// Makes a lowered tree strict.
///
/// # Errors
///
/// The first thing that the strict form cannot say.
pub(super) fn tighten(
    tree: &mut Tree,
    strict: &Strict,
    losses: &mut Losses,
) -> Result<Spent, Loss> {
    let nullable = |node: &Node| accepts_null(node, tree, LONGEST_CHAIN);
    let nullable: Vec<bool> = tree.definitions.iter().map(|it| nullable(&it.node)).collect();
    let reached = tree.reached();
    let mut work = Tightening { strict, losses, nullable, spent: Spent::default() };
    if matches!(tree.root.members.additional, Additional::Unstated) {
        work.close(&mut tree.root);
    }
    work.node(&mut tree.root, 1)?;
    for (definition, _) in tree.definitions.iter_mut().zip(reached).filter(|(_, it)| *it) {
        work.node(&mut definition.node, 1)?;
    }
    Ok(work.spent)
}

fn accepts_null(node: &Node, tree: &Tree, chain: usize) -> bool {
    let null = serde_json::Value::Null;
    let here = node.types.meets(Types::NULL)
        && node.choices.as_ref().is_none_or(|choices| choices.contains(&null));
    let Some(chain) = chain.checked_sub(1) else { return false };
    let inside = match node.link {
        Link::Definition(at) => accepts_null(&tree.definitions[at].node, tree, chain),
        Link::None | Link::Cut => true,
    };
    let union =
        node.any_of.is_empty() || node.any_of.iter().any(|it| accepts_null(it, tree, chain));
    here && inside && union
}

struct Tightening<'a> {
    strict: &'a Strict,
    losses: &'a mut Losses,
    /// For each definition, whether it accepts `null`.
    nullable: Vec<bool>,
    spent: Spent,
}

fn obstacle(node: &Node, keyword: &str) -> Loss {
    Loss { pointer: node.at.clone(), keyword: keyword.to_owned(), change: Change::NotStrict }
}

impl Tightening<'_> {
    fn node(&mut self, node: &mut Node, level: usize) -> Result<(), Loss> {
        match node.link {
            Link::Cut => return Err(obstacle(node, "$ref")),
            Link::Definition(_) => return Ok(()),
            Link::None => {}
        }
        if level > self.strict.deepest {
            return Err(obstacle(node, "properties"));
        }
        if !node.any_of.is_empty() {
            return node.any_of.iter_mut().try_for_each(|branch| self.node(branch, level));
        }
        if node.types == Types::ANY {
            return Err(obstacle(node, "type"));
        }
        if node.types.meets(Types::OBJECT) {
            self.object(node, level)?;
        }
        if node.types.meets(Types::ARRAY) {
            let Some(items) = &mut node.elements.items else { return Err(obstacle(node, "items")) };
            self.node(items, level + 1)?;
        }
        Ok(())
    }

    fn close(&mut self, node: &mut Node) {
        node.members.additional = Additional::Closed;
        self.losses.add(&node.at, "additionalProperties", Change::Narrowed);
    }

    fn object(&mut self, node: &mut Node, level: usize) -> Result<(), Loss> {
        match node.members.additional {
            Additional::Closed => {}
            Additional::Unstated if !node.members.properties.is_empty() => self.close(node),
            Additional::Unstated | Additional::Open | Additional::Schema(_) => {
                return Err(obstacle(node, "additionalProperties"));
            }
        }
        let at = node.at.clone();
        for property in &mut node.members.properties {
            self.node(&mut property.node, level + 1)?;
            self.spent.properties += 1;
            if self.spent.properties > self.strict.most_properties {
                return Err(Loss {
                    pointer: at,
                    keyword: "properties".into(),
                    change: Change::NotStrict,
                });
            }
            if !property.required && self.strict.all_required {
                property.required = true;
                self.losses.add(&property.node.at, "required", Change::Replaced);
                if !self.accepts_null(&property.node) {
                    allow_null(&mut property.node);
                    property.absent_as_null = true;
                }
            }
            self.spent.optional += usize::from(!property.required);
            let several = property.node.types != Types::ANY && property.node.types.each().len() > 1;
            self.spent.unions += usize::from(several || !property.node.any_of.is_empty());
        }
        let Strict { most_optional, most_unions, .. } = *self.strict;
        if self.spent.optional > most_optional {
            return Err(obstacle(node, "required"));
        }
        if self.spent.unions > most_unions {
            return Err(obstacle(node, "anyOf"));
        }
        Ok(())
    }

    fn accepts_null(&self, node: &Node) -> bool {
        let null = serde_json::Value::Null;
        let linked = match node.link {
            Link::Definition(at) => self.nullable.get(at) == Some(&true),
            Link::None | Link::Cut => true,
        };
        linked
            && node.types.meets(Types::NULL)
            && node.choices.as_ref().is_none_or(|choices| choices.contains(&null))
            && (node.any_of.is_empty() || node.any_of.iter().any(|it| self.accepts_null(it)))
    }
}
