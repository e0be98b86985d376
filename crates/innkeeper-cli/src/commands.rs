//! The verbs, one file each, and what those over a configuration work with.

mod ask;
mod call;
mod check;
mod completions;
mod demo;
mod doctor;
mod export_retries;
mod extract;
mod graph;
mod import;
mod lock;
mod log_stats;
mod login;
mod model;
mod prompt;
mod read;
mod schema;
mod tools;
mod why;

use std::path::PathBuf;

use innkeeper_host::Environment;

use crate::args::{Global, HostVerb};
use crate::browser::Browser;
use crate::exit::Failure;
use crate::output::Output;
use crate::signals::{Signal, Signals};

pub(crate) use completions::completions;
pub(crate) use export_retries::export_retries;
pub(crate) use extract::extract;
pub(crate) use import::import;
pub(crate) use log_stats::log_stats;
pub(crate) use model::model;

/// What every verb over a configuration is given.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) global: Global,
    pub(crate) environment: Environment,
    pub(crate) output: Output,
    /// The lock that the servers are held against, once a configuration has been read.
    pub(crate) lock: Option<PathBuf>,
    /// The configuration that was read, if nobody named it.
    pub(crate) found: Option<PathBuf>,
    /// Where a person signs in, for the verb that is for that.
    pub(crate) browser: Option<Browser>,
    /// What is heard from outside, once it no longer ends the process by itself.
    pub(crate) signals: Option<Signals>,
}

impl Context {
    /// The first signal that came since they are listened to.
    pub(crate) fn signalled(&mut self) -> Option<Signal> {
        self.signals.as_mut().and_then(Signals::came)
    }
}

/// Listens to signals from the first call on, and lets no reader of the output hold them up.
pub(crate) fn listen<'s>(
    signals: &'s mut Option<Signals>,
    output: &mut Output,
) -> Result<&'s mut Signals, Failure> {
    let listening = match signals.take() {
        Some(listening) => Ok(listening),
        None => output.aside().and_then(|cuts| Signals::listen(cuts.into())),
    };
    let listening = listening
        .map_err(|error| Failure::failed("signals cannot be listened to").because(error))?;
    Ok(signals.insert(listening))
}

/// Runs one verb over a configuration.
pub(crate) async fn run(context: &mut Context, verb: HostVerb) -> Result<(), Failure> {
    match verb {
        HostVerb::Check => check::run(context),
        HostVerb::Tools => tools::run(context).await,
        HostVerb::Call(args) => call::run(context, &args).await,
        HostVerb::Prompt(args) => prompt::run(context, &args).await,
        HostVerb::Read(args) => read::run(context, &args).await,
        HostVerb::Graph => graph::run(context),
        HostVerb::Schema => schema::run(context),
        HostVerb::Lock(args) => lock::run(context, &args).await,
        HostVerb::Login(args) => login::run(context, &args).await,
        HostVerb::Why(args) => why::run(context, &args).await,
        HostVerb::Doctor => doctor::run(context),
        HostVerb::Ask(args) => ask::run(context, &args).await,
        HostVerb::Demo(args) => demo::run(context, &args).await,
    }
}
