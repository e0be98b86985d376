//! Calls to a healthy server while another has a fault, beside those while the other is used in the
//! same way without it; and, to tell the host's part from the machine's, with the fault in a host of
//! another process.

mod fault;
mod offers;
mod plan;
mod times;

use std::path::{Path, PathBuf};
use std::time::Duration;

use innkeeper_host::Host;
use innkeeper_testkit::Nonce;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::observe::now;
use crate::partner::Partner;
use crate::{ELSEWHERE, HEALTHY, REMOTE, say};
use fault::Faults;
use plan::{NOT_PLAYED, Play};
use times::{Round, middle};

/// The healthy server.
const WELL: &str = "well";
/// A call is made so long after the one before; to the faulty server, not before that one has ended.
const PACE: Duration = Duration::from_millis(1);
/// Calls before anything is measured.
const WARM: usize = 100;
/// How much longer calls may take during a fault.
const WANTED: f64 = 2.0;

const HEAD: &str = "\
| # | beside a server | p50 before, µs | during | p99 before, µs | during | ÷ before | elsewhere | times |
| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |";

/// The catalogue, for the words of each fault.
const CATALOGUE: &str = include_str!("../../../../docs/faults.md");

/// What is measured, and how.
struct Wish<'a> {
    rounds: usize,
    calls: usize,
    threads: usize,
    /// The faults to play; all if there are none.
    faults: &'a [usize],
}

/// Plays faults and prints what calls beside each took. The numbers are rounds, calls a round,
/// threads of the runtime, and the faults if not all are meant.
///
/// # Errors
///
/// A server does not start as its fault has it, or a call to the healthy one fails.
pub(crate) fn run(numbers: &[usize]) -> Result<(), String> {
    let [rounds, calls, threads, ref faults @ ..] = *numbers else {
        return Err("rounds, calls and threads are to be said".to_owned());
    };
    let folder = folder();
    std::fs::create_dir_all(&folder).map_err(|error| format!("`{}`: {error}", folder.display()))?;
    let wish = Wish { rounds, calls, threads, faults };
    let outcome = offers::write(&folder).and_then(|()| wish.play(&folder));
    drop(std::fs::remove_dir_all(&folder));
    outcome
}

fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("innkeeper-neighbour-{}", std::process::id()))
}

impl Wish<'_> {
    fn asks_for(&self, fault: usize) -> bool {
        self.faults.is_empty() || self.faults.contains(&fault)
    }

    fn play(&self, folder: &Path) -> Result<(), String> {
        let (runtime, begun) = (runtime(self.threads)?, load());
        let mut elsewhere = Partner::start(&[ELSEWHERE, &self.threads.to_string()], &Nonce::new())?;
        say(HEAD);
        let (mut played, mut slower) = (0, Vec::new());
        let plays = plan::plays(folder);
        for (index, play) in plays.iter().enumerate().filter(|(_, it)| self.asks_for(it.number)) {
            let (well, without) = entry(&play.healthy(), &[HEALTHY, &index.to_string()])?;
            let (remote, with) = entry(play, &[REMOTE, &index.to_string()])?;
            let row = Row { wish: self, index, play, without, with };
            let problem = |why| format!("fault {}, {}: {why}", play.number, words(play));
            let [here, there] = row.measure(&runtime, &mut elsewhere).map_err(problem)?;
            for remote in [well, remote].into_iter().flatten() {
                remote.dismiss()?;
            }
            played += 1;
            if here > WANTED {
                slower.push(format!("{} ({here:.1}, {there:.1})", play.number));
            }
        }
        elsewhere.dismiss()?;
        for (number, why) in NOT_PLAYED.iter().filter(|(number, _)| self.asks_for(*number)) {
            say(&format!("not played: {number}, {why}"));
        }
        let most = if slower.is_empty() { "none".to_owned() } else { slower.join(", ") };
        say(&format!(
            "{played} plays of {} rounds of {} calls, {} threads; load {begun} at the start, {} at \
             the end; more than {WANTED} times (with the fault in this process, in another): {most}",
            self.rounds,
            self.calls,
            self.threads,
            load(),
        ));
        Ok(())
    }
}

/// The entry of a play's server, which is started first, by these arguments, if it is a remote one.
fn entry(play: &Play, arguments: &[&str]) -> Result<(Option<Partner>, Value), String> {
    if let Some(entry) = play.entry() {
        return Ok((None, entry));
    }
    let remote = Partner::start(arguments, &Nonce::new())?;
    let entry = serde_json::from_str(&remote.hear()?);
    Ok((Some(remote), entry.map_err(|error| format!("an entry: {error}"))?))
}

/// One play of a fault.
struct Row<'a> {
    wish: &'a Wish<'a>,
    index: usize,
    play: &'a Play,
    without: Value,
    with: Value,
}

impl Row<'_> {
    /// Prints its row; how much longer 99 of 100 calls took with the fault here, and elsewhere.
    fn measure(&self, runtime: &Runtime, elsewhere: &mut Partner) -> Result<[f64; 2], String> {
        let mut faults = runtime.block_on(Faults::none(fault::well()))?;
        let host = faults.host.clone();
        timed(runtime, &host, WARM)?;
        let (healthy, mut rounds, mut times) = (self.play.healthy(), Vec::new(), 0);
        for number in 0..self.wish.rounds {
            let before = self.here(runtime, &mut faults, &healthy, &self.without)?;
            let (uses, mut here) = (faults.times(), None);
            // Every other round they change places.
            if number.is_multiple_of(2) {
                here = Some(self.here(runtime, &mut faults, self.play, &self.with)?);
            }
            elsewhere.tell(&format!("begin {} {}", self.index, self.with))?;
            elsewhere.hear_of("begun")?;
            let there = timed(runtime, &host, self.wish.calls * self.play.longer)?;
            elsewhere.tell("end")?;
            elsewhere.hear_of("ended")?;
            let last = || self.here(runtime, &mut faults, self.play, &self.with);
            rounds.push([before, here.map_or_else(last, Ok)?, there]);
            times += faults.times() - uses;
        }
        runtime.block_on(host.shutdown());
        let at =
            |which: usize, percent| middle(rounds.iter().map(|it| it[which].percentile(percent)));
        let ratio = |which: usize| {
            middle(rounds.iter().map(|it| it[which].percentile(99) / it[0].percentile(99)))
        };
        let [here, there] = [ratio(1), ratio(2)];
        say(&format!(
            "| {} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {here:.1} | {there:.1} | {} |",
            self.play.number,
            words(self.play),
            at(0, 50),
            at(1, 50),
            at(0, 99),
            at(1, 99),
            times,
        ));
        Ok([here, there])
    }

    fn here(
        &self,
        runtime: &Runtime,
        faults: &mut Faults,
        play: &Play,
        entry: &Value,
    ) -> Result<Round, String> {
        runtime.block_on(faults.begin(play, entry))?;
        let round = timed(runtime, &faults.host.clone(), self.wish.calls * self.play.longer)?;
        runtime.block_on(faults.end())?;
        Ok(round)
    }
}

/// So many calls to the healthy server, one every [`PACE`] however long those before it take: what
/// holds the host up for some time is in all calls of that time.
fn timed(runtime: &Runtime, host: &Host, calls: usize) -> Result<Round, String> {
    let (mut due, mut made, mut times) = (now(), JoinSet::new(), Vec::with_capacity(calls));
    for _ in 0..calls {
        std::thread::sleep(due.saturating_duration_since(now()));
        due += PACE;
        let (host, from) = (host.clone(), now());
        let call = async move {
            let answer = host.call_tool(&format!("{WELL}.echo"), json!({"message": "hi"})).await;
            answer.map(|_| from.elapsed())
        };
        made.spawn_on(call, runtime.handle());
    }
    while let Some(ended) = runtime.block_on(made.join_next()) {
        let answer = ended.map_err(|error| format!("a caller: {error}"))?;
        times.push(answer.map_err(|error| format!("a call to the healthy server: {error}"))?);
    }
    Ok(Round::of(times))
}

/// Runs a host that has faults until the end of the input: `begin PLAY ENTRY`, then `end`.
pub(crate) fn serve_elsewhere(threads: usize) -> Result<(), String> {
    let (runtime, plays) = (runtime(threads)?, plan::plays(&folder()));
    let mut faults = runtime.block_on(Faults::none(json!({})))?;
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| format!("stdin: {error}"))?;
        let done = match line.strip_prefix("begin ").and_then(|rest| rest.split_once(' ')) {
            Some((play, entry)) => {
                let play = play.parse().ok().and_then(|index: usize| plays.get(index));
                let play = play.ok_or("no such play")?;
                let entry = serde_json::from_str(entry).map_err(|error| error.to_string())?;
                runtime.block_on(faults.begin(play, &entry)).map(|()| "begun")
            }
            None => runtime.block_on(faults.end()).map(|()| "ended"),
        };
        say(done.as_deref().unwrap_or_else(|problem| problem));
    }
    runtime.block_on(faults.host.shutdown());
    Ok(())
}

/// Runs the remote server of a play until the end of the input; a process of its own, so that what
/// it takes is not the host's.
pub(crate) fn serve_remote(index: usize, healthy: bool) -> Result<(), String> {
    let plays = plan::plays(&folder());
    let play = plays.get(index).map(|play| if healthy { play.healthy() } else { play.clone() });
    let plan = play.and_then(|play| play.remote()).ok_or("no play of a remote server")?;
    runtime(1)?.block_on(async {
        let remote = plan.start().await;
        say(&remote.entry().to_string());
        let input = tokio::task::spawn_blocking(|| std::io::stdin().lines().for_each(drop));
        input.await.map_err(|error| format!("stdin: {error}"))?;
        remote.stop().await;
        Ok(())
    })
}

fn runtime(threads: usize) -> Result<Runtime, String> {
    let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    runtime.map_err(|error| format!("no runtime: {error}"))
}

/// What the catalogue says that the server does.
fn words(play: &Play) -> String {
    let begins = format!("| {} | ", play.number);
    let row = CATALOGUE.lines().find_map(|line| line.strip_prefix(&begins));
    let words = row.and_then(|row| row.split(" | ").next()).unwrap_or("?");
    if play.detail.is_empty() { words.to_owned() } else { format!("{words}: {}", play.detail) }
}

/// The machine's load over the last minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}
