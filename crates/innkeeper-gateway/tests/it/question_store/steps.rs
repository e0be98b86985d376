//! What a store records of a question, and which steps it takes.

use std::time::Duration;

use innkeeper_gateway::pending_questions::store::{
    Changed, QuestionAdded, QuestionChange, QuestionList,
};
use innkeeper_gateway::pending_questions::{QuestionId, QuestionKind, QuestionState, QuestionStep};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::time::timeout;

use super::stores::{EXPIRY, Stores, content, every_change, over_both, question};

/// Brings a new question into a state by steps of a caller; `None` for a state that only time brings.
async fn question_in(
    stores: &Stores,
    kind: QuestionKind,
    state: QuestionState,
) -> Option<QuestionId> {
    let [claim, answer, decline, end, finish] = every_change();
    let steps: Vec<&QuestionChange> = match (state, kind) {
        (QuestionState::Waiting, _) => vec![],
        (QuestionState::Running, QuestionKind::Approval) => vec![&claim],
        (QuestionState::Done, QuestionKind::Approval) => vec![&claim, &finish],
        (QuestionState::Answered, QuestionKind::Elicitation) => vec![&answer],
        (QuestionState::Declined, _) => vec![&decline],
        (QuestionState::Ended, _) => vec![&end],
        _ => return None,
    };
    let id = stores.add(kind).await;
    for step in steps {
        stores.take(id, step).await;
    }
    Some(id)
}

#[tokio::test]
async fn a_question_is_found_as_it_was_added() {
    over_both(async |stores| {
        let id = stores.add(QuestionKind::Approval).await;
        let found = stores.find(id).await;
        assert_eq!(found.id, id);
        assert_eq!(content(&found.content), content(&question(QuestionKind::Approval, "ada")));
        assert_eq!(found.state, QuestionState::Waiting);
        let lifetime = (found.times.expires - found.times.created).to_std().unwrap();
        assert_eq!(lifetime, EXPIRY);
        let optional = (&found.claimed_by, &found.answer.by, &found.answer.reason);
        assert_eq!(optional, (&None, &None, &None));
        assert!(found.answer.response.is_none());
        assert!(stores.second.find(QuestionId::random()).await.unwrap().is_none());
        // A replica that receives the call of another one again finds its question.
        let again = question(QuestionKind::Approval, "bob");
        let added = stores.second.add(id, &again, EXPIRY).await.unwrap();
        assert_eq!(added, QuestionAdded::AlreadyExists);
        assert_eq!(stores.find(id).await.content.asker.principal, "ada");
    })
    .await;
}

#[tokio::test]
async fn a_step_records_who_answered_and_the_result() {
    over_both(async |stores| {
        let id = stores.add(QuestionKind::Approval).await;
        let claimed = stores.take(id, &QuestionChange::claim("ann", "second")).await;
        assert_eq!(claimed.claimed_by.as_deref(), Some("second"));
        let response = to_raw_value(&json!({ "result": { "n": 1.5 } })).unwrap();
        stores.take(id, &QuestionChange::finish(response)).await;
        let done = stores.find(id).await;
        assert_eq!(done.state, QuestionState::Done);
        assert_eq!(done.answer.by.as_deref(), Some("ann"));
        assert_eq!(done.answer.response.unwrap().get(), r#"{"result":{"n":1.5}}"#);
        assert!(done.position > claimed.position);

        let declined = stores.add(QuestionKind::Elicitation).await;
        stores.take(declined, &QuestionChange::decline("bob", Some("not now".to_owned()))).await;
        assert_eq!(stores.find(declined).await.answer.reason.as_deref(), Some("not now"));
    })
    .await;
}

/// Attack: remote | every step is tried in every state, for example an approval of a call that ran or
/// was declined | a store takes exactly the steps of the table and revives nothing | No repeated execution
#[tokio::test]
async fn each_store_takes_exactly_the_steps_that_the_state_permits() {
    over_both(async |stores| {
        let mut compared = 0;
        for kind in QuestionKind::ALL {
            for state in QuestionState::ALL {
                for change in every_change() {
                    let Some(id) = question_in(stores, kind, state).await else { continue };
                    let expected = state.after(kind, change.step);
                    match stores.second.change(id, &change).await.unwrap() {
                        Changed::Done(question) => assert_eq!(Ok(question.state), expected),
                        Changed::Refused(question) => {
                            assert_eq!(question.state, state);
                            assert!(expected.is_err(), "{kind} {state} {}", change.step);
                        }
                        Changed::Unknown => panic!("the question is lost"),
                    }
                    compared += 1;
                    // Open questions count against the limits.
                    let _ = stores.first.change(id, &QuestionChange::end("over")).await;
                    let [.., finish] = every_change();
                    let _ = stores.first.change(id, &finish).await;
                }
            }
        }
        assert_eq!(compared, 9 * 5);
        let unknown = stores.first.change(QuestionId::random(), &every_change()[0]).await.unwrap();
        assert!(matches!(unknown, Changed::Unknown));
    })
    .await;
}

#[tokio::test]
async fn pages_have_the_newest_steps_first_and_each_question_once() {
    over_both(async |stores| {
        let mut ids = Vec::new();
        for _ in 0..5 {
            ids.push(stores.add(QuestionKind::Approval).await);
        }
        let list = async |list, before, limit| {
            let page = stores.second.list(list, before, limit).await.unwrap();
            let position = page.last().map(|last| last.position);
            (page.iter().map(|one| one.id).collect::<Vec<_>>(), position)
        };
        let (first, position) = list(QuestionList::Open, None, 2).await;
        assert_eq!(first, [ids[4], ids[3]]);
        let (second, position) = list(QuestionList::Open, position, 2).await;
        assert_eq!(second, [ids[2], ids[1]]);
        assert_eq!(list(QuestionList::Open, position, 2).await.0, [ids[0]]);
        assert_eq!(stores.first.count_open().await.unwrap(), 5);

        stores.take(ids[0], &QuestionChange::end("over")).await;
        stores.take(ids[3], &QuestionChange::claim("ann", "second")).await;
        let (open, _) = list(QuestionList::Open, None, 10).await;
        assert_eq!(open, [ids[3], ids[4], ids[2], ids[1]]);
        assert_eq!(list(QuestionList::Final, None, 10).await.0, [ids[0]]);
        assert_eq!(stores.first.count_open().await.unwrap(), 4);
    })
    .await;
}

#[tokio::test]
async fn a_change_wakes_those_who_wait_for_changes_at_every_handle() {
    over_both(async |stores| {
        let seen = stores.second.changes(0).await.unwrap();
        // Without a notice, the wait would take longer.
        let waiting = timeout(Duration::from_secs(3), stores.second.changes(seen));
        let adding = stores.add(QuestionKind::Approval);
        let (number, _) = tokio::join!(waiting, adding);
        let number = number.expect("a notice in time").unwrap();
        assert!(number > seen, "{number} {seen}");
        assert_eq!(stores.first.changes(seen).await.unwrap(), number);
    })
    .await;
}

#[test]
fn every_step_of_a_caller_is_tried() {
    let tried: Vec<_> = every_change().iter().map(|change| change.step).collect();
    let by_time = [QuestionStep::Expire, QuestionStep::Lose];
    assert!(QuestionStep::ALL.iter().all(|step| tried.contains(step) || by_time.contains(step)));
}
