//! Tests of the permits for concurrent calls.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};
use std::time::Duration;

use super::*;

const TIME: Duration = Duration::from_secs(5);

fn remote(principal: &str) -> Caller {
    let principal = Some(principal.into());
    Caller { principal, has_limited_share: true, ..Caller::default() }
}

fn acquire<'a>(
    permits: &'a CallPermits,
    caller: Option<&'a Caller>,
) -> Pin<Box<dyn Future<Output = Option<RequestPermit<'a>>> + 'a>> {
    Box::pin(permits.acquire(caller, Instant::now() + TIME))
}

fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

/// Takes permits until a call has to wait.
fn take_all<'a>(permits: &'a CallPermits, caller: Option<&'a Caller>) -> Vec<RequestPermit<'a>> {
    std::iter::from_fn(|| ready(acquire(permits, caller)).flatten()).collect()
}

/// Attack: remote | a client keeps every call that it can in flight | other clients find a permit |
/// Isolation
#[tokio::test(start_paused = true)]
async fn a_limited_share_leaves_permits_for_other_principals() {
    for (maximum, shares) in
        [(64, [48, 12, 3, 1]), (8, [6, 1, 1, 0]), (5, [3, 1, 1, 0]), (2, [1, 1, 0, 0])]
    {
        let permits = CallPermits::new(maximum);
        let clients = ["a", "b", "c", "d"].map(remote);
        let held: Vec<_> = clients.iter().map(|one| take_all(&permits, Some(one))).collect();
        let counts: Vec<_> = held.iter().map(Vec::len).collect();
        assert_eq!(counts, shares, "{maximum}");
        drop(held);
        assert_eq!(permits.available(), maximum);
        assert!(permits.table().principals.is_empty(), "nothing stays of clients that left");
    }
}

#[tokio::test(start_paused = true)]
async fn the_application_and_a_whole_share_can_have_all_permits() {
    let whole = Caller { has_limited_share: false, ..remote("a") };
    for caller in [None, Some(&whole)] {
        let permits = CallPermits::new(3);
        assert_eq!(take_all(&permits, caller).len(), 3);
    }
}

/// Attack: remote | a client queues many calls before those of another | the permits go to each client
/// in turn | Isolation
#[tokio::test(start_paused = true)]
async fn principals_with_waiting_calls_take_turns() {
    let permits = CallPermits::new(1);
    let (ann, ben) = (remote("ann"), remote("ben"));
    let mut running = take_all(&permits, Some(&ann));
    let callers = [&ann, &ann, &ann, &ben, &ben];
    let mut waiting: Vec<_> = callers.map(|caller| acquire(&permits, Some(caller))).into();
    for call in &mut waiting {
        assert!(ready(call.as_mut()).is_none());
    }
    let mut order = Vec::new();
    while running.pop().is_some() {
        let granted = waiting.iter_mut().enumerate();
        let next = granted.map(|(index, call)| (index, ready(call.as_mut()).flatten()));
        if let Some((index, Some(permit))) = next.into_iter().find(|(_, permit)| permit.is_some()) {
            assert!(permit.waited);
            order.push(permit.principal.clone().unwrap());
            drop(waiting.remove(index));
            running.push(permit);
        }
    }
    assert_eq!(
        order.iter().map(|name| &**name).collect::<Vec<_>>(),
        ["ann", "ben", "ann", "ben", "ann"]
    );
}

#[tokio::test(start_paused = true)]
async fn the_principal_with_the_fewest_calls_is_next() {
    let permits = CallPermits::new(4);
    let (ann, ben) = (remote("ann"), remote("ben"));
    let mut of_ann = take_all(&permits, Some(&ann));
    let of_application = take_all(&permits, None);
    assert_eq!((of_ann.len(), of_application.len()), (3, 1));
    let mut more = acquire(&permits, None);
    let mut first = acquire(&permits, Some(&ben));
    assert!(ready(more.as_mut()).is_none() && ready(first.as_mut()).is_none());
    let _ = of_ann.pop();
    assert!(ready(more.as_mut()).is_none(), "the application has a call");
    assert!(ready(first.as_mut()).flatten().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_the_deadline_and_without_its_future() {
    let permits = CallPermits::new(1);
    let client = remote("ann");
    let mut held = take_all(&permits, None);
    let started = Instant::now();
    assert!(acquire(&permits, Some(&client)).await.is_none());
    assert_eq!(started.elapsed(), TIME);
    let mut waiting = acquire(&permits, Some(&client));
    assert!(ready(waiting.as_mut()).is_none());
    held.clear();
    assert_eq!(permits.available(), 0, "the waiting call has the permit");
    drop(waiting);
    assert_eq!(permits.available(), 1, "a dropped call returns the permit that it did not use");
    assert!(permits.table().principals.is_empty());
}
