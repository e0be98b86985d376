//! The key of a cache entry: the requested item and the callers that can receive the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    item: Arc<CachedItem>,
    audience: Audience,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum CachedItem {
    /// A resource, by URI.
    Resource(Box<str>),
    /// A prompt, by public name and by arguments as JSON with sorted keys.
    Prompt(Box<str>, Box<str>),
}

/// The callers that can receive a result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Audience {
    /// The calls of one principal; `None` for the calls without a principal.
    Principal(Option<Arc<str>>),
    /// All calls.
    Everyone,
}

impl CacheKey {
    /// Returns the key of a resource for a call without a principal.
    pub(crate) fn resource(uri: &str) -> Self {
        Self::new(CachedItem::Resource(uri.into()))
    }

    /// Returns the key of a prompt for a call without a principal.
    pub(crate) fn prompt(name: &str, arguments: &Map<String, Value>) -> Self {
        let sorted: BTreeMap<&String, &Value> = arguments.iter().collect();
        // Serialization of a map with string keys cannot fail.
        let sorted = serde_json::to_string(&sorted).unwrap_or_default();
        Self::new(CachedItem::Prompt(name.into(), sorted.into()))
    }

    fn new(item: CachedItem) -> Self {
        Self { item: Arc::new(item), audience: Audience::Principal(None) }
    }

    /// Returns the key of the same item for the calls of a principal.
    pub(crate) fn of_principal(&self, principal: Option<Arc<str>>) -> Self {
        Self { audience: Audience::Principal(principal), ..self.clone() }
    }

    /// Returns the key of the same item for all calls.
    pub(super) fn of_everyone(&self) -> Self {
        Self { audience: Audience::Everyone, ..self.clone() }
    }

    /// Returns whether both keys are keys of the same item.
    pub(super) fn has_same_item(&self, other: &Self) -> bool {
        self.item == other.item
    }

    pub(super) fn is_resource(&self) -> bool {
        matches!(*self.item, CachedItem::Resource(_))
    }

    /// Returns whether the item is the resource with this URI.
    pub(super) fn is_uri(&self, uri: &str) -> bool {
        matches!(&*self.item, CachedItem::Resource(own) if **own == *uri)
    }

    /// Returns the URI of the resource or the name of the prompt.
    pub(crate) fn item(&self) -> &str {
        match &*self.item {
            CachedItem::Resource(item) | CachedItem::Prompt(item, _) => item,
        }
    }

    pub(super) fn size_bytes(&self) -> usize {
        let principal_bytes = match &self.audience {
            Audience::Principal(principal) => principal.as_ref().map_or(0, |name| name.len()),
            Audience::Everyone => 0,
        };
        principal_bytes
            + match &*self.item {
                CachedItem::Resource(uri) => uri.len(),
                CachedItem::Prompt(name, arguments) => name.len() + arguments.len(),
            }
    }
}
