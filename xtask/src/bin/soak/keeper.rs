//! The keeper: tells guests what to do, kills what is to be killed, and counts what is left.

use innkeeper_testkit::Nonce;
use rustix::process::{Pid, Signal, kill_process};

use crate::guest::SERVERS;
use crate::observe::{Sample, Zombies, left_behind};
use crate::partner::Partner;
use crate::{GUEST, say};

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

/// One guest and its mark.
struct Guest {
    partner: Partner,
    nonce: Nonce,
}

impl Guest {
    fn start() -> Result<Self, String> {
        let nonce = Nonce::new();
        Ok(Self { partner: Partner::start(&[GUEST, nonce.as_str()], &nonce)?, nonce })
    }

    /// Hears that a call is under way; the process that serves it.
    fn hear_calling(&self) -> Result<Pid, String> {
        let pid = self.partner.hear_of("calling")?;
        pid.parse().ok().and_then(Pid::from_raw).ok_or(pid)
    }

    fn hear_done(&self) -> Result<Sample, String> {
        self.partner.hear_of("done")?.parse()
    }

    fn left_behind(&self, before: &Zombies) -> Vec<String> {
        left_behind(&self.nonce, Some(self.partner.id()), before)
    }
}

/// The lasting guest, what it held after each cycle, and what was found left.
pub(crate) struct Keeper {
    lasting: Guest,
    before: Zombies,
    samples: Vec<Sample>,
    left: Vec<String>,
    killed: [usize; 2],
}

impl Keeper {
    pub(crate) fn new() -> Result<Self, String> {
        let (lasting, before) = (Guest::start()?, Zombies::adopted());
        Ok(Self { lasting, before, samples: Vec::new(), left: Vec::new(), killed: [0; 2] })
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
        self.lasting.partner.tell("calm")?;
        self.after()
    }

    fn server_killed(&mut self, server: &str) -> Result<(), String> {
        self.lasting.partner.tell(&format!("kill {server}"))?;
        let pid = self.lasting.hear_calling()?;
        kill_process(pid, Signal::KILL).map_err(|error| format!("kill: {error}"))?;
        self.killed[0] += 1;
        self.after()
    }

    fn after(&mut self) -> Result<(), String> {
        let sample = self.lasting.hear_done()?;
        self.left.extend(self.lasting.left_behind(&self.before));
        self.samples.push(sample);
        Ok(())
    }

    /// A guest of its own, since it does not live on.
    fn host_killed(&mut self, server: &str) -> Result<(), String> {
        let mut guest = Guest::start()?;
        guest.partner.tell(&format!("kill {server}"))?;
        guest.hear_calling()?;
        guest.partner.kill()?;
        self.killed[1] += 1;
        self.left.extend(left_behind(&guest.nonce, None, &self.before));
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
        self.lasting.partner.kill()?;
        let mut problems = self.left;
        problems.extend(last.grown_since(normal, 0, GROWTH));
        if self.samples.iter().any(|sample| sample.zombies > 0) {
            problems.push("the host had children it did not wait for".to_owned());
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }
}
