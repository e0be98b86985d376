//! The limits of the number of questions.

use innkeeper_gateway::pending_questions::store::{
    MAX_FINAL_QUESTIONS, MAX_OPEN_PER_PRINCIPAL, MAX_OPEN_QUESTIONS, MAX_PAGE, QuestionAdded,
    QuestionChange, QuestionList,
};
use innkeeper_gateway::pending_questions::{QuestionId, QuestionKind};

use super::stores::{EXPIRY, Stores, over_both, question};

async fn try_to_add(stores: &Stores, principal: &str) -> QuestionAdded {
    let question = question(QuestionKind::Approval, principal);
    stores.second.add(QuestionId::random(), &question, EXPIRY).await.unwrap()
}

/// Attack: remote | a client calls a tool that needs an approval again and again | the client has a
/// maximum of open questions, and other clients still have theirs | No unbounded memory
#[tokio::test]
async fn one_principal_and_all_together_have_a_maximum_of_open_questions() {
    over_both(async |stores| {
        let mut ids = Vec::new();
        for _ in 0..MAX_OPEN_PER_PRINCIPAL {
            ids.push(stores.add_of(QuestionKind::Approval, "ada").await);
        }
        assert_eq!(try_to_add(stores, "ada").await, QuestionAdded::PrincipalLimit);
        assert_eq!(try_to_add(stores, "bob").await, QuestionAdded::Added);
        // A question with a final state makes room.
        stores.take(ids[0], &QuestionChange::decline("ann", None)).await;
        assert_eq!(try_to_add(stores, "ada").await, QuestionAdded::Added);
        // The local user is alone, and has everything that is left.
        for _ in MAX_OPEN_PER_PRINCIPAL + 1..MAX_OPEN_QUESTIONS {
            assert_eq!(try_to_add(stores, "local").await, QuestionAdded::Added);
        }
        assert_eq!(try_to_add(stores, "local").await, QuestionAdded::TotalLimit);
        assert_eq!(try_to_add(stores, "cid").await, QuestionAdded::TotalLimit);
        let page = stores.first.list(QuestionList::Open, None, usize::MAX).await.unwrap();
        assert_eq!(page.len(), MAX_PAGE);
    })
    .await;
}

#[tokio::test]
async fn the_oldest_final_questions_make_room() {
    over_both(async |stores| {
        let mut ids = Vec::new();
        for _ in 0..=MAX_FINAL_QUESTIONS {
            let id = stores.add(QuestionKind::Approval).await;
            stores.take(id, &QuestionChange::decline("ann", None)).await;
            ids.push(id);
        }
        assert!(stores.second.find(ids[0]).await.unwrap().is_none());
        assert!(stores.second.find(ids[1]).await.unwrap().is_some());
    })
    .await;
}

/// Attack: remote | a client ends so many questions of its own that the store is full | the approved
/// question of another client stays, and its call gets its result | Isolation
#[tokio::test]
async fn a_principal_displaces_only_its_own_final_questions() {
    over_both(async |stores| {
        let bob = stores.add_of(QuestionKind::Approval, "bob").await;
        stores.take(bob, &QuestionChange::decline("ann", None)).await;
        let mut ids = Vec::new();
        for _ in 0..MAX_FINAL_QUESTIONS {
            let id = stores.add_of(QuestionKind::Approval, "ada").await;
            stores.take(id, &QuestionChange::decline("ann", None)).await;
            ids.push(id);
        }
        assert!(stores.second.find(bob).await.unwrap().is_some());
        assert!(stores.second.find(ids[0]).await.unwrap().is_none());
        assert!(stores.second.find(ids[1]).await.unwrap().is_some());
    })
    .await;
}
