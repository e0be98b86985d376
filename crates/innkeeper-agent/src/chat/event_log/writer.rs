//! The thread that writes the event log.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;

use tokio::sync::{mpsc, oneshot};

use super::LogEntry;
use crate::tasks;

#[derive(Debug)]
pub(super) enum WriterCommand {
    Write(Box<LogEntry>),
    /// Confirms that all earlier entries are in the file.
    Flush(oneshot::Sender<()>),
}

/// Opens the file and starts the thread, which ends when all senders are dropped.
pub(super) fn start(
    path: &Path,
    mut commands: mpsc::Receiver<WriterCommand>,
) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // The log may contain text of the model, so only the owner may read it.
        options.mode(0o600);
    }
    let mut file = BufWriter::new(options.open(path)?);
    tasks::spawn_thread("innkeeper-chat-log", move || {
        while let Some(command) = commands.blocking_recv() {
            if let Err(error) = run_command(command, &mut file, commands.is_empty()) {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "chat log closed after a write error");
                return;
            }
        }
    })
}

fn run_command(command: WriterCommand, file: &mut impl Write, last: bool) -> std::io::Result<()> {
    match command {
        WriterCommand::Write(line) => {
            serde_json::to_writer(&mut *file, &line)?;
            file.write_all(b"\n")?;
            if last { file.flush() } else { Ok(()) }
        }
        WriterCommand::Flush(done) => {
            file.flush()?;
            // The receiver may have stopped waiting.
            done.send(()).unwrap_or_default();
            Ok(())
        }
    }
}
