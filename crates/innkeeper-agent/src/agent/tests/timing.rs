//! An agent takes its time and its chance from one place.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::agent::{Agent, AgentSettings};
use crate::provider::{LlmError, LlmErrorKind, Response, ScriptedProvider};
use crate::run::RunOutcome;
use crate::timing::Timing;
use crate::tools::{AvailableTool, ToolCallFuture, ToolCallOptions, ToolRunner};

/// A runner without tools.
struct NoTools;

impl ToolRunner for NoTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        Vec::new()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        _: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        Box::pin(async move { panic!("no tool is listed: {name}") })
    }
}

/// A clock that runs 60 times as fast as Tokio's, with sleeps on the same clock.
fn fast_timing(jitter: f64, delays: &Arc<Mutex<Vec<Duration>>>) -> Timing {
    let (base, delays) = (Instant::now(), delays.clone());
    Timing {
        now: Arc::new(move || base + base.elapsed() * 60),
        sleep: Arc::new(move |duration| {
            delays.lock().unwrap().push(duration);
            tokio::time::sleep(duration / 60).boxed()
        }),
        jitter: Arc::new(move || jitter),
        ..Timing::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_repeats_exactly_with_a_fixed_clock_and_jitter() {
    let timeout = AgentSettings::default().limits.response_timeout;
    let busy = || Err(LlmError::new("p", LlmErrorKind::RetryLater { after: None }, "busy"));
    for (jitter, waited) in [(0.0, [500, 1000]), (0.5, [575, 1150]), (1.0, [650, 1300])] {
        let model = ScriptedProvider::new([busy(), busy(), Ok(Response::from_text("Done."))]);
        let delays = Arc::default();
        let timing = fast_timing(jitter, &delays);
        let settings = AgentSettings::default();
        let agent = Agent::with_timing(Arc::new(model), Arc::new(NoTools), settings, timing);
        let result = agent.run("Hi").await;
        assert!(result.is_success(), "{result:?}");
        let [first, second] = waited.map(Duration::from_millis);
        assert_eq!(*delays.lock().unwrap(), [timeout, first, timeout, second, timeout]);
        let tolerance = Duration::from_millis(60 * 2);
        let late = result.elapsed.checked_sub(first + second);
        assert!(late.is_some_and(|late| late <= tolerance), "{result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_rate_limit_of_an_agent_follows_its_clock() {
    let replies = ["One.", "Two."].map(|text| Ok(Response::from_text(text)));
    let mut settings = AgentSettings::default();
    settings.limits.rate_limit_per_minute = Some(1);
    let timing = fast_timing(0.0, &Arc::default());
    let model = Arc::new(ScriptedProvider::new(replies));
    let agent = Agent::with_timing(model, Arc::new(NoTools), settings, timing);
    assert!(agent.run("Hi").await.is_success());
    let refused = agent.run("Hi").await;
    assert!(matches!(refused.outcome, RunOutcome::Failed(_)), "{refused:?}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(agent.run("Hi").await.text, "Two.");
}
