//! Child processes of the fixture server: grandchildren, daemons, zombies, fork chains.

use std::io;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process, setsid};
use serde_json::json;

use super::input;
use super::journal_writer::JournalWriter;
use super::switches::Switches;

/// First argument of a child that runs until a signal kills it.
const SLEEPER_ROLE: &str = "__sleeper";

/// First argument of the child that leaves its session and starts a daemon.
const DETACHER_ROLE: &str = "__detacher";

/// First argument of the child that starts another child in its session and exits.
const FORKER_ROLE: &str = "__forker";

/// First argument of the child that leaves its session and keeps running.
const SESSION_LEADER_ROLE: &str = "__leader";

/// First argument of a link in a fork chain.
const CHAIN_LINK_ROLE: &str = "__link";

/// First argument of a child that exits at once.
const EXIT_AT_ONCE_ROLE: &str = "__brief";

/// Maximum lifetime of a child, so that a failed test does not leave processes forever.
const MAX_CHILD_LIFETIME: Duration = Duration::from_secs(120);

/// Maximum length of the chain of `--fork-loop`, so that a typo cannot block the machine.
const MAX_CHAIN_LEN: usize = 256;

/// Runs the role of a child process; `None` if the arguments are the command line of a server.
pub(super) fn run_role(args: &[String]) -> Option<ExitCode> {
    let role = args.first()?;
    let rest = &args[1..];
    match role.as_str() {
        EXIT_AT_ONCE_ROLE => Some(ExitCode::SUCCESS),
        SLEEPER_ROLE => Some(run_sleeper(rest)),
        DETACHER_ROLE => Some(exit_code(&setsid().map_err(io::Error::from).and_then(|_| {
            let mut daemon = role_command(SLEEPER_ROLE);
            daemon.args(rest).arg("--ignore-sigterm");
            daemon.spawn().map(drop)
        }))),
        FORKER_ROLE => Some(exit_code(&{
            let mut orphan = role_command(SLEEPER_ROLE);
            orphan.args(rest).arg("--ignore-sigterm").spawn().map(drop)
        })),
        SESSION_LEADER_ROLE => Some(match setsid() {
            Ok(_) => run_sleeper(rest),
            Err(_) => ExitCode::FAILURE,
        }),
        CHAIN_LINK_ROLE => {
            let depth = rest.first().and_then(|count| count.parse().ok()).unwrap_or(0);
            Some(exit_code(
                &spawn_chain(depth, &rest[1..]).map(|()| thread::sleep(MAX_CHILD_LIFETIME)),
            ))
        }
        _ => None,
    }
}

/// Starts the child processes that the switches define.
pub(super) fn start_children(switches: &Switches, recorder: &JournalWriter) -> io::Result<()> {
    let note = |kind: &str, child: &Child| {
        recorder.record_event("child", &json!({"kind": kind, "pid": child.id()}));
    };
    if switches.is_set("--grandchild") || switches.is_set("--grandchild-ignores-sigterm") {
        let mut command = role_command(SLEEPER_ROLE);
        command.args(inherited_args(switches)).stdin(Stdio::null()).stdout(Stdio::null());
        if switches.is_set("--grandchild-ignores-sigterm") {
            command.arg("--ignore-sigterm");
        }
        note("grandchild", &command.stderr(Stdio::null()).spawn()?);
    }
    if switches.is_set("--exit-while-grandchild") {
        note("holder", &role_command(SLEEPER_ROLE).args(inherited_args(switches)).spawn()?);
    }
    if switches.is_set("--daemon") || switches.is_set("--daemon-holds-stdout") {
        let mut command = role_command(DETACHER_ROLE);
        command.args(inherited_args(switches)).stdin(Stdio::null()).stderr(Stdio::null());
        if !switches.is_set("--daemon-holds-stdout") {
            command.stdout(Stdio::null());
        }
        command.status()?;
    }
    if switches.is_set("--double-fork") {
        let mut command = role_command(FORKER_ROLE);
        command.args(inherited_args(switches)).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).status()?;
    }
    if switches.is_set("--own-session") {
        let mut command = role_command(SESSION_LEADER_ROLE);
        command.args(inherited_args(switches)).arg("--ignore-sigterm");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        note("leader", &command.spawn()?);
    }
    for _ in 0..switches.count("--zombies") {
        // The missing wait leaves a zombie.
        note(
            "zombie",
            &role_command(EXIT_AT_ONCE_ROLE).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?,
        );
    }
    spawn_chain(switches.count("--fork-loop").min(MAX_CHAIN_LEN), &inherited_args(switches))
}

pub(super) fn signal_self(signal: Signal) {
    // A process without permission to signal itself could not run these tests.
    let _ = kill_process(getpid(), signal);
}

/// Allocates and touches memory, and keeps it for the lifetime of the process.
pub(super) fn allocate(bytes: usize) {
    if bytes > 0 {
        std::mem::forget(std::hint::black_box(vec![1_u8; bytes]));
    }
}

fn run_sleeper(args: &[String]) -> ExitCode {
    let Ok(switches) = Switches::parse(args.to_vec()) else {
        return ExitCode::from(super::USAGE_EXIT_CODE);
    };
    let opened = JournalWriter::open(switches.server_name(), switches.value("--journal"));
    exit_code(&opened.and_then(|recorder| {
        input::watch_sigterm(recorder.clone(), switches.is_set("--ignore-sigterm"))?;
        recorder.record_event(
            "sleeper",
            &json!({"ignores_sigterm": switches.is_set("--ignore-sigterm")}),
        );
        thread::sleep(MAX_CHILD_LIFETIME);
        Ok(())
    }))
}

fn spawn_chain(depth: usize, rest: &[String]) -> io::Result<()> {
    if depth == 0 {
        return Ok(());
    }
    let mut command = role_command(CHAIN_LINK_ROLE);
    command.arg((depth - 1).to_string()).args(rest);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}

/// The arguments with which a child writes into the same journal under the same name.
fn inherited_args(switches: &Switches) -> Vec<String> {
    let mut args = vec!["--name".to_owned(), switches.server_name().to_owned()];
    if let Some(path) = switches.value("--journal") {
        args.extend(["--journal".to_owned(), path.to_owned()]);
    }
    args
}

#[expect(clippy::disallowed_methods, reason = "the server leaves child processes on purpose")]
fn role_command(role: &str) -> Command {
    // An empty path fails at the spawn, which reports the error.
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.arg(role);
    command
}

fn exit_code(outcome: &io::Result<()>) -> ExitCode {
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
