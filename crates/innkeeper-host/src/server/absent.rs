//! A server that may be missing, and whose program is: looked for again at each start.

use std::path::PathBuf;
use std::sync::Arc;

use super::launch::Way;
use super::process::{self, Launch};
use crate::config::Problem;
use crate::error::StartReason;

/// How a server will be reached, as far as that is known before its start.
#[derive(Clone, Debug)]
pub(crate) enum Planned {
    Known(Arc<Way>),
    Absent(Arc<Absent>),
}

impl Planned {
    /// What is missing for it.
    pub(crate) fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Known(_) => None,
            Self::Absent(absent) => Some(&absent.problem),
        }
    }

    /// The way, if its program is there by now.
    pub(crate) fn way(&self) -> Result<Arc<Way>, StartReason> {
        match self {
            Self::Known(way) => Ok(way.clone()),
            Self::Absent(absent) => absent.look().map(|launch| Arc::new(Way::Child(launch))),
        }
    }
}

/// A server without its program.
#[derive(Debug)]
pub(crate) struct Absent {
    /// The command as its variables made it.
    pub(crate) command: String,
    /// Where a relative one is looked for.
    pub(crate) from: PathBuf,
    /// What is to be started; its `program` is not found yet.
    pub(crate) launch: Launch,
    /// What is said of it before any start.
    pub(crate) problem: Problem,
}

impl Absent {
    fn look(&self) -> Result<Launch, StartReason> {
        let Self { command, from, launch, .. } = self;
        match process::resolve(command, &launch.env, from) {
            Ok(program) => Ok(Launch { program, ..launch.clone() }),
            Err(error) => {
                Err(StartReason::Spawn(error.quoting(&launch.command).to_string().into()))
            }
        }
    }
}
