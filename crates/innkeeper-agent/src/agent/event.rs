//! What is told of a message while it is on its way.

use std::time::Duration;

use super::report::Step;

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
pub enum Event<'e> {
    /// Text for the reader.
    Text(&'e str),
    /// What the model thinks, as far as it is shown.
    Reasoning(&'e str),
    /// The model has begun a call of this tool; it may still turn out to be none.
    CallStart {
        /// The tool.
        tool: &'e str,
    },
    /// A call is run.
    Running {
        /// The tool.
        tool: &'e str,
        /// The arguments as JSON text.
        arguments: &'e str,
    },
    /// A call has run, or was refused.
    Ran(&'e Step),
    /// The model is asked again. What it wrote since the last call is not part of its answer.
    Again {
        /// After this pause.
        after: Duration,
    },
}
