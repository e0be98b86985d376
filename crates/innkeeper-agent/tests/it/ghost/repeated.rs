//! Many runs one after the other, each with a server process of its own.

use innkeeper_testkit::{open_fds, rss_kib, thread_count};

use super::*;

/// Number of runs before the first measurement, in which caches and pools reach their sizes.
const WARM_UP_RUNS: usize = 20;

/// Proves: G75, G60
#[tokio::test]
async fn a_hundred_runs_leave_no_process_no_file_no_thread_and_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut pids = Vec::new();
    let (mut times, mut before) = (Vec::new(), None);
    for number in 0..100 {
        let journal = dir.path().join(format!("journal-{number}"));
        let both = ScriptedReply::text("All.");
        let all = (0..8)
            .fold(both, |reply, at| reply.with_tool_call("fx_add", json!({"a": at, "b": number})));
        let llm = ScriptedLlm::start(Script::new([all, ScriptedReply::text("Done.")])).await;
        let server = fixture("fx").journal(&journal);
        let started_at = Instant::now();
        let result = mcp_ghost(config(mcp_json([server]), &llm)).await;
        times.push(started_at.elapsed());
        assert!(result.result.is_success(), "{result:?}");
        assert_eq!(result.result.tool_calls.len(), 8);
        drop((result, llm));
        pids.extend(Journal::read(&journal).pids());
        if number + 1 == WARM_UP_RUNS {
            before = Some((open_fds(), thread_count(), rss_kib()));
        }
    }
    let (fds, threads, memory) = before.unwrap();
    assert!(pids.len() >= 100, "{}", pids.len());
    let alive = |pid: &&u32| Path::new("/proc").join(pid.to_string()).exists();
    assert_eq!(pids.iter().filter(alive).collect::<Vec<_>>(), [&0_u32; 0]);
    assert!(open_fds() <= fds + 2, "{fds} and {} files", open_fds());
    assert!(thread_count() <= threads + 2, "{threads} and {} threads", thread_count());
    assert!(rss_kib() < memory + (8 << 10), "{memory} and {} KiB", rss_kib());
    // The fastest run counts, so that a pause of the machine does not.
    let fastest = |times: &[Duration]| times.iter().min().copied().unwrap();
    let (early, late) = (fastest(&times[..WARM_UP_RUNS]), fastest(&times[80..]));
    assert!(late < early * 3, "{early:?} and {late:?}");
}
