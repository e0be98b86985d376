//! The incomplete results that a request returns to the application.

use super::round_trips::RoundTripParams;

/// The incomplete results that a request returns as the server sent them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PassThrough {
    /// Whether the request returns a request for input, without a call of a callback.
    pub(crate) input_required: bool,
    /// Whether the request returns a created task, without a poll.
    pub(crate) task: bool,
    /// The members of the request that respond to an earlier request for input.
    pub(crate) responses: RoundTripParams,
}
