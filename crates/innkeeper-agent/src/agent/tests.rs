//! Random scenarios over all six APIs: every request must be valid for its provider.

mod request_rules;
mod response_bodies;
mod scenario;
mod simulation;
mod timing;

use proptest::prelude::*;

use scenario::scenario_step;
use simulation::Simulation;

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    /// Proves: G53
    #[test]
    fn whatever_happens_the_conversation_goes_on_and_every_wire_takes_what_is_sent(
        wire in 0_usize..6,
        calling in 0_usize..3,
        budget in prop_oneof![Just(40_usize), Just(400), Just(1500), Just(100_000)],
        summarizes in any::<bool>(),
        course in prop::collection::vec(scenario_step(), 1..7),
    ) {
        let world = Simulation::new(wire, calling, budget, summarizes);
        let faults = world.run(&course);
        prop_assert!(faults.is_empty(), "{faults:#?}");
    }
}

/// The generated scenarios reach every API and every outcome.
#[test]
fn generated_scenarios_cover_every_api_and_every_outcome() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut coverage = simulation::Coverage::default();
    for seed in 0..300 {
        let course =
            prop::collection::vec(scenario_step(), 1..7).new_tree(&mut runner).unwrap().current();
        let world = Simulation::new(seed % 6, seed / 6 % 3, 400, seed % 2 == 0);
        assert_eq!(world.run(&course), Vec::<String>::new());
        coverage.merge(&world.take_coverage());
    }
    assert!(simulation::is_covered(&coverage), "{coverage:?}");
}
