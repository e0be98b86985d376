//! An iterator over an error and its sources.

use std::error::Error;

/// Iterates over an error, its source, the source of the source, and so on.
pub(crate) fn error_chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (**error).source())
}
