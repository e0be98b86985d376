//! Trust: which servers may start.
//!
//! A file that the application passes is trusted. A file that was found, or that changed while the
//! host runs, needs a decision about the complete launch of each server, and about the settings of
//! the gateway.

mod decisions;
mod gateway;
mod loader;
mod spec;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::audit::AuditEvent;

pub use decisions::TrustDecisions;
pub use gateway::GatewaySpec;
pub use spec::{LaunchProgram, LaunchSpec, RemoteTarget};

/// The policy for server launches from a watched file.
///
/// Others than the owner of the host may write to the file, and a server is a program that runs
/// with the owner's permissions.
#[derive(Clone)]
pub enum TrustPolicy {
    /// All launches are approved: write access to the file allows starting programs.
    AllowAll,
    /// The function decides about each new server and each server with a changed launch. A rejected
    /// server is asked about again after every change of the file. The function must not block,
    /// because it runs on the host's thread. A panic counts as a rejection.
    Ask(Arc<dyn Fn(&LaunchSpec) -> bool + Send + Sync>),
}

impl TrustPolicy {
    /// Creates a policy that calls `decide`.
    pub fn from_fn(decide: impl Fn(&LaunchSpec) -> bool + Send + Sync + 'static) -> Self {
        Self::Ask(Arc::new(decide))
    }

    pub(crate) fn allows(&self, launch: &LaunchSpec) -> bool {
        match self {
            Self::AllowAll => true,
            Self::Ask(decide) => {
                let decided = catch_unwind(AssertUnwindSafe(|| decide(launch)));
                decided.unwrap_or_else(|_| {
                    AuditEvent::TrustPanicked.emit(&launch.name);
                    false
                })
            }
        }
    }
}

impl fmt::Debug for TrustPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllowAll => "AllowAll",
            Self::Ask(_) => "Ask",
        })
    }
}
