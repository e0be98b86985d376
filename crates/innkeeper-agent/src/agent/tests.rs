//! Whole courses of conversations, made up at random, over all six wires: whatever a model says, what
//! is sent next is valid for each provider.

mod course;
mod drawn;
mod spoken;
mod valid;

use proptest::prelude::*;

use course::World;
use drawn::step;

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    /// Proves: G53
    #[test]
    fn whatever_happens_the_conversation_goes_on_and_every_wire_takes_what_is_sent(
        wire in 0_usize..6,
        calling in 0_usize..3,
        budget in prop_oneof![Just(40_usize), Just(400), Just(100_000)],
        course in prop::collection::vec(step(), 1..7),
    ) {
        let world = World::new(wire, calling, budget);
        let faults = world.go(&course);
        prop_assert!(faults.is_empty(), "{faults:#?}");
    }
}

/// What is above goes through all it is meant to go through.
#[test]
fn the_courses_come_through_every_wire_and_every_end() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut seen = course::Seen::default();
    for round in 0..300 {
        let course = prop::collection::vec(step(), 1..7).new_tree(&mut runner).unwrap().current();
        let world = World::new(round % 6, round / 6 % 3, 400);
        assert_eq!(world.go(&course), Vec::<String>::new());
        seen.add(&world.seen());
    }
    assert!(course::is_covered(&seen), "{seen:?}");
}
