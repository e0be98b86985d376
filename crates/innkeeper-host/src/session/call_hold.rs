//! What an application learns of the time for which a server may process a call.

use std::fmt;
use std::time::Duration;

/// A value that the host holds while the server may process a call.
///
/// The host drops its clones when the server responds, when the connection ends, or, for a call that
/// timed out or was cancelled without a response, after the server's `maxTotalTimeout`, with the
/// next message that asks for it. For a gateway that must not ask another client what the server
/// asks for a call that its own client has abandoned.
pub trait CallHold: fmt::Debug + Send + Sync {
    /// The host drops its clone although the server may process the call for this time: it remembers
    /// at most 256 cancelled calls of a server.
    fn forget(&self, open_for: Duration);
}
