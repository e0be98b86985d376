//! Runs a program to its end and returns its output.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use super::ledger::Ledger;
use super::{ExitStatus, ProcessSpec, SpawnError, StdioPipes, Supervisor, spawn};

/// Maximum number of bytes of stdout: far above headers and version numbers.
const MAX_OUTPUT_BYTES: usize = 64 << 10;

/// Number of last bytes of stderr in the result: about forty lines.
const MAX_STDERR_BYTES: usize = 4 << 10;

/// Timeout for reading the remaining output after the program ended, while a process that it
/// started keeps the pipe open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// Timeout for the termination of the program's child processes after the program ended.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// The output of a program that ended.
#[derive(Clone, Debug)]
pub struct ProgramOutput {
    /// How the program ended.
    pub exit_status: ExitStatus,
    /// Everything that the program wrote to stdout.
    pub stdout: Vec<u8>,
    /// The end of what the program wrote to stderr, which may contain a secret.
    pub stderr: Vec<u8>,
}

/// Why a program has no output.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The program did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The program wrote too much.
    #[error("the output exceeds {MAX_OUTPUT_BYTES} bytes")]
    TooLong,
    /// The output cannot be read.
    #[error("{}", .0.kind())]
    Read(io::Error),
}

/// Runs a program without input. Terminates the processes that the program leaves behind. The
/// caller limits the time: dropping the future kills the program and its child processes.
///
/// # Errors
/// The program does not start, or its output cannot be read or is too long.
pub async fn run_to_end(
    spec: &ProcessSpec,
    supervisor: &Supervisor,
    ledger: Option<&Ledger>,
) -> Result<ProgramOutput, OutputError> {
    let (mut process, pipes) = spawn(spec, supervisor, ledger).await?;
    let StdioPipes { stdin, stdout: mut stdout_pipe, stderr: mut stderr_pipe } = pipes;
    drop(stdin);
    let mut stdout = Vec::new();
    let mut stderr = Vec::new();
    let exit_status: Result<ExitStatus, OutputError> = {
        let printing = async {
            tokio::select! {
                biased;
                printed = read_limited(&mut stdout_pipe, &mut stdout) => {
                    printed?;
                    Ok(process.wait().await)
                }
                exit = process.wait() => {
                    let rest = timeout(DRAIN_TIMEOUT, read_limited(&mut stdout_pipe, &mut stdout));
                    rest.await.unwrap_or(Ok(())).map(|()| exit)
                }
            }
        };
        tokio::pin!(printing);
        tokio::select! {
            exit = &mut printing => exit,
            () = read_tail(&mut stderr_pipe, &mut stderr) => printing.await,
        }
    };
    let exit_status = exit_status?;
    // Text that the program wrote just before its end.
    let _ = timeout(DRAIN_TIMEOUT, read_tail(&mut stderr_pipe, &mut stderr)).await;
    process.kill();
    let _ = timeout(EXIT_GRACE, process.wait_tree()).await;
    Ok(ProgramOutput { exit_status, stdout, stderr })
}

/// Reads all output of a pipe up to the limit. Cancel-safe.
async fn read_limited(
    mut pipe: impl AsyncRead + Unpin,
    text: &mut Vec<u8>,
) -> Result<(), OutputError> {
    loop {
        match pipe.read_buf(text).await {
            Ok(0) => return Ok(()),
            Ok(_) if text.len() <= MAX_OUTPUT_BYTES => {}
            Ok(_) => return Err(OutputError::TooLong),
            Err(error) => return Err(OutputError::Read(error)),
        }
    }
}

/// Reads a pipe to its end and keeps the last bytes. An error ends the text. Cancel-safe.
async fn read_tail(mut pipe: impl AsyncRead + Unpin, tail: &mut Vec<u8>) {
    while let Ok(1..) = pipe.read_buf(tail).await {
        let excess = tail.len().saturating_sub(MAX_STDERR_BYTES);
        tail.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_at_the_limit_is_read_and_one_byte_more_is_not() {
        let mut text = Vec::new();
        read_limited(&vec![b' '; MAX_OUTPUT_BYTES][..], &mut text).await.unwrap();
        assert_eq!(text.len(), MAX_OUTPUT_BYTES);
        let longer = vec![b' '; MAX_OUTPUT_BYTES + 1];
        assert!(read_limited(&longer[..], &mut Vec::new()).await.is_err());
    }

    #[tokio::test]
    async fn the_last_bytes_of_stderr_are_retained_up_to_the_limit() {
        let mut tail = Vec::new();
        read_tail(&[&vec![b'a'; MAX_STDERR_BYTES][..], b"end"].concat()[..], &mut tail).await;
        assert_eq!(tail.len(), MAX_STDERR_BYTES);
        assert!(tail.ends_with(b"aend"));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_program_that_ends_has_an_output_and_leaves_nothing_behind() {
        let tag = crate::tests::ProcessTag::new();
        let script = "sleep 600 & head -c 300000 /dev/zero >&2; echo problem >&2; echo 1.2; exit 3";
        let output = run_to_end(&tag.script(script), &Supervisor::Group, None).await.unwrap();
        assert_eq!(output.stdout, b"1.2\n");
        assert!(output.stderr.ends_with(b"problem\n"), "{:?}", output.stderr);
        assert_eq!(output.exit_status.to_string(), "exit code 3");
        tag.wait_for_count(0);
    }
}
