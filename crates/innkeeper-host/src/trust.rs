//! Trust: whose word a server is started on, when its configuration may be someone else's.
//!
//! A file that an application hands over is the application's word. One that was found, or that has
//! changed while the host runs, needs a decision on the whole launch of each server.

mod decisions;
mod loader;
mod spec;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::audit::Fact;

pub use decisions::Decisions;
pub use spec::LaunchSpec;

/// Whether what a watched file says is started.
///
/// A file can be written by others than the owner of the host, and a server is a program that runs
/// with the owner's rights.
#[derive(Clone)]
pub enum Trust {
    /// Whoever can write to the file may start programs.
    Everything,
    /// Each new server, and each whose launch has changed, is asked about, every time the file
    /// changes while the answer is no. What is asked must not wait: it has the host's thread. A
    /// panic of it is a no.
    Ask(Arc<dyn Fn(&LaunchSpec) -> bool + Send + Sync>),
}

impl Trust {
    /// Asks `decide`.
    pub fn ask(decide: impl Fn(&LaunchSpec) -> bool + Send + Sync + 'static) -> Self {
        Self::Ask(Arc::new(decide))
    }

    pub(crate) fn allows(&self, launch: &LaunchSpec) -> bool {
        match self {
            Self::Everything => true,
            Self::Ask(decide) => {
                let decided = catch_unwind(AssertUnwindSafe(|| decide(launch)));
                decided.unwrap_or_else(|_| {
                    Fact::TrustPanicked.tell(&launch.name);
                    false
                })
            }
        }
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Everything => "Everything",
            Self::Ask(_) => "Ask",
        })
    }
}
