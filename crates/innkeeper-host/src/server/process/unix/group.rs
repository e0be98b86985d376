//! A server without a shim: a process group that the host signals itself.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use tokio::sync::watch;

use super::{Pipes, pid, pipes, record};
use crate::ledger::{Entry, Kind, Ledger};
use crate::server::process::{Exit, Launch, SpawnError};

/// How often a killed group is looked at until it is empty, and how long in all: what is left then
/// cannot be killed.
const PAUSE: Duration = Duration::from_millis(5);
const ROUNDS: usize = 200;

/// A server's process, leader of a group.
#[derive(Debug)]
pub(super) struct Grouped {
    id: u32,
    leader: Leader,
    state: watch::Receiver<State>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Running,
    Exited(Exit),
    Gone(Exit),
}

/// The group while its leader has not been reaped; its number may mean another one afterwards.
#[derive(Clone, Debug)]
pub(super) struct Leader(Arc<Mutex<Option<Pid>>>);

impl Leader {
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(group) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where a server's process is made")]
pub(super) fn spawn(
    launch: &Launch,
    ledger: Option<&Ledger>,
) -> Result<(Grouped, Pipes), SpawnError> {
    let command = launch.command.as_str();
    let (pipes, ends) = pipes::open().map_err(|error| SpawnError::other(command, error))?;
    let mut made = Command::new(&launch.program);
    made.args(&launch.args)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(ends.stdin))
        .stdout(Stdio::from(ends.stdout))
        .stderr(Stdio::from(ends.stderr))
        .process_group(0);
    if let Some(cwd) = &launch.cwd {
        made.current_dir(cwd);
    }
    let child = made.spawn().map_err(|source| match &launch.cwd {
        Some(cwd) if cwd.join(".").metadata().is_err() => {
            SpawnError::Directory { command: command.into(), source }
        }
        _ => SpawnError::from_exec(command, source, launch.program.exists()),
    })?;
    drop(made);
    let id = child.id();
    let leader = Leader(Arc::new(Mutex::new(pid(id))));
    let entry = record(ledger, Kind::Group, id);
    let (tell, state) = watch::channel(State::Running);
    let (theirs, grouped) = (leader.clone(), Grouped { id, leader, state });
    let thread = std::thread::Builder::new().name("innkeeper-wait".to_owned());
    thread
        .spawn(move || wait(child, &theirs, &tell, entry))
        .map_err(|error| SpawnError::other(command, error))?;
    Ok((grouped, pipes))
}

/// Waits for the leader, ends the rest of its group, and reaps it last: until then the number of
/// the group cannot come to mean another one.
fn wait(mut child: Child, leader: &Leader, tell: &watch::Sender<State>, entry: Option<Entry>) {
    let group = pid(child.id());
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = group.and_then(|pid| {
        rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), ended)).ok().flatten()
    });
    let exit = match status.map(|status| (status.exit_status(), status.terminating_signal())) {
        Some((Some(code), _)) => Exit::Code(code),
        Some((None, Some(signal))) => Exit::Signal(signal),
        _ => Exit::Unknown,
    };
    tell.send_replace(State::Exited(exit));
    leader.signal(Signal::KILL);
    leader.forget();
    drop(child.wait());
    for _ in 0..ROUNDS {
        if group.is_none_or(is_empty) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    drop(entry);
    tell.send_replace(State::Gone(exit));
}

/// Whether nothing of a group runs any more. Members that have ended count until their new parent
/// takes note, which some init processes never do, so they are looked at where that is possible.
fn is_empty(group: Pid) -> bool {
    if rustix::process::test_kill_process_group(group).is_err() {
        return true;
    }
    #[cfg(target_os = "linux")]
    return !crate::shim::tree::every()
        .iter()
        .any(|stat| stat.group == Some(group) && !stat.zombie);
    #[cfg(not(target_os = "linux"))]
    return false;
}

impl Grouped {
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        match *self.state.borrow() {
            State::Running => None,
            State::Exited(exit) | State::Gone(exit) => Some(exit),
        }
    }

    pub(super) fn killer(&self) -> Leader {
        self.leader.clone()
    }

    pub(super) fn terminate(&self) {
        self.leader.signal(Signal::TERM);
        self.leader.signal(Signal::CONT);
    }

    pub(super) fn kill(&self) {
        self.leader.signal(Signal::KILL);
    }

    pub(super) async fn exited(&mut self) -> Exit {
        let ended = self.state.wait_for(|state| !matches!(state, State::Running)).await;
        match ended.as_deref() {
            Ok(State::Exited(exit) | State::Gone(exit)) => *exit,
            Ok(State::Running) | Err(_) => Exit::Unknown,
        }
    }

    pub(super) async fn gone(&mut self) {
        // The sender goes away with its thread, which ends with the same news.
        drop(self.state.wait_for(|state| matches!(state, State::Gone(_))).await);
    }
}

impl Drop for Grouped {
    fn drop(&mut self) {
        self.kill();
    }
}
