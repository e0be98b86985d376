//! Each store with two handles, as two replicas of a gateway have them.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_gateway::RedisClient;
use innkeeper_gateway::pending_questions::store::{
    Changed, MemoryQuestionStore, QuestionAdded, QuestionChange, QuestionStore, RedisQuestionStore,
};
use innkeeper_gateway::pending_questions::{
    NewQuestion, Question, QuestionAsker, QuestionId, QuestionKind, QuestionTool,
};
use innkeeper_testkit::RedisServer;
use serde_json::json;

/// The expiry of a question.
pub(super) const EXPIRY: Duration = Duration::from_secs(600);

/// Takes time from every time that Redis knows: Redis has no clock that a test can move.
const PASS_TIME: &str = "
    for _, key in ipairs(redis.call('KEYS', '*')) do
        local kind = redis.call('TYPE', key).ok
        if kind == 'zset' and string.find(key, 'deadlines') then
            for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
                redis.call('ZINCRBY', key, -ARGV[1], member)
            end
        elseif kind == 'hash' then
            redis.call('HINCRBY', key, 'expires', -ARGV[1])
        end
        if redis.call('PTTL', key) > 0 then
            redis.call('PEXPIRE', key, redis.call('PTTL', key) - ARGV[1])
        end
    end";

/// Two handles of one store.
pub(super) struct Stores {
    pub(super) first: Arc<dyn QuestionStore>,
    pub(super) second: Arc<dyn QuestionStore>,
    server: Option<RedisServer>,
}

/// Runs a test over the memory store with a paused clock, and over Redis.
#[expect(clippy::print_stdout, reason = "the output of a failed test names the store")]
pub(super) async fn over_both(test: impl AsyncFn(&Stores)) {
    println!("memory:");
    tokio::time::pause();
    test(&Stores::memory()).await;
    tokio::time::resume();
    println!("Redis:");
    test(&Stores::redis().await).await;
}

impl Stores {
    pub(super) fn memory() -> Self {
        let store = Arc::new(MemoryQuestionStore::default());
        Self { first: store.clone(), second: store, server: None }
    }

    pub(super) async fn redis() -> Self {
        let server = RedisServer::start(&[]);
        let connect = async || {
            let client = Arc::new(RedisClient::new(&server.url()).unwrap());
            Arc::new(RedisQuestionStore::connect(client).await.unwrap())
        };
        Self { first: connect().await, second: connect().await, server: Some(server) }
    }

    /// Lets time pass for everything in the store.
    pub(super) async fn pass(&self, time: Duration) {
        match &self.server {
            None => tokio::time::advance(time).await,
            Some(server) => {
                let client = ::redis::Client::open(server.url()).unwrap();
                let mut commands = client.get_multiplexed_async_connection().await.unwrap();
                let milliseconds = u64::try_from(time.as_millis()).unwrap();
                let script = ::redis::Script::new(PASS_TIME);
                let () = script.arg(milliseconds).invoke_async(&mut commands).await.unwrap();
            }
        }
    }

    /// Adds a question of a principal.
    pub(super) async fn add_of(&self, kind: QuestionKind, principal: &str) -> QuestionId {
        let id = QuestionId::random();
        let added = self.first.add(id, &question(kind, principal), EXPIRY).await.unwrap();
        assert_eq!(added, QuestionAdded::Added);
        id
    }

    pub(super) async fn add(&self, kind: QuestionKind) -> QuestionId {
        self.add_of(kind, "ada").await
    }

    /// Returns a question as the other handle sees it.
    pub(super) async fn find(&self, id: QuestionId) -> Question {
        self.second.find(id).await.unwrap().expect("the question is in the store")
    }

    /// Takes a step that the state permits.
    pub(super) async fn take(&self, id: QuestionId, change: &QuestionChange) -> Question {
        match self.first.change(id, change).await.unwrap() {
            Changed::Done(question) => *question,
            other => panic!("{other:?}"),
        }
    }
}

pub(super) fn question(kind: QuestionKind, principal: &str) -> NewQuestion {
    let raw = |text: &str| serde_json::from_str(text).unwrap();
    NewQuestion {
        kind,
        asker: QuestionAsker {
            principal: principal.to_owned(),
            client: "http 2025-11-25".to_owned(),
            endpoint: Some("docs".to_owned()),
            revision: "2025-11-25".to_owned(),
        },
        process: "first".to_owned(),
        tool: QuestionTool {
            server: "notes".to_owned(),
            item: "delete".to_owned(),
            host_name: "notes.delete".to_owned(),
            definition: Some(raw(&json!({ "name": "delete" }).to_string())),
            digest: "0f".to_owned(),
        },
        // A number and spaces that a tree of JSON values would not preserve.
        params: raw(r#"{ "id":1.50e400, "text" : "é\n" }"#),
    }
}

/// Returns a question as JSON, for comparisons.
pub(super) fn content(question: &NewQuestion) -> String {
    serde_json::to_string(question).unwrap()
}

/// A step of each kind.
pub(super) fn every_change() -> [QuestionChange; 5] {
    let response = || serde_json::value::to_raw_value(&json!({ "result": {} })).unwrap();
    [
        QuestionChange::claim("ann", "second"),
        QuestionChange::answer("ann", response()),
        QuestionChange::decline("ann", Some("no".to_owned())),
        QuestionChange::end("over"),
        QuestionChange::finish(response()),
    ]
}
