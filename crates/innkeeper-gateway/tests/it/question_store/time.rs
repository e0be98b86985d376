//! What time does to questions.

use std::time::Duration;

use innkeeper_gateway::pending_questions::store::{
    Changed, KEEP_TIME, LEASE_TIME, PROCESS_ENDED, QuestionChange, QuestionList,
};
use innkeeper_gateway::pending_questions::{QuestionKind, QuestionState};

use super::stores::{EXPIRY, every_change, over_both};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_question_without_an_answer_expires_and_cannot_be_answered_any_more() {
    over_both(async |stores| {
        let id = stores.add(QuestionKind::Approval).await;
        stores.pass(EXPIRY - SECOND).await;
        assert_eq!(stores.find(id).await.state, QuestionState::Waiting);
        stores.pass(2 * SECOND).await;
        let claim = QuestionChange::claim("ann", "second");
        let Changed::Refused(expired) = stores.first.change(id, &claim).await.unwrap() else {
            panic!("an expired question is claimed");
        };
        assert_eq!(expired.state, QuestionState::Expired);
        assert_eq!(expired.answer.by, None);
        assert_eq!(stores.second.count_open().await.unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn the_outcome_of_a_call_whose_process_does_not_renew_it_is_unknown_for_ever() {
    over_both(async |stores| {
        let id = stores.add(QuestionKind::Approval).await;
        stores.take(id, &QuestionChange::claim("ann", "second")).await;
        stores.pass(LEASE_TIME - SECOND).await;
        assert!(stores.first.renew(id).await.unwrap());
        stores.pass(LEASE_TIME - SECOND).await;
        assert_eq!(stores.find(id).await.state, QuestionState::Running);
        // A call may run longer than a question may wait.
        stores.pass(2 * SECOND).await;
        assert!(!stores.first.renew(id).await.unwrap());
        for change in every_change() {
            let changed = stores.second.change(id, &change).await.unwrap();
            assert!(matches!(changed, Changed::Refused(_)), "{changed:?}");
        }
        assert_eq!(stores.find(id).await.state, QuestionState::OutcomeUnknown);
    })
    .await;
}

#[tokio::test]
async fn a_renewed_call_outlives_the_expiry_of_its_question() {
    over_both(async |stores| {
        let id = stores.add(QuestionKind::Approval).await;
        stores.pass(EXPIRY - SECOND).await;
        stores.take(id, &QuestionChange::claim("ann", "second")).await;
        stores.pass(20 * SECOND).await;
        assert!(stores.first.renew(id).await.unwrap());
        assert_eq!(stores.find(id).await.state, QuestionState::Running);
    })
    .await;
}

#[tokio::test]
async fn an_elicitation_ends_with_the_process_that_waits_for_it() {
    over_both(async |stores| {
        let id = stores.add(QuestionKind::Elicitation).await;
        stores.pass(LEASE_TIME - SECOND).await;
        assert!(stores.first.renew(id).await.unwrap());
        stores.pass(LEASE_TIME + SECOND).await;
        let ended = stores.find(id).await;
        assert_eq!(ended.state, QuestionState::Ended);
        assert_eq!(ended.answer.reason.as_deref(), Some(PROCESS_ENDED));
    })
    .await;
}

#[tokio::test]
async fn an_approval_waits_without_its_process_and_a_final_question_is_kept_for_a_day() {
    over_both(async |stores| {
        let id = stores.add(QuestionKind::Approval).await;
        stores.pass(2 * LEASE_TIME).await;
        assert_eq!(stores.find(id).await.state, QuestionState::Waiting);
        stores.take(id, &QuestionChange::decline("ann", None)).await;
        stores.pass(KEEP_TIME - SECOND).await;
        assert_eq!(stores.find(id).await.state, QuestionState::Declined);
        stores.pass(2 * SECOND).await;
        assert!(stores.first.find(id).await.unwrap().is_none());
        assert!(stores.first.list(QuestionList::Final, None, 10).await.unwrap().is_empty());
    })
    .await;
}
