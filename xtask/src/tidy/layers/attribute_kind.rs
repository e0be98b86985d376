//! Decides what an attribute means for product code: `cfg` options of tests exclude code.

use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

/// The `cfg` options that only a build of tests sets.
const TEST_OPTIONS: &[&str] = &["test", "fuzzing"];

type MetaList = Punctuated<Meta, Token![,]>;

/// What an attribute means for a build of the product.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum AttributeKind {
    /// The product does not contain the item, field or statement with this attribute.
    ExcludesNode,
    /// The attribute contains no path that the product uses.
    UsesNothing,
    /// The product contains the attribute with its paths.
    Product,
}

/// The kind of an attribute.
pub(super) fn attribute_kind(attribute: &Attribute) -> AttributeKind {
    let path = attribute.path();
    if path.is_ident("cfg") {
        let predicate = attribute.parse_args::<Meta>().ok();
        return match predicate.and_then(|predicate| product_value(&predicate)) {
            Some(false) => AttributeKind::ExcludesNode,
            Some(true) | None => AttributeKind::UsesNothing,
        };
    }
    if path.is_ident("cfg_attr") {
        let arguments = attribute.parse_args_with(MetaList::parse_terminated).ok();
        let predicate = arguments.as_ref().and_then(|arguments| arguments.first());
        if predicate.and_then(product_value) == Some(false) {
            return AttributeKind::UsesNothing;
        }
    }
    if path.is_ident("doc") { AttributeKind::UsesNothing } else { AttributeKind::Product }
}

/// The value of a `cfg` predicate in a build of the product; none if the platform decides.
fn product_value(predicate: &Meta) -> Option<bool> {
    let Meta::List(list) = predicate else {
        let is_test = TEST_OPTIONS.iter().any(|option| predicate.path().is_ident(option));
        return is_test.then_some(false);
    };
    let inner = list.parse_args_with(MetaList::parse_terminated).ok()?;
    let values: Vec<Option<bool>> = inner.iter().map(product_value).collect();
    match list.path.get_ident()?.to_string().as_str() {
        "not" => values.first().copied().flatten().map(|value| !value),
        "any" => combined_value(&values, true),
        "all" => combined_value(&values, false),
        _ => None,
    }
}

/// `decisive` if one value is, the opposite if all are, and unknown otherwise.
fn combined_value(values: &[Option<bool>], decisive: bool) -> Option<bool> {
    if values.contains(&Some(decisive)) {
        return Some(decisive);
    }
    values.iter().all(Option::is_some).then_some(!decisive)
}
