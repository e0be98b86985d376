//! What makes the host's copies of a server's lists and resources stale.

use std::sync::Arc;

use super::list_doubt::ListDoubt;
use super::list_ttls::ListTtls;
use super::subscriptions::Subscriptions;
use crate::cache::Cache;

/// Tells when the host's copies of a server's lists and resources are out of date.
#[derive(Debug)]
pub(crate) struct Freshness {
    pub(crate) cache: Arc<Cache>,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) list_ttls: ListTtls,
    pub(crate) list_doubt: ListDoubt,
}

impl Freshness {
    pub(crate) fn new(cache: Arc<Cache>) -> Self {
        Self {
            cache,
            subscriptions: Subscriptions::default(),
            list_ttls: ListTtls::default(),
            list_doubt: ListDoubt::default(),
        }
    }
}
