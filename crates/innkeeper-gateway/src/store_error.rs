//! The error of every store.

use futures_util::future::BoxFuture;

/// A store did not respond, or its response is not usable.
#[derive(Debug, thiserror::Error)]
#[error("the store is not available: {reason}")]
pub struct StoreError {
    /// The reason.
    pub reason: String,
}

/// What a method of a store returns.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;
