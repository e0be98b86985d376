//! A stream that a thread of its own writes, so that a signal ends the wait for whoever reads it.

use std::fmt;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

/// How long a write may take once a signal has come: who reads on takes it in far less, and who
/// does not read must not hold up the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// What may wait to be heard: the outcome of the one write under way, and one [`Cut`].
const ROOM: usize = 2;

/// What the thread is asked to do.
enum Piece {
    Write(Vec<u8>),
    Flush,
}

/// What the writer is told.
enum Told {
    Written(io::Result<()>),
    Cut,
}

/// The near end of the thread.
pub(super) struct Aside {
    pieces: SyncSender<Piece>,
    told: Receiver<Told>,
    /// A signal has come.
    cut: bool,
    /// A write was given up; what is left of it may still be written, and nothing comes after it.
    stuck: bool,
}

/// Ends the wait of a write under way, and makes later ones impatient.
#[derive(Clone, Debug)]
pub(crate) struct Cut(SyncSender<Told>);

impl Cut {
    pub(crate) fn cut(&self) {
        // A full channel holds one already; one without a reader has no writer who waits.
        drop(self.0.try_send(Told::Cut));
    }
}

impl Aside {
    /// Starts the thread; it ends with the process, or when this is dropped between two writes.
    pub(super) fn start(mut to: impl Write + Send + 'static) -> io::Result<(Self, Cut)> {
        let (pieces, asked) = sync_channel(1);
        let (tell, told) = sync_channel(ROOM);
        let cut = Cut(tell.clone());
        let thread = std::thread::Builder::new().name("innkeeper-output".to_owned());
        thread.spawn(move || {
            for piece in asked {
                let written = match piece {
                    Piece::Write(bytes) => to.write_all(&bytes),
                    Piece::Flush => to.flush(),
                };
                if tell.send(Told::Written(written)).is_err() {
                    return;
                }
            }
        })?;
        Ok((Self { pieces, told, cut: false, stuck: false }, cut))
    }

    fn pass(&mut self, piece: Piece) -> io::Result<()> {
        self.look();
        if self.stuck {
            return Err(unread());
        }
        self.pieces.send(piece).map_err(|_| gone())?;
        let told = if self.cut {
            self.told.recv_timeout(PATIENCE)
        } else {
            self.told.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        let told = match told {
            // A reader that is only slow has its piece still.
            Ok(Told::Cut) => {
                self.cut = true;
                self.told.recv_timeout(PATIENCE)
            }
            told => told,
        };
        match told {
            Ok(Told::Written(outcome)) => outcome,
            Ok(Told::Cut) | Err(RecvTimeoutError::Timeout) => {
                (self.cut, self.stuck) = (true, true);
                Err(unread())
            }
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        }
    }

    /// Hears of a signal that came between two writes.
    fn look(&mut self) {
        match self.told.try_recv() {
            Ok(Told::Cut) => self.cut = true,
            // Only a write that was given up is answered when nobody waits.
            Ok(Told::Written(_)) | Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
        }
    }
}

fn unread() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "a signal came while nobody read it")
}

fn gone() -> io::Error {
    io::Error::other("the thread that writes it is gone")
}

/// Whole sentences are passed on as such: nobody writes between their parts.
impl Write for Aside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pass(Piece::Write(bytes.to_vec())).map(|()| bytes.len())
    }

    fn write_fmt(&mut self, words: fmt::Arguments<'_>) -> io::Result<()> {
        self.pass(Piece::Write(words.to_string().into_bytes()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass(Piece::Flush)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Takes nothing until it is let.
    struct Held(Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Held {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            self.1.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_signal_ends_the_wait_of_a_write_and_nothing_is_written_after_it() {
        let (let_go, held) = sync_channel(1);
        let written = Arc::default();
        let (mut aside, cut) = Aside::start(Held(held, Arc::clone(&written))).unwrap();
        let_go.send(()).unwrap();
        aside.write_all(b"taken").unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| aside.write_all(b"stuck"));
            cut.cut();
            assert_eq!(waiting.join().unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        });
        assert!(aside.write_all(b"after").is_err());
        assert_eq!(*written.lock().unwrap(), b"taken");
    }

    #[test]
    fn what_is_read_on_takes_words_after_a_signal_too() {
        let (let_go, held) = sync_channel(2);
        let written = Arc::default();
        let (mut aside, cut) = Aside::start(Held(held, Arc::clone(&written))).unwrap();
        cut.cut();
        let_go.send(()).unwrap();
        let_go.send(()).unwrap();
        write!(aside, "{}-{}", 1, 2).unwrap();
        aside.write_all(b";").unwrap();
        assert_eq!(*written.lock().unwrap(), b"1-2;");
    }
}
