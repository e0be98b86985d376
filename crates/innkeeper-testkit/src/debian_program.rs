//! Programs of Debian packages that tests start: from `PATH`, or installed by `cargo xtask install`.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The directory of the installations, in the repository.
const INSTALLATIONS: &str = "../../target/tools";

/// Maximum time until a program is ready or has ended, on a loaded machine.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Interval between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A program that Debian packages contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DebianProgram {
    pub(crate) name: &'static str,
    /// The directory of its installation.
    pub(crate) home: &'static str,
    /// The directory of the program in its installation.
    pub(crate) dir: &'static str,
    pub(crate) version_arg: &'static str,
}

impl DebianProgram {
    /// Returns the command of the program in `PATH` or of the installed one. The program also exits
    /// when the thread that starts it ends, so also when the test is killed and no destructor runs.
    ///
    /// # Panics
    ///
    /// If there is no such program.
    #[expect(clippy::disallowed_methods, reason = "the test starts its own server")]
    pub(crate) fn command(self) -> Command {
        // `setpriv` executes the program with a parent-death signal.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        let in_path = Command::new(self.name).arg(self.version_arg).output();
        if in_path.is_ok_and(|version| version.status.success()) {
            command.arg(self.name);
            return command;
        }
        let installation =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(INSTALLATIONS).join(self.home);
        let program = installation.join(self.dir).join(self.name);
        assert!(program.is_file(), "no `{}`: run `cargo xtask install`", self.name);
        let libraries = library_dirs(&installation)
            .and_then(|dirs| std::env::join_paths(dirs).map_err(io::Error::other));
        let libraries =
            libraries.unwrap_or_else(|error| panic!("the libraries of `{}`: {error}", self.name));
        command.arg(program).env("LD_LIBRARY_PATH", libraries);
        command
    }

    /// Starts a command without stdin and stdout, and waits until `is_ready`. Returns nothing if the
    /// program ends.
    ///
    /// # Panics
    ///
    /// If the program does not start, or is not ready in time.
    pub(crate) fn start(
        self,
        command: &mut Command,
        mut is_ready: impl FnMut() -> bool,
    ) -> Option<Child> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        let name = self.name;
        let mut child = command.spawn().unwrap_or_else(|error| panic!("`{name}`: {error}"));
        let tries = START_TIMEOUT.as_millis() / POLL_INTERVAL.as_millis();
        for _ in 0..tries {
            if is_ready() {
                return Some(child);
            }
            let ended = child.try_wait();
            if ended.unwrap_or_else(|error| panic!("no state of `{name}`: {error}")).is_some() {
                return None;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let _ = child.kill();
        panic!("`{name}` was not ready within {START_TIMEOUT:?}");
    }
}

/// Sends a signal to a program.
///
/// # Panics
///
/// If the program has ended.
pub(crate) fn signal(child: &Child, signal: Signal) {
    let sent = kill_process(Pid::from_child(child), signal);
    sent.unwrap_or_else(|error| panic!("no signal to the server: {error}"));
}

/// Returns a loopback address with a port that no program uses now, for a program that cannot report
/// its own.
///
/// The system gives these ports neither to a connection nor to a listener with port 0, and each process
/// gets others, so that a port stays free until the program listens, also after its end.
///
/// # Panics
///
/// If no port is free.
#[must_use]
pub fn free_port() -> SocketAddr {
    const FIRST_PORT: u16 = 12_000;
    const PORT_COUNT: u32 = 20_000;
    const PORTS_PER_PROCESS: u32 = 32;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut addresses = (0..PORT_COUNT).map(|_| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let number = std::process::id().wrapping_mul(PORTS_PER_PROCESS).wrapping_add(number);
        let offset = u16::try_from(number % PORT_COUNT).unwrap_or_default();
        SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST_PORT + offset))
    });
    let free = addresses.find(|address| TcpListener::bind(address).is_ok());
    free.unwrap_or_else(|| panic!("no free port"))
}

/// Returns the directories of the libraries in an installation: one per architecture.
fn library_dirs(installation: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(installation.join("usr/lib"))?.map(|entry| Ok(entry?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::free_port;

    #[test]
    fn free_ports_differ_and_no_connection_gets_one() {
        let ports = [free_port(), free_port()].map(|address| address.port());
        let first_of_connections = 32_768;
        assert!(ports[0] != ports[1] && ports.iter().all(|port| *port < first_of_connections));
    }
}
