//! One verb's work over a running host: started with progress, ended in order however the work ends.

use std::io;
use std::path::PathBuf;

use innkeeper_host::{Config, Environment, Host, Lock, ShutdownReport, StartError, Supervisor};

use crate::commands::{Context, listen};
use crate::configuration::refuse;
use crate::exit::Failure;
use crate::output::{Output, Tone};
use crate::pins;
use crate::progress;
use crate::signals::Ended;
use crate::trust;

/// Starts the servers of `config`, if somebody has decided on them, runs `work`, and shuts down. A first signal ends the work and
/// shuts down in order; a second one kills what is left.
pub(crate) async fn with_host<T>(
    context: &mut Context,
    config: Config,
    work: impl AsyncFnOnce(&Host, &mut Output) -> Result<T, Failure>,
) -> Result<(T, ShutdownReport), Failure> {
    // Before signals are listened to: a person who is asked may leave by one, and so may who waits
    // for a file.
    trust::settle(context, &config)?;
    let pinned = pinned(context)?;
    let signals = listen(&mut context.signals, &mut context.output)?;
    let builder = Host::builder(config).supervisor(supervisor()?);
    let builder = match state(&context.environment) {
        Some(state) => builder.ledger(state.join("running")).token_store(state.join("tokens")),
        None => builder,
    };
    let signs_in = context.browser.is_some();
    let builder = match context.browser.take() {
        Some(browser) => builder.user_agent(browser),
        None => builder,
    };
    let builder = match pinned {
        Some(lock) => {
            let policy = lock.policy;
            builder.pins(lock, policy)
        }
        None => builder,
    };
    // Progress would run over the address that a person is to open.
    let progress = (!signs_in).then(|| progress::show(builder.events()));
    let started = signals.guard(builder.start()).await;
    if let Some(progress) = progress {
        progress.end();
    }
    let host = match started {
        Ended::Done(Ok(host)) => host,
        Ended::Done(Err(error)) => return Err(not_started(&error)),
        Ended::Cut(signal) => return Err(Failure::signalled(signal)),
    };
    let worked = signals.guard(work(&host, &mut context.output)).await;
    let stopped = signals.guard(host.shutdown()).await;
    let (report, late) = match stopped {
        Ended::Done(report) => (report, None),
        Ended::Cut(signal) => {
            host.kill();
            (host.shutdown().await, Some(signal))
        }
    };
    let told = tell_leftovers(&report, &mut context.output);
    // Nothing follows a signal, what the work gave back included.
    match (worked, late) {
        (Ended::Cut(signal), _) | (Ended::Done(_), Some(signal)) => Err(Failure::signalled(signal)),
        (Ended::Done(value), None) => {
            told?;
            value.map(|value| (value, report))
        }
    }
}

fn tell_leftovers(report: &ShutdownReport, output: &mut Output) -> io::Result<()> {
    for server in report.servers.iter().filter(|server| server.leftovers) {
        let text = format!("something of server `{}` could not be ended", server.server);
        output.label(Tone::Note, "warning", &text)?;
    }
    Ok(())
}

/// What the servers are held against, if a lock stands beside their configuration.
fn pinned(context: &Context) -> Result<Option<Lock>, Failure> {
    context.lock.as_deref().map_or(Ok(None), pins::read)
}

/// This program supervises the servers it starts.
fn supervisor() -> Result<Supervisor, Failure> {
    Supervisor::this_program()
        .map_err(|error| Failure::failed("this program cannot find itself").because(error))
}

/// Where running servers, tokens and decisions are kept, as the XDG base directories have it.
pub(crate) fn state(environment: &Environment) -> Option<PathBuf> {
    let state = match environment.get("XDG_STATE_HOME").filter(|path| path.starts_with('/')) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(environment.home()?).join(".local/state"),
    };
    Some(state.join("innkeeper"))
}

fn not_started(error: &StartError) -> Failure {
    match error {
        StartError::Config(problems) => refuse(problems),
        StartError::Servers(failures) => {
            let names: Vec<String> =
                failures.iter().map(|failure| format!("`{}`", failure.server)).collect();
            let mut failure = Failure::failed(format!(
                "{} did not start; nothing is left running",
                names.join(", ")
            ));
            for server in failures {
                failure = failure.detail(server.to_string());
                for line in server.stderr.lines() {
                    failure = failure.detail(format!("    {}: {line}", server.server));
                }
            }
            for server in failures.iter().filter(|server| server.wants_a_person()) {
                failure = failure.hint(format!("`innkeeper login {}` signs in", server.server));
            }
            failure.hint("`required: false` lets the others start without a server")
        }
    }
}
