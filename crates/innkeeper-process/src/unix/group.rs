//! A server without a shim, in a process group that the host signals.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use tokio::sync::watch;

use super::{StdioPipes, pid, pipes, record};
use crate::ledger::{Ledger, LedgerEntry, ProcessKind};
use crate::{ExitStatus, ProcessSpec, SpawnError};

/// Interval of the checks whether a killed group is empty. Their number is limited, because processes
/// that remain afterwards cannot be killed.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_POLLS: usize = 200;

/// A server process that leads a process group.
#[derive(Debug)]
pub(super) struct GroupProcess {
    id: u32,
    leader: GroupLeader,
    state: watch::Receiver<GroupState>,
}

#[derive(Clone, Copy, Debug)]
enum GroupState {
    Running,
    Exited(ExitStatus),
    Gone(ExitStatus),
}

/// The leader's id until it is reaped; the system may reuse the id afterwards.
#[derive(Clone, Debug)]
pub(super) struct GroupLeader(Arc<Mutex<Option<Pid>>>);

impl GroupLeader {
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
    launch: &ProcessSpec,
    ledger: Option<&Ledger>,
) -> Result<(GroupProcess, StdioPipes), SpawnError> {
    let command = launch.command.as_str();
    let (pipes, server_ends) = pipes::open().map_err(|error| SpawnError::other(command, error))?;
    let mut process_command = Command::new(&launch.program);
    process_command
        .args(&launch.args)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(server_ends.stdin))
        .stdout(Stdio::from(server_ends.stdout))
        .stderr(Stdio::from(server_ends.stderr))
        .process_group(0);
    if let Some(cwd) = &launch.cwd {
        process_command.current_dir(cwd);
    }
    let child = process_command.spawn().map_err(|source| match &launch.cwd {
        Some(cwd) if cwd.join(".").metadata().is_err() => {
            SpawnError::WorkingDirectory { command: command.into(), source }
        }
        _ => SpawnError::from_exec(command, source, launch.program.exists()),
    })?;
    drop(process_command);
    let id = child.id();
    let leader = GroupLeader(Arc::new(Mutex::new(pid(id))));
    let entry = record(ledger, ProcessKind::Group, id, None);
    let (state_sender, state) = watch::channel(GroupState::Running);
    let thread_leader = leader.clone();
    let grouped = GroupProcess { id, leader, state };
    let thread = std::thread::Builder::new().name("innkeeper-wait".to_owned());
    thread
        .spawn(move || wait_and_reap(child, &thread_leader, &state_sender, entry))
        .map_err(|error| SpawnError::other(command, error))?;
    Ok((grouped, pipes))
}

/// Waits for the leader, kills the rest of its group, and reaps the leader last, so that the system
/// cannot reuse the group id before.
fn wait_and_reap(
    mut child: Child,
    leader: &GroupLeader,
    state_sender: &watch::Sender<GroupState>,
    entry: Option<LedgerEntry>,
) {
    let group = pid(child.id());
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = group.and_then(|pid| {
        rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), ended)).ok().flatten()
    });
    let exit = match status.map(|status| (status.exit_status(), status.terminating_signal())) {
        Some((Some(code), _)) => ExitStatus::Code(code),
        Some((None, Some(signal))) => ExitStatus::Signal(signal),
        _ => ExitStatus::Unknown,
    };
    state_sender.send_replace(GroupState::Exited(exit));
    leader.signal(Signal::KILL);
    leader.forget();
    let _ = child.wait();
    reap_adopted_members(group);
    for _ in 0..MAX_POLLS {
        if group.is_none_or(is_group_empty) {
            break;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    reap_adopted_members(group);
    drop(entry);
    state_sender.send_replace(GroupState::Gone(exit));
}

/// Reaps the members of the group that became children of a host that adopts orphans.
fn reap_adopted_members(group: Option<Pid>) {
    use rustix::process::{WaitOptions, waitpgid};
    let Some(group) = group else { return };
    while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
}

/// Returns whether no process of a group runs. Zombies keep a group alive until they are reaped,
/// and some init processes never reap, so zombies are ignored where the system reports them.
fn is_group_empty(group: Pid) -> bool {
    if rustix::process::test_kill_process_group(group).is_err() {
        return true;
    }
    #[cfg(target_os = "linux")]
    return !crate::tree::all_processes()
        .iter()
        .any(|stat| stat.group == Some(group) && !stat.zombie);
    #[cfg(not(target_os = "linux"))]
    return false;
}

impl GroupProcess {
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn exit_status(&self) -> Option<ExitStatus> {
        match *self.state.borrow() {
            GroupState::Running => None,
            GroupState::Exited(exit) | GroupState::Gone(exit) => Some(exit),
        }
    }

    pub(super) fn kill_handle(&self) -> GroupLeader {
        self.leader.clone()
    }

    pub(super) fn terminate(&self) {
        self.leader.signal(Signal::TERM);
        self.leader.signal(Signal::CONT);
    }

    pub(super) fn kill(&self) {
        self.leader.signal(Signal::KILL);
    }

    pub(super) async fn wait(&mut self) -> ExitStatus {
        let ended = self.state.wait_for(|state| !matches!(state, GroupState::Running)).await;
        match ended.as_deref() {
            Ok(GroupState::Exited(exit) | GroupState::Gone(exit)) => *exit,
            Ok(GroupState::Running) | Err(_) => ExitStatus::Unknown,
        }
    }

    pub(super) async fn wait_tree(&mut self) {
        // If the sender is dropped with its thread, the wait ends as well.
        let _ = self.state.wait_for(|state| matches!(state, GroupState::Gone(_))).await;
    }
}

impl Drop for GroupProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
