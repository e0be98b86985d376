//! Children of the fixture server: grandchildren, daemons, zombies, chains of forks.

use std::io;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process, setsid};
use serde_json::json;

use super::input;
use super::journal::Recorder;
use super::switch::Switches;

/// First argument of a child that stays until killed.
const SLEEPER: &str = "__sleeper";

/// First argument of the child that leaves its session and starts a daemon.
const DETACHER: &str = "__detacher";

/// First argument of the child that starts another and ends, staying in its session.
const FORKER: &str = "__forker";

/// First argument of the child that leaves its session and stays.
const LEADER: &str = "__leader";

/// First argument of a link in a chain of forks.
const LINK: &str = "__link";

/// First argument of a child that ends at once.
const BRIEF: &str = "__brief";

/// How long a forgotten child stays, so that a failed test does not leave it for ever.
const LIFETIME: Duration = Duration::from_secs(120);

/// Longest chain of `--fork-loop`, so that a slip of the hand cannot stop the machine.
const LONGEST_CHAIN: usize = 256;

/// Runs one of the roles a fixture server starts itself in; `None` for a server's command line.
pub(super) fn run_role(args: &[String]) -> Option<ExitCode> {
    let role = args.first()?;
    let rest = &args[1..];
    match role.as_str() {
        BRIEF => Some(ExitCode::SUCCESS),
        SLEEPER => Some(sleeper(rest)),
        DETACHER => Some(ended(&setsid().map_err(io::Error::from).and_then(|_| {
            let mut daemon = own(SLEEPER);
            daemon.args(rest).arg("--ignore-sigterm");
            daemon.spawn().map(drop)
        }))),
        FORKER => Some(ended(&{
            let mut orphan = own(SLEEPER);
            orphan.args(rest).arg("--ignore-sigterm").spawn().map(drop)
        })),
        LEADER => Some(match setsid() {
            Ok(_) => sleeper(rest),
            Err(_) => ExitCode::FAILURE,
        }),
        LINK => {
            let left = rest.first().and_then(|count| count.parse().ok()).unwrap_or(0);
            Some(ended(&chain(left, &rest[1..]).map(|()| thread::sleep(LIFETIME))))
        }
        _ => None,
    }
}

/// Starts the children the switches ask for.
pub(super) fn start_children(switches: &Switches, recorder: &Recorder) -> io::Result<()> {
    let note = |kind: &str, child: &Child| {
        recorder.event("child", &json!({"kind": kind, "pid": child.id()}));
    };
    if switches.on("--grandchild") || switches.on("--grandchild-ignores-sigterm") {
        let mut command = own(SLEEPER);
        command.args(passed_on(switches)).stdin(Stdio::null()).stdout(Stdio::null());
        if switches.on("--grandchild-ignores-sigterm") {
            command.arg("--ignore-sigterm");
        }
        note("grandchild", &command.stderr(Stdio::null()).spawn()?);
    }
    if switches.on("--exit-while-grandchild") {
        note("holder", &own(SLEEPER).args(passed_on(switches)).spawn()?);
    }
    if switches.on("--daemon") || switches.on("--daemon-holds-stdout") {
        let mut command = own(DETACHER);
        command.args(passed_on(switches)).stdin(Stdio::null()).stderr(Stdio::null());
        if !switches.on("--daemon-holds-stdout") {
            command.stdout(Stdio::null());
        }
        command.status()?;
    }
    if switches.on("--double-fork") {
        let mut command = own(FORKER);
        command.args(passed_on(switches)).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).status()?;
    }
    if switches.on("--own-session") {
        let mut command = own(LEADER);
        command.args(passed_on(switches)).arg("--ignore-sigterm");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        note("leader", &command.spawn()?);
    }
    for _ in 0..switches.count("--zombies") {
        // Dropped without waiting, which is what leaves a zombie.
        note("zombie", &own(BRIEF).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
    }
    chain(switches.count("--fork-loop").min(LONGEST_CHAIN), &passed_on(switches))
}

/// Sends this process a signal.
pub(super) fn signal_self(signal: Signal) {
    // Without permission to signal itself no process could run these tests.
    let _ = kill_process(getpid(), signal);
}

/// Takes memory, and touches it, for as long as the process lives.
pub(super) fn allocate(bytes: usize) {
    if bytes > 0 {
        std::mem::forget(std::hint::black_box(vec![1_u8; bytes]));
    }
}

fn sleeper(args: &[String]) -> ExitCode {
    let Ok(switches) = Switches::parse(args.to_vec()) else { return ExitCode::from(super::USAGE) };
    let opened = Recorder::open(switches.server(), switches.text("--journal"));
    ended(&opened.and_then(|recorder| {
        input::watch_sigterm(recorder.clone(), switches.on("--ignore-sigterm"))?;
        recorder.event("sleeper", &json!({"ignores_sigterm": switches.on("--ignore-sigterm")}));
        thread::sleep(LIFETIME);
        Ok(())
    }))
}

fn chain(left: usize, rest: &[String]) -> io::Result<()> {
    if left == 0 {
        return Ok(());
    }
    let mut command = own(LINK);
    command.arg((left - 1).to_string()).args(rest);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}

/// What a child needs to write into the same journal under the same name.
fn passed_on(switches: &Switches) -> Vec<String> {
    let mut args = vec!["--name".to_owned(), switches.server().to_owned()];
    if let Some(path) = switches.text("--journal") {
        args.extend(["--journal".to_owned(), path.to_owned()]);
    }
    args
}

#[expect(clippy::disallowed_methods, reason = "stray children are what this server is for")]
fn own(role: &str) -> Command {
    // A name that cannot be found fails at the spawn, which is reported there.
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.arg(role);
    command
}

fn ended(outcome: &io::Result<()>) -> ExitCode {
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
