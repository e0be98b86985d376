//! Faults of replicas and of their Redis under load.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_testkit::{Haproxy, RedisSentinel, RedisServer};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use super::cluster::{Cluster, LEASE, Replica, open_settings};
use super::delay_proxy::DelayProxy;
use super::history::{Event, History, Summary, check};
use super::load::Load;

/// Number of replicas.
const REPLICAS: usize = 3;

/// Time beyond the lease for which a replica stands still.
const STOP_TIME: Duration = LEASE.saturating_add(Duration::from_secs(1));

/// How often Redis closes all connections.
const DISTURBANCES: u32 = 20;

/// What happens during a part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// A kill of a replica, a stop of the next one and a restart of Redis, with little time between them.
    Several(usize),
    /// SIGKILL to a replica, which starts again after its lease.
    Kill(usize),
    /// SIGSTOP to a replica for longer than its lease, then SIGCONT.
    Stop(usize),
    /// SIGTERM to a replica, which starts again.
    Terminate(usize),
    RestartRedis,
    /// SIGSTOP to Redis for this time, then SIGCONT.
    PauseRedis(Duration),
    /// Delays of each packet between the replicas and Redis, in each direction.
    SlowRedis(Duration),
    /// Redis forgets the scripts and closes all connections, again and again.
    DisturbRedis,
    /// SIGKILL to the primary of Redis: the sentinel makes its replica the primary.
    FailOver,
}

/// The Redis of a run.
struct RedisSetup {
    primary: RedisServer,
    /// A replica of the primary with its sentinel, and the proxy that follows the primary.
    _follower: Option<(RedisServer, RedisSentinel, Haproxy)>,
    delay: DelayProxy,
}

impl RedisSetup {
    async fn alone(arguments: &[&str]) -> Self {
        let primary = RedisServer::start(arguments);
        let delay = DelayProxy::start(primary.address()).await;
        Self { primary, _follower: None, delay }
    }

    async fn replicated() -> Self {
        let primary = RedisServer::start(&[]);
        let port = primary.address().port().to_string();
        let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &port]);
        let sentinel = RedisSentinel::start(primary.address());
        let proxy = Haproxy::redis_primary(&[primary.address(), replica.address()]);
        let delay = DelayProxy::start(proxy.address()).await;
        Self { primary, _follower: Some((replica, sentinel, proxy)), delay }
    }

    fn url(&self) -> String {
        format!("redis://{}/0", self.delay.address())
    }
}

/// Replicas under load.
struct Run {
    redis: RedisSetup,
    cluster: Cluster,
    load: Load,
    history: Arc<History>,
    /// All events of the run.
    events: Vec<Event>,
}

impl Run {
    async fn start(redis: RedisSetup, seed: u64) -> Self {
        let cluster = Cluster::start(REPLICAS, &redis.url(), &open_settings()).await;
        let history = Arc::new(History::new());
        let url = format!("http://{}/mcp", cluster.proxy.address());
        let load = Load::new(&url, &history, seed);
        Self { redis, cluster, load, history, events: Vec::new() }
    }

    /// Sends at least so many calls while a fault happens, and checks them.
    async fn part(&mut self, fault: Fault, count: u64) -> Summary {
        let (redis, cluster) = (&mut self.redis, &mut self.cluster);
        self.load.run(count, happen(fault, redis, cluster)).await;
        let events = self.history.take();
        let summary = check(&events, &self.cluster.executions());
        self.events.extend(events);
        summary
    }

    /// Checks all calls: none of them ran later.
    fn check_all(&self) -> Summary {
        check(&self.events, &self.cluster.executions())
    }
}

/// Lets a fault happen, and ends when the fault is over.
async fn happen(fault: Fault, redis: &mut RedisSetup, cluster: &mut Cluster) {
    // The load is under way before.
    sleep(Duration::from_millis(500)).await;
    match fault {
        Fault::Nothing => {}
        Fault::Several(killed) => {
            let stopped = (killed + 1) % REPLICAS;
            cluster.replicas[killed].kill().await;
            cluster.replicas[stopped].signal(Signal::STOP);
            sleep(STOP_TIME).await;
            cluster.replicas[stopped].signal(Signal::CONT);
            cluster.replicas[killed].start_again().await;
            sleep(Duration::from_millis(500)).await;
            redis.primary.stop();
            sleep(Duration::from_millis(500)).await;
            redis.primary.start_again();
        }
        Fault::Kill(index) => {
            cluster.replicas[index].kill().await;
            sleep(STOP_TIME).await;
            cluster.replicas[index].start_again().await;
        }
        Fault::Stop(index) => {
            cluster.replicas[index].signal(Signal::STOP);
            sleep(STOP_TIME).await;
            cluster.replicas[index].signal(Signal::CONT);
        }
        Fault::Terminate(index) => {
            cluster.replicas[index].signal(Signal::TERM);
            assert_eq!(cluster.replicas[index].wait_end().await, Some(143));
            cluster.replicas[index].start_again().await;
        }
        Fault::RestartRedis => {
            redis.primary.stop();
            sleep(Duration::from_secs(1)).await;
            redis.primary.start_again();
        }
        Fault::PauseRedis(time) => {
            redis.primary.pause();
            sleep(time).await;
            redis.primary.resume();
        }
        Fault::SlowRedis(delay) => {
            redis.delay.set_delay(delay);
            sleep(Duration::from_secs(3)).await;
            redis.delay.set_delay(Duration::ZERO);
        }
        Fault::DisturbRedis => {
            for _ in 0..DISTURBANCES {
                redis.primary.send("SCRIPT FLUSH\r\nCLIENT KILL TYPE normal\r\n");
                sleep(Duration::from_millis(100)).await;
            }
        }
        Fault::FailOver => {
            redis.primary.kill();
            sleep(Duration::from_secs(4)).await;
        }
    }
    sleep(Duration::from_millis(1500)).await;
}

/// The short form of the test: one replica is killed, one stands still, and Redis starts again.
///
/// Attack: processes | replicas are killed and stopped, and Redis restarts, while clients call tools
/// over sessions, event streams and without them | no call runs twice, none with a result is lost,
/// every stream continues without a gap, and the rest is told as unknown | No repeated execution
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_or_runs_twice_while_replicas_and_redis_fail() {
    let redis = RedisSetup::alone(&["--appendonly", "yes"]).await;
    let mut run = Run::start(redis, 1).await;
    // A stream breaks off only if its replica has one just then: the faults go on until that happened.
    // Each time at other replicas, because the sessions have moved away from these.
    for round in 0..9 {
        let summary = run.part(Fault::Several(round % REPLICAS), 600).await;
        assert_eq!(summary.violations, [""; 0], "{summary}");
        assert!(summary.acknowledged * 2 > summary.calls, "{summary}");
        let all = run.check_all();
        if all.resumed > 0 && all.unknown > 0 {
            return;
        }
    }
    let all = run.check_all();
    panic!("no fault broke a stream or left a call unknown: {all} {:?}", all.reasons);
}

/// The head of the table of the long form.
const TABLE_HEAD: &str = "\
| Redis: fault | calls | results | unknown | not run | refused | failed | broken | resumed | lost | twice | gaps | repeats | longest, s | time, s |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

/// The parts of the long form with one Redis.
struct Series {
    name: &'static str,
    redis: RedisSetup,
    faults: Vec<Fault>,
}

impl Series {
    async fn all() -> [Self; 3] {
        let seconds = Duration::from_secs;
        let mut faults = vec![Fault::Nothing];
        faults.extend([0, 1, 2].map(Fault::Kill));
        faults.extend([0, 1, 2].map(Fault::Stop));
        faults.extend([0, 1, 2].map(Fault::Terminate));
        faults.extend([Fault::RestartRedis, Fault::PauseRedis(seconds(1))]);
        faults.extend([Fault::PauseRedis(seconds(5)), Fault::SlowRedis(Duration::from_millis(20))]);
        faults.push(Fault::DisturbRedis);
        let redis = RedisSetup::alone(&["--appendonly", "yes"]).await;
        let durable = Self { name: "on disk", redis, faults };
        let faults = vec![Fault::RestartRedis, Fault::Kill(0)];
        let volatile = Self { name: "in memory", redis: RedisSetup::alone(&[]).await, faults };
        let faults = vec![Fault::FailOver, Fault::Kill(1)];
        let replicated = Self { name: "replicated", redis: RedisSetup::replicated().await, faults };
        [durable, volatile, replicated]
    }

    /// Runs the parts with so many calls each. Adds the rows of the table, and returns the number of
    /// calls and the violations.
    #[expect(clippy::print_stdout, reason = "the run takes minutes, and shows its rows")]
    async fn run(self, count: u64, seed: u64, table: &mut String) -> (usize, Vec<String>) {
        let Self { name, redis, faults } = self;
        let mut run = Run::start(redis, seed).await;
        let mut violations = Vec::new();
        for fault in faults {
            let start = Instant::now();
            let summary = run.part(fault, count).await;
            let time = start.elapsed().as_secs_f64();
            let row = format!("| {name}: {fault} {summary} {time:.0} |\n");
            print!("{row}");
            for (reason, count) in &summary.reasons {
                println!("{count} times: {reason}");
            }
            table.push_str(&row);
            violations.extend(summary.violations);
        }
        // No call ran later.
        let all = run.check_all();
        let row = format!("| {name}: all {all} |\n");
        print!("{row}");
        table.push_str(&row);
        violations.extend(all.violations);
        let logs = run.cluster.replicas.iter().map(Replica::log);
        violations.extend(logs.filter(|log| log.contains("panic")));
        (all.calls, violations)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("none"),
            Self::Several(_) => f.write_str("kill, stop, Redis restarts"),
            Self::Kill(index) => write!(f, "kill of replica {index}"),
            Self::Stop(index) => write!(f, "stop of replica {index} for {STOP_TIME:?}"),
            Self::Terminate(index) => write!(f, "SIGTERM to replica {index}"),
            Self::RestartRedis => f.write_str("Redis restarts"),
            Self::PauseRedis(time) => write!(f, "Redis stands still for {time:?}"),
            Self::SlowRedis(delay) => write!(f, "Redis with {delay:?} in each direction"),
            Self::DisturbRedis => f.write_str("Redis closes connections and forgets scripts"),
            Self::FailOver => f.write_str("failover of Redis"),
        }
    }
}

/// The long form of the test: `cargo xtask replicas`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs for minutes; `cargo xtask replicas` runs it"]
async fn ten_thousand_calls_with_every_fault() {
    let setting = |name: &str| Some(std::env::var_os(name)?.into_string().unwrap());
    let number =
        |name: &str, default: u64| setting(name).map_or(default, |text| text.parse().unwrap());
    let (calls, seed) = (number("REPLICAS_CALLS", 10_000), number("REPLICAS_SEED", 1));
    let start = Instant::now();
    let all = Series::all().await;
    let parts: usize = all.iter().map(|series| series.faults.len()).sum();
    let count = calls.div_ceil(u64::try_from(parts).unwrap());
    let (mut table, mut violations, mut total) = (TABLE_HEAD.to_owned(), Vec::new(), 0);
    for series in all {
        let (calls, found) = series.run(count, seed, &mut table).await;
        total += calls;
        violations.extend(found);
    }
    if let Some(path) = setting("REPLICAS_REPORT") {
        let seconds = start.elapsed().as_secs();
        std::fs::write(path, format!("{table}\n{total} calls in {seconds} s.\n")).unwrap();
    }
    assert_eq!(violations, [""; 0]);
    assert!(total >= usize::try_from(calls).unwrap(), "{total}");
}
