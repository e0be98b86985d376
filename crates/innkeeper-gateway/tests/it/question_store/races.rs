//! Several operators and clients that answer at the same time.

use innkeeper_gateway::pending_questions::store::{Changed, QuestionChange};
use innkeeper_gateway::pending_questions::{Question, QuestionKind};
use tokio::task::JoinSet;

use super::stores::{Stores, every_change};

/// Number of answers at the same time.
const ANSWERS: usize = 8;

/// Lets everybody answer one question over two handles. Returns the winner and what the others saw.
async fn race(stores: &Stores, kind: QuestionKind) -> (Question, Vec<Question>) {
    let id = stores.add(kind).await;
    let mut running = JoinSet::new();
    for number in 0..ANSWERS {
        let store = if number % 2 == 0 { &stores.first } else { &stores.second };
        let store = store.clone();
        running.spawn(async move {
            let by = format!("operator {number}");
            let [claim, answer, decline, ..] = every_change();
            let accept = if kind == QuestionKind::Approval { claim } else { answer };
            let change = if number < ANSWERS / 2 { accept } else { decline };
            store.change(id, &QuestionChange { by: Some(by), ..change }).await.unwrap()
        });
    }
    let (mut winners, mut others) = (Vec::new(), Vec::new());
    for outcome in running.join_all().await {
        match outcome {
            Changed::Done(question) => winners.push(*question),
            Changed::Refused(question) => others.push(*question),
            Changed::Unknown => panic!("the question is lost"),
        }
    }
    assert_eq!(winners.len(), 1, "one answer wins");
    (winners.remove(0), others)
}

/// Attack: remote | many operators answer one question at the same time over two replicas, and some of
/// them approve a call that others decline | one answer wins, and all others learn whose | No repeated
/// execution
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_answers_at_the_same_time_one_wins_and_the_others_learn_whose() {
    for stores in [Stores::memory(), Stores::redis().await] {
        for round in 0..100 {
            let kind = QuestionKind::ALL[round % 2];
            let (winner, others) = race(&stores, kind).await;
            assert_eq!(others.len(), ANSWERS - 1);
            for other in others {
                assert_eq!((other.state, &other.answer.by), (winner.state, &winner.answer.by));
            }
            // Open questions count against the limits.
            let [.., finish] = every_change();
            let _ = stores.first.change(winner.id, &finish).await;
        }
    }
}
