//! How a conversation ends: the server is told, nothing is left, and nobody is waited for too long.

use std::time::Duration;

use innkeeper_host::shutdown::Stage;
use innkeeper_testkit::remote::Plan;
use innkeeper_testkit::{Fault, Remote};
use serde_json::json;
use tokio::time::Instant;

use super::{forgiving, hosting};
use crate::setup::Scene;

fn http(plan: Plan) -> Plan {
    plan
}

#[tokio::test]
async fn a_server_is_told_of_the_end_of_its_session_and_nothing_is_left_of_it() {
    for way in [http, |plan: Plan| plan.sse(), |plan: Plan| plan.websocket()] {
        let scene = Scene::new();
        let remote = way(Remote::of(scene.fx("a"))).start().await;
        let host = hosting(&scene, [("a", remote.entry())]).await;
        let report = host.shutdown().await;
        assert_eq!(report.servers[0].stage, Stage::Disconnected);
        assert!(report.is_clean(), "{report:?}");
        // The fixture lives as long as its session.
        scene.assert_gone().await;
    }
}

#[tokio::test]
async fn a_host_that_is_dropped_leaves_no_connection() {
    for way in [|plan: Plan| plan.sse(), |plan: Plan| plan.websocket()] {
        let scene = Scene::new();
        let remote = way(Remote::of(scene.fx("a"))).start().await;
        drop(hosting(&scene, [("a", remote.entry())]).await);
        scene.assert_gone().await;
    }
}

/// A host with a call under way is shut down within its budget; how long that took.
async fn shut_down(scene: &Scene, remote: &Remote) -> Duration {
    let host = hosting(scene, [("a", remote.entry())]).await;
    let calling = host.call_tool("a.sleep", json!({"ms": 60_000}));
    let ending = async {
        scene.journal_until(|journal| journal.count("tools/call") == 1).await;
        let began = Instant::now();
        host.shutdown().await;
        began.elapsed()
    };
    let (called, took) = tokio::join!(calling, ending);
    called.unwrap_err();
    took
}

#[tokio::test]
async fn a_server_that_does_not_answer_the_farewell_is_left_within_the_time_for_it() {
    for fault in [Fault::silence(), Fault::stall(), Fault::status(500), Fault::hang_up()] {
        let scene = Scene::new();
        let server = forgiving(&scene).key("shutdownTimeout", 1);
        let remote = Remote::of(server).fault(fault.on_http("DELETE")).start().await;
        let took = shut_down(&scene, &remote).await;
        assert!(took < Duration::from_secs(4), "{took:?}");
        assert_eq!(remote.requests().last().unwrap().method, "DELETE");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_left_at_once() {
    for way in [http, |plan: Plan| plan.sse(), |plan: Plan| plan.websocket()] {
        let scene = Scene::new();
        let remote = way(Remote::of(forgiving(&scene))).start().await;
        let host = hosting(&scene, [("a", remote.entry())]).await;
        remote.stop().await;
        let began = Instant::now();
        host.shutdown().await;
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_remote_server_can_be_started_again_in_a_session_of_its_own() {
    for way in [http, |plan: Plan| plan.sse(), |plan: Plan| plan.websocket()] {
        let scene = Scene::new();
        let remote = way(Remote::of(scene.fx("a"))).start().await;
        let host = hosting(&scene, [("a", remote.entry())]).await;
        host.restart_server("a").await.unwrap();
        assert_eq!(super::echo(&host, "a", "again").await.unwrap(), "again");
        assert_eq!(scene.journal().count("initialize"), 2);
        assert!(host.shutdown().await.is_clean());
        scene.assert_gone().await;
    }
}
