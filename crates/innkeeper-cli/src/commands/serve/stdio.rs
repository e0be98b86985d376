//! Stdin and stdout as asynchronous streams that never delay the end of the program.
//!
//! Two threads do the blocking calls. The end of the program does not wait for them.

use std::io::{self, Read, Write};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Size in bytes of the buffer between a thread and its stream.
const BUFFER_BYTES: usize = 256 << 10;

/// Time for the last messages to reach a slow reader.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn stdin() -> io::Result<DuplexStream> {
    let (mut sender, receiver) = duplex(BUFFER_BYTES);
    let runtime = Handle::current();
    std::thread::Builder::new().name("innkeeper-stdin".to_owned()).spawn(move || {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut stdin = io::stdin().lock();
        loop {
            match stdin.read(&mut buffer) {
                Ok(count) if count > 0 => {
                    if runtime.block_on(sender.write_all(&buffer[..count])).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The end of the input, or an input that cannot be read.
                Ok(_) | Err(_) => return,
            }
        }
    })?;
    Ok(receiver)
}

/// The stream of stdout, with the end of its thread.
pub(super) fn stdout() -> io::Result<(DuplexStream, Flushed)> {
    let (sender, mut receiver) = duplex(BUFFER_BYTES);
    let (done, flushed) = oneshot::channel();
    let runtime = Handle::current();
    std::thread::Builder::new().name("innkeeper-stdout".to_owned()).spawn(move || {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        let mut stdout = io::stdout().lock();
        loop {
            buffer.clear();
            match runtime.block_on(receiver.read_buf(&mut buffer)) {
                Ok(count) if count > 0 => {
                    let written = stdout.write_all(&buffer).and_then(|()| stdout.flush());
                    if written.is_err() {
                        return;
                    }
                }
                // The receiver is gone if the program ends.
                Ok(_) | Err(_) => {
                    done.send(()).unwrap_or_default();
                    return;
                }
            }
        }
    })?;
    Ok((sender, Flushed(flushed)))
}

/// The end of the thread that writes stdout.
#[derive(Debug)]
pub(super) struct Flushed(oneshot::Receiver<()>);

impl Flushed {
    /// Waits until everything is written, or until the reader has been slow for too long.
    pub(super) async fn wait(self) {
        let _ = timeout(FLUSH_TIMEOUT, self.0).await;
    }
}
