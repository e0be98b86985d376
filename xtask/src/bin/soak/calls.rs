//! Calls with injected faults through one host: each has one outcome, and what the host holds stays.

mod draw;
mod run;
mod servers;

use std::path::Path;

use innkeeper_testkit::{Nonce, tallied};
use tokio::runtime::Builder;

use crate::observe::{Sample, now};
use crate::partner::Partner;
use crate::{REMOTES, say};
use draw::Draw;
use run::{Counts, IN_FLIGHT, Run};
use servers::NAMES;

pub(crate) use servers::serve_remotes;

/// Calls after which what the host holds counts as its normal state; of a short run, a tenth.
const NORMAL: u64 = 100_000;
/// Threads of the runtime, as an application on a small machine has them.
const THREADS: usize = 2;
/// What memory may grow by, in percent, and in KiB where that is more: a short run is not settled.
/// Descriptors may grow by the calls in flight: each may keep a connection to a remote server open.
const GROWTH: (u64, u64) = (5, 4096);
/// What is told of ids that did not run once.
const TOLD: usize = 20;

/// Makes so many calls.
///
/// # Errors
///
/// An outcome is not what it must be, a call ran twice or never, or what the host holds grew.
pub(crate) fn run(count: u64) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("innkeeper-soak-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("`{}`: {error}", folder.display()))?;
    let outcome = within(&folder, count);
    drop(std::fs::remove_dir_all(&folder));
    outcome
}

fn within(folder: &Path, count: u64) -> Result<(), String> {
    let remotes = Partner::start(&[REMOTES, &folder.display().to_string()], &Nonce::new())?;
    let config = servers::config(folder, &remotes.hear()?)?;
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let normal = NORMAL.min(count / 10);
    let start = now();
    let (counts, before, after) = runtime.block_on(async {
        let run = Run::start(&config).await?;
        run.until(normal).await?;
        let before = Sample::of_this_process();
        run.until(count).await?;
        let after = Sample::of_this_process();
        let counts = run.counts();
        run.shutdown().await;
        Ok::<_, String>((counts, before, after))
    })?;
    let seconds = start.elapsed().as_secs();
    remotes.dismiss()?;
    let ran = Ran::read(folder, count);
    tell(count, &counts, &ran, seconds);
    say(&format!(
        "| of the host | after {normal} calls | at the end |\n| --- | ---: | ---: |\n\
         | open descriptors | {} | {} |\n| threads | {} | {} |\n| memory, KiB | {} | {} |",
        before.fds, after.fds, before.threads, after.threads, before.rss_kib, after.rss_kib,
    ));
    let (percent, least) = GROWTH;
    let mut problems =
        after.grown_since(before, IN_FLIGHT as u64, least.max(before.rss_kib * percent / 100));
    problems.extend(counts.words);
    problems.extend(ran.words);
    if counts.outcomes != count {
        problems.push(format!("{count} calls had {} outcomes", counts.outcomes));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

fn tell(count: u64, counts: &Counts, ran: &Ran, seconds: u64) {
    let faults: u64 = counts.faults.values().sum();
    let kinds: Vec<String> =
        counts.faults.iter().map(|(word, count)| format!("{word} {count}")).collect();
    say(&format!(
        "| calls | servers | in flight | faults | lost | ran twice | mismatched | seconds |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n\
         | {count} | {} | {IN_FLIGHT} | {faults} | {} | {} | {} | {seconds} |\n\
         faults: {}",
        NAMES.len(),
        ran.never + (count - counts.outcomes),
        ran.twice,
        counts.mismatched,
        kinds.join(", "),
    ));
}

/// What the servers say they ran.
#[derive(Debug, Default)]
struct Ran {
    never: u64,
    twice: u64,
    words: Vec<String>,
}

impl Ran {
    fn read(folder: &Path, count: u64) -> Self {
        let mut times = vec![0_u32; usize::try_from(count).unwrap_or(0)];
        let mut ran = Self::default();
        for (server, name) in NAMES.iter().enumerate() {
            for id in tallied(&servers::tally(folder, name)) {
                match times.get_mut(usize::try_from(id).unwrap_or(usize::MAX)) {
                    Some(times) if Draw::of(id).server == server => *times += 1,
                    Some(_) | None => ran.words.push(format!("`{name}` ran {id}, not its own")),
                }
            }
        }
        for (id, times) in times.iter().enumerate().filter(|(_, times)| **times != 1) {
            ran.never += u64::from(*times == 0);
            ran.twice += u64::from(*times > 1);
            if ran.words.len() < TOLD {
                ran.words.push(format!("{id} ran {times} times"));
            }
        }
        ran
    }
}
