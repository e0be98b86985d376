//! Code of an application that panics while it signs in.

use innkeeper_host::config::Secret;
use innkeeper_host::{Authorize, Authorizing, Challenge, Protected, UserAgent, Visit, Visiting};
use serde_json::json;

use super::at;
use super::inn::{Inn, Rules};
use super::why;
use crate::setup::Scene;

struct Broken {
    /// Whether it does so before there is anything to wait for.
    at_once: bool,
}

impl Authorize for Broken {
    fn token(&self, _: &Protected) -> Authorizing<Option<Secret>> {
        assert!(!self.at_once, "broken");
        Box::pin(async { Ok(None) })
    }

    fn challenged(&self, _: &Protected, _: Challenge) -> Authorizing<Secret> {
        Box::pin(async { panic!("broken") })
    }
}

impl UserAgent for Broken {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:7777/callback".to_owned()
    }

    fn visit(&self, _: Visit) -> Visiting {
        panic!("broken")
    }
}

#[tokio::test]
async fn a_panic_of_what_signs_in_is_told_and_ends_nothing_else() {
    let inn = Inn::open(Rules::default()).await;
    let scene = Scene::new();
    let begin = || at(&scene, &inn.url(), &json!({"initTimeout": 20}));
    for builder in [
        begin().authorize(Broken { at_once: true }),
        begin().authorize(Broken { at_once: false }),
        begin().user_agent(Broken { at_once: false }),
    ] {
        let error = why(builder.start().await);
        assert!(error.ends_with("is unavailable: what signs in there panicked"), "{error}");
    }
}
