//! The keeper: tells guests what to do, kills what is to be killed, and counts what is left.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use innkeeper_testkit::Nonce;
use rustix::process::{Pid, Signal, kill_process};

use crate::guest::SERVERS;
use crate::observe::{Sample, left_behind};
use crate::{GUEST, say};

/// The longest a guest may take over one line.
const PATIENCE: Duration = Duration::from_secs(60);
/// Cycles of the lasting guest before what it holds counts as its normal state.
const WARM_UP: usize = 10;
/// What its memory may grow by over the whole run, in KiB.
const GROWTH: u64 = 2048;

/// What happens in one cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// Calls, then a shutdown.
    Calm,
    /// The server of this number is killed in the middle of a call.
    ServerKilled(usize),
    /// The host is killed in the middle of a call.
    HostKilled,
}

impl Fate {
    /// Every tenth cycle the host dies, and of all cycles every third a server.
    fn of(cycle: usize) -> Self {
        match cycle {
            _ if cycle % 10 == 9 => Self::HostKilled,
            _ if cycle.is_multiple_of(3) => Self::ServerKilled(cycle / 3 % SERVERS.len()),
            _ => Self::Calm,
        }
    }
}

/// One guest and the two ways to it.
struct Guest {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    nonce: Nonce,
}

impl Guest {
    #[expect(clippy::disallowed_methods, reason = "the keeper starts and kills its guests itself")]
    fn start() -> Result<Self, String> {
        let nonce = Nonce::new();
        let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
        let mut child = Command::new(program)
            .args([GUEST, nonce.as_str()])
            .env(Nonce::VARIABLE, nonce.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("a guest does not start: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a guest has no pipes".to_owned());
        };
        // One line is under way at a time; a thread reads it so that waiting can end.
        let (sender, lines) = sync_channel(1);
        std::thread::spawn(move || {
            let said = BufReader::new(output).lines().map_while(Result::ok);
            said.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
        });
        Ok(Self { child, input, lines, nonce })
    }

    fn tell(&mut self, line: &str) -> Result<(), String> {
        writeln!(self.input, "{line}").map_err(|error| format!("a guest is gone: {error}"))
    }

    fn hear(&self) -> Result<String, String> {
        let line = self.lines.recv_timeout(PATIENCE);
        line.map_err(|_| format!("a guest says nothing for {} s", PATIENCE.as_secs()))
    }

    /// Hears that a call is under way; the process that serves it.
    fn hear_calling(&self) -> Result<Pid, String> {
        let line = self.hear()?;
        let pid = line.strip_prefix("calling ").and_then(|pid| pid.parse().ok());
        pid.and_then(Pid::from_raw).ok_or(line)
    }

    fn hear_done(&self) -> Result<Sample, String> {
        let line = self.hear()?;
        line.strip_prefix("done ").map_or_else(|| Err(line.clone()), str::parse)
    }

    fn left_behind(&self) -> Vec<String> {
        left_behind(&self.nonce, Some(self.child.id()))
    }
}

/// The lasting guest, what it held after each cycle, and what was found left.
pub(crate) struct Keeper {
    lasting: Guest,
    samples: Vec<Sample>,
    left: Vec<String>,
    killed: [usize; 2],
}

impl Keeper {
    pub(crate) fn new() -> Result<Self, String> {
        Ok(Self { lasting: Guest::start()?, samples: Vec::new(), left: Vec::new(), killed: [0; 2] })
    }

    /// Runs one cycle and looks around.
    pub(crate) fn cycle(&mut self, cycle: usize) -> Result<(), String> {
        let wrong = |problem| format!("cycle {cycle}: {problem}");
        match Fate::of(cycle) {
            Fate::Calm => self.calm(),
            Fate::ServerKilled(server) => self.server_killed(SERVERS[server]),
            Fate::HostKilled => self.host_killed(SERVERS[cycle % SERVERS.len()]),
        }
        .map_err(wrong)
    }

    fn calm(&mut self) -> Result<(), String> {
        self.lasting.tell("calm")?;
        self.after()
    }

    fn server_killed(&mut self, server: &str) -> Result<(), String> {
        self.lasting.tell(&format!("kill {server}"))?;
        let pid = self.lasting.hear_calling()?;
        kill_process(pid, Signal::KILL).map_err(|error| format!("kill: {error}"))?;
        self.killed[0] += 1;
        self.after()
    }

    fn after(&mut self) -> Result<(), String> {
        let sample = self.lasting.hear_done()?;
        self.left.extend(self.lasting.left_behind());
        self.samples.push(sample);
        Ok(())
    }

    /// A guest of its own, since it does not live on.
    fn host_killed(&mut self, server: &str) -> Result<(), String> {
        let mut guest = Guest::start()?;
        guest.tell(&format!("kill {server}"))?;
        guest.hear_calling()?;
        guest.child.kill().map_err(|error| format!("kill: {error}"))?;
        guest.child.wait().map_err(|error| format!("wait: {error}"))?;
        self.killed[1] += 1;
        self.left.extend(left_behind(&guest.nonce, None));
        Ok(())
    }

    /// Tells the figures.
    ///
    /// # Errors
    ///
    /// Something was left behind, or what the lasting guest holds grew.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        let normal = self.samples.get(WARM_UP.min(self.samples.len() / 2));
        let (Some(normal), Some(last)) = (normal.copied(), self.samples.last().copied()) else {
            return Err("too few cycles to tell anything".to_owned());
        };
        let [servers, hosts] = self.killed;
        say(&format!(
            "{} cycles in one host, {servers} servers and {hosts} hosts killed in a call\n\
             left behind: {}\n\
             descriptors {} then {}, threads {} then {}, memory {} KiB then {} KiB",
            self.samples.len(),
            self.left.len(),
            normal.fds,
            last.fds,
            normal.threads,
            last.threads,
            normal.rss_kib,
            last.rss_kib,
        ));
        self.lasting.child.kill().map_err(|error| format!("kill: {error}"))?;
        self.lasting.child.wait().map_err(|error| format!("wait: {error}"))?;
        let mut problems = self.left;
        problems.extend(grown(normal, last));
        if self.samples.iter().any(|sample| sample.zombies > 0) {
            problems.push("the host had children it did not wait for".to_owned());
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }
}

fn grown(normal: Sample, last: Sample) -> Vec<String> {
    let pairs = [
        ("descriptors", normal.fds, last.fds, 0),
        ("threads", normal.threads, last.threads, 0),
        ("KiB of memory", normal.rss_kib, last.rss_kib, GROWTH),
    ];
    let grew = pairs.into_iter().filter(|(_, before, after, most)| *after > before + most);
    grew.map(|(what, before, after, _)| format!("{before} {what} became {after}")).collect()
}
