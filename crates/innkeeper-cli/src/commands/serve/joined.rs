//! `serve --stdio` in the run of an agent that is recorded or replayed.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_agent::golden::known_secrets;
use innkeeper_host::Config;
use tokio::io::{AsyncWriteExt as _, BufReader, DuplexStream, copy, duplex, split};
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::stdio;
use crate::agent_run::{JoinedRun, RecordedPipe, join, without_run};
use crate::cli::ServeArgs;
use crate::context::CommandContext;
use crate::exit::CliError;

/// Size in bytes of the buffers between the client and the gateway.
const BUFFER_BYTES: usize = 256 << 10;

/// Time for the last lines to reach the run and a slow client.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The run that records what is served, if there is one.
#[derive(Debug, Default)]
pub(super) struct Recorded(Option<RecordedPipe>);

impl Recorded {
    /// Joins the run of the agent that started this program, if there is one. Returns `None` after a
    /// replay, which answers the client itself.
    pub(super) async fn join(
        context: &mut CommandContext,
        args: &ServeArgs,
    ) -> Result<Option<Self>, CliError> {
        if !args.stdio.on_stdio || args.print_config {
            return Ok(Some(Self::default()));
        }
        let joined = join(&context.environment).await.map_err(|error| {
            CliError::failure("cannot join the run that `PATH` names").with_source(error)
        })?;
        context.environment = without_run(std::mem::take(&mut context.environment));
        match joined {
            None => Ok(Some(Self::default())),
            Some(JoinedRun::Recorded(pipe)) => Ok(Some(Self(Some(pipe)))),
            Some(JoinedRun::Replayed(stream)) => relay(stream).await.map(|()| None),
        }
    }

    /// Tells the run what is served.
    pub(super) async fn configure(&mut self, config: &Config) -> Result<(), CliError> {
        let Self(Some(pipe)) = self else { return Ok(()) };
        let servers = config.origin.servers_as_written();
        let secrets = known_secrets(None, config);
        pipe.configure(servers, secrets).await.map_err(|error| {
            CliError::failure("the run has ended that records this server").with_source(error)
        })
    }

    /// Stands between the streams of a client and a gateway. Returns the streams of the gateway.
    pub(super) fn pass(
        self,
        stdin: DuplexStream,
        stdout: DuplexStream,
    ) -> (PassedLines, DuplexStream, DuplexStream) {
        let mut lines = PassedLines::default();
        let Self(Some(pipe)) = self else { return (lines, stdin, stdout) };
        let pipe = Arc::new(Mutex::new(pipe));
        let (requests, gateway_input) = duplex(BUFFER_BYTES);
        let (responses, gateway_output) = duplex(BUFFER_BYTES);
        let from_client = RecordedPipe::pass_client_lines(pipe.clone(), stdin, requests);
        lines.from_client.spawn(from_client);
        lines.to_client.spawn(RecordedPipe::pass_server_lines(pipe, responses, stdout));
        (lines, gateway_input, gateway_output)
    }
}

/// The lines between a client and a gateway, which the run sees first.
#[derive(Debug, Default)]
pub(super) struct PassedLines {
    from_client: JoinSet<io::Result<()>>,
    to_client: JoinSet<io::Result<()>>,
}

impl PassedLines {
    /// Waits for the last lines of a gateway that has ended.
    pub(super) async fn finish(mut self) {
        self.from_client.abort_all();
        timeout(FLUSH_TIMEOUT, self.to_client.join_next()).await.ok();
    }
}

/// Lets the run answer the client.
async fn relay(stream: BufReader<UnixStream>) -> Result<(), CliError> {
    let mut stdin = stdio::stdin()?;
    let (mut stdout, flushed) = stdio::stdout()?;
    let (mut from_run, mut to_run) = split(stream);
    let requests = async {
        // The run ends the connection then.
        copy(&mut stdin, &mut to_run).await.ok();
        to_run.shutdown().await.ok();
        pending::<()>().await;
    };
    let answered = tokio::select! {
        () = requests => Ok(0),
        answered = copy(&mut from_run, &mut stdout) => answered,
    };
    drop(stdout);
    flushed.wait().await;
    answered
        .map(drop)
        .map_err(|error| CliError::failure("the connection of the run failed").with_source(error))
}
