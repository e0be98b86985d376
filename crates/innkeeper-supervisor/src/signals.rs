//! Delivers signals to the supervisor through descriptors that become readable.
//!
//! The supervisor does not ignore signals: executing the server would keep `SIG_IGN`.

#[cfg(target_os = "linux")]
pub(crate) use linux::Signals;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::Signals;

use rustix::process::Signal;

/// The signals that end the tree.
const STOP_SIGNALS: [Signal; 3] = [Signal::TERM, Signal::INT, Signal::HUP];

/// Further signals that a host may ignore, and its servers must not: a Rust program ignores SIGPIPE,
/// Python also SIGXFSZ, and a job in the background of a shell SIGQUIT.
#[cfg(target_os = "linux")]
const RESET_SIGNALS: [Signal; 4] = [Signal::CHILD, Signal::PIPE, Signal::QUIT, Signal::XFSZ];

/// Reads a non-blocking descriptor until it is empty, so that the next signal is noticed.
fn drain(descriptor: &rustix::fd::OwnedFd) {
    let mut bytes = [0; 1 << 10];
    while rustix::io::read(descriptor, &mut bytes).is_ok_and(|count| count > 0) {}
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::fd::OwnedFd;
    use rustix::io;
    use rustix::process::Signal;

    use super::{RESET_SIGNALS, STOP_SIGNALS};
    use crate::system::{SIGNAL_SET_WORDS, open_signals, set_blocked_signals, set_default_action};

    /// Blocked signals, which two descriptors report.
    #[derive(Debug)]
    pub(crate) struct Signals {
        /// Readable after a child has exited.
        pub(crate) child: OwnedFd,
        /// Readable after a termination signal.
        pub(crate) stop: OwnedFd,
    }

    impl Signals {
        pub(crate) fn install() -> io::Result<Self> {
            for signal in STOP_SIGNALS.into_iter().chain(RESET_SIGNALS) {
                set_default_action(signal)?;
            }
            let child = signal_set(&[Signal::CHILD]);
            let stop = signal_set(&STOP_SIGNALS);
            let mut all = child;
            all.iter_mut().zip(stop).for_each(|(all, stop)| *all |= stop);
            set_blocked_signals(&all)?;
            Ok(Self { child: open_signals(&child)?, stop: open_signals(&stop)? })
        }

        /// Unblocks the signals in a process that becomes the server.
        pub(crate) fn restore() -> io::Result<()> {
            set_blocked_signals(&[0; SIGNAL_SET_WORDS])
        }

        pub(crate) fn drain_child(&self) {
            super::drain(&self.child);
        }
    }

    fn signal_set(signals: &[Signal]) -> [u64; SIGNAL_SET_WORDS] {
        let mut set = [0; SIGNAL_SET_WORDS];
        // Each of these signals is in the first word.
        set[0] = signals.iter().fold(0, |bits, signal| bits | 1 << (signal.as_raw() - 1));
        set
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    #![expect(unsafe_code, reason = "a signal handler has no safe interface without `std`")]

    use core::sync::atomic::{AtomicI32, Ordering};

    use rustix::fd::{BorrowedFd, IntoRawFd, OwnedFd};
    use rustix::io::{self, Errno};
    use rustix::process::Signal;

    use super::STOP_SIGNALS;

    /// The ends of the pipes that the handlers write to; -1 before [`Signals::install`].
    static CHILD_PIPE: AtomicI32 = AtomicI32::new(-1);
    static STOP_PIPE: AtomicI32 = AtomicI32::new(-1);

    /// Pipes that the handlers of the signals write to. Executing the server resets a handler.
    #[derive(Debug)]
    pub(crate) struct Signals {
        /// Readable after a child has exited.
        pub(crate) child: OwnedFd,
        /// Readable after a termination signal.
        pub(crate) stop: OwnedFd,
    }

    impl Signals {
        pub(crate) fn install() -> io::Result<Self> {
            let child = open_pipe(&CHILD_PIPE)?;
            let stop = open_pipe(&STOP_PIPE)?;
            set_action(Signal::CHILD, handle_child as extern "C" fn(libc::c_int) as usize)?;
            for signal in STOP_SIGNALS {
                set_action(signal, handle_stop as extern "C" fn(libc::c_int) as usize)?;
            }
            // A Rust program ignores SIGPIPE, and the server must not inherit that.
            set_action(Signal::PIPE, libc::SIG_DFL)?;
            Ok(Self { child, stop })
        }

        /// Has no effect: no signal is blocked.
        pub(crate) fn restore() -> io::Result<()> {
            Ok(())
        }

        pub(crate) fn drain_child(&self) {
            super::drain(&self.child);
        }
    }

    /// Opens a pipe, and keeps its end for writing open for the handlers.
    fn open_pipe(kept: &AtomicI32) -> io::Result<OwnedFd> {
        let (reader, writer) = crate::system::open_pipe()?;
        for end in [&reader, &writer] {
            rustix::fs::fcntl_setfl(end, rustix::fs::OFlags::NONBLOCK)?;
        }
        kept.store(writer.into_raw_fd(), Ordering::Relaxed);
        Ok(reader)
    }

    fn set_action(signal: Signal, handler: usize) -> io::Result<()> {
        // SAFETY: an action of zeros is valid.
        let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the handlers only write a byte, which is safe in a handler.
        let result = unsafe { libc::sigaction(signal.as_raw(), &action, core::ptr::null_mut()) };
        if result == 0 { Ok(()) } else { Err(Errno::INVAL) }
    }

    extern "C" fn handle_child(_signal: libc::c_int) {
        wake(&CHILD_PIPE);
    }

    extern "C" fn handle_stop(_signal: libc::c_int) {
        wake(&STOP_PIPE);
    }

    fn wake(pipe: &AtomicI32) {
        // SAFETY: the descriptor stays open until the process ends.
        let pipe = unsafe { BorrowedFd::borrow_raw(pipe.load(Ordering::Relaxed)) };
        // A full pipe is readable already.
        let _ = rustix::io::write(pipe, &[0]);
    }
}
