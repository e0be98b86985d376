//! The thread that writes the lines of a log.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;

use tokio::sync::{mpsc, oneshot};

use super::Line;
use crate::tasks;

/// What the thread is to do.
#[derive(Debug)]
pub(super) enum Order {
    Write(Box<Line>),
    /// Say so when everything before it is in the file.
    Flush(oneshot::Sender<()>),
}

/// Opens the file and begins the thread; it ends when nobody can send any more.
pub(super) fn begin(path: &Path, mut orders: mpsc::Receiver<Order>) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // What a model said is nobody else's business.
        options.mode(0o600);
    }
    let mut file = BufWriter::new(options.open(path)?);
    tasks::thread("innkeeper-chat-log", move || {
        while let Some(order) = orders.blocking_recv() {
            if let Err(error) = carry_out(order, &mut file, orders.is_empty()) {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "the log of a chat cannot be written and is given up");
                return;
            }
        }
    })
}

fn carry_out(order: Order, file: &mut impl Write, last: bool) -> std::io::Result<()> {
    match order {
        Order::Write(line) => {
            serde_json::to_writer(&mut *file, &line)?;
            file.write_all(b"\n")?;
            if last { file.flush() } else { Ok(()) }
        }
        Order::Flush(done) => {
            file.flush()?;
            // Whoever asked may have stopped waiting.
            done.send(()).unwrap_or_default();
            Ok(())
        }
    }
}
