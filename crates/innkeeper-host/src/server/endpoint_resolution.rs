//! Resolves the endpoint of a server whose program may be missing.

use std::path::PathBuf;
use std::sync::Arc;

use super::launch::Endpoint;
use super::process::{self, ProcessSpec};
use crate::config::Diagnostic;
use crate::error::StartFailureReason;

/// The endpoint of a server, as far as known before its start.
#[derive(Clone, Debug)]
pub(crate) enum EndpointResolution {
    Found(Arc<Endpoint>),
    Missing(Arc<MissingProgram>),
}

impl EndpointResolution {
    /// Returns the diagnostic for a missing program.
    pub(crate) fn diagnostic(&self) -> Option<&Diagnostic> {
        match self {
            Self::Found(_) => None,
            Self::Missing(absent) => Some(&absent.diagnostic),
        }
    }

    /// Returns the endpoint; searches again for a missing program.
    pub(crate) fn endpoint(&self) -> Result<Arc<Endpoint>, StartFailureReason> {
        match self {
            Self::Found(found) => Ok(found.clone()),
            Self::Missing(absent) => {
                absent.resolve().map(|launch| Arc::new(Endpoint::Child(launch)))
            }
        }
    }
}

/// An optional server without its program; each start searches again.
#[derive(Debug)]
pub(crate) struct MissingProgram {
    /// Command after variable expansion.
    pub(crate) command: String,
    /// Directory for the resolution of a relative command.
    pub(crate) base_dir: PathBuf,
    /// Process to start; its `program` is not resolved yet.
    pub(crate) spec: ProcessSpec,
    /// Diagnostic reported before the first start.
    pub(crate) diagnostic: Diagnostic,
}

impl MissingProgram {
    fn resolve(&self) -> Result<ProcessSpec, StartFailureReason> {
        let Self { command, base_dir, spec, .. } = self;
        match process::resolve(command, &spec.env, base_dir) {
            Ok(program) => Ok(ProcessSpec { program, ..spec.clone() }),
            Err(error) => {
                Err(StartFailureReason::Spawn(error.with_command(&spec.command).to_string().into()))
            }
        }
    }
}
