//! Each error with the test that brings it about: a variant without one does not compile, and a test
//! that is not there fails this one.

use std::path::Path;

use super::*;
use crate::{AuthFault, LockError, ReloadError};

/// The variants of one error, each with the place and name of a test.
type Proofs = (&'static str, Vec<(&'static str, [&'static str; 2])>);

macro_rules! proofs {
    ($error:ident { $($variant:ident => $file:literal $test:ident,)+ }) => {{
        // Only to have the compiler see that none is left out.
        let _: fn(&$error) = |error| match error {
            $($error::$variant { .. } => {})+
        };
        let proofs = vec![$((stringify!($variant), [$file, stringify!($test)])),+];
        (stringify!($error), proofs)
    }};
}

fn of_calls() -> [Proofs; 3] {
    [
        proofs!(CallError {
            Routing => "tests/it/calls/route.rs"
                a_bare_name_is_refused_with_its_only_candidate,
            Validation => "tests/it/calls/prompt.rs"
                a_missing_required_argument_and_one_that_is_no_text_are_refused_unsent,
            Unavailable => "tests/it/faults/process.rs"
                a_call_learns_within_250_milliseconds_that_its_server_is_gone,
            Timeout => "tests/it/calls/deadline.rs"
                prompts_and_resources_have_the_same_times,
            Protocol => "tests/it/faults/bytes.rs"
                a_malformed_answer_with_a_readable_id_is_an_error_within_250_milliseconds,
            Server => "tests/it/calls/answer.rs"
                an_error_object_comes_with_its_code_message_and_data,
            Withheld => "tests/it/guard.rs"
                a_result_is_told_or_withheld_by_the_mode_and_the_call_has_run_once,
        }),
        proofs!(RoutingError {
            UnknownServer => "tests/it/calls/route.rs"
                a_bare_name_is_refused_with_its_only_candidate,
            UnknownItem => "tests/it/calls/route.rs"
                a_tool_kept_out_by_the_configuration_cannot_be_called_and_the_status_says_why,
            ToolChanged => "tests/it/pins.rs"
                a_changed_and_an_unknown_tool_are_refused_and_the_others_can_be_called,
            ItemRefused => "tests/it/guard/contents.rs"
                definitions_of_prompts_and_resources_are_told_or_kept_out_by_the_mode,
            UnknownResource => "tests/it/calls/resource.rs"
                a_uri_nobody_offers_is_a_routing_error_with_a_suggestion,
            Ambiguous => "tests/it/calls/resource.rs"
                a_uri_of_two_servers_is_ambiguous_until_the_server_is_named,
        }),
        proofs!(Lost {
            Exited => "tests/it/calls/lost.rs"
                a_crash_by_a_signal_is_told_with_the_signal,
            ClosedOutput => "tests/it/calls/lost.rs"
                a_server_that_closes_its_output_is_lost_and_its_process_killed,
            ClosedInput => "tests/it/calls/lost.rs"
                a_server_that_closes_its_input_is_lost_and_its_process_killed,
            Silent => "tests/it/health.rs"
                a_call_without_an_answer_in_time_takes_its_server_out_and_no_other,
            NotStarted => "tests/it/health.rs"
                a_restart_that_fails_leaves_the_server_unavailable_with_the_reason,
            Starting => "tests/it/health.rs"
                a_server_is_starting_then_ready_then_unavailable_and_at_the_end_shut_down,
            Shutdown => "tests/it/calls/lost.rs"
                calls_under_way_at_a_shutdown_end_with_it,
            ResultsNotTaken => "src/server/session/tests.rs"
                results_nobody_takes_hold_up_reading_and_not_the_memory,
            Noise => "src/server/session/tests.rs"
                a_thousand_useless_lines_in_a_row_are_put_up_with_and_the_next_ends_the_session,
            Unreachable => "tests/it/remote/again.rs"
                a_server_that_cannot_be_reached_is_unavailable_and_nothing_has_run,
            Broken => "tests/it/remote/sse.rs"
                a_stream_that_breaks_ends_every_call_at_once_and_no_neighbour,
            Refused => "tests/it/remote/origin.rs"
                a_redirect_in_the_handshake_is_not_followed_either,
            NotSignedIn => "tests/it/auth.rs"
                without_a_way_to_reach_a_person_the_error_says_what_to_do_and_nothing_is_asked,
            Busy => "tests/it/remote/again.rs"
                a_server_that_stays_busy_is_unavailable_after_the_attempts_it_is_given,
        }),
    ]
}

fn of_answers() -> Proofs {
    proofs!(ProtocolFault {
        Malformed => "tests/it/faults/bytes.rs"
            a_malformed_answer_with_a_readable_id_is_an_error_within_250_milliseconds,
        Shape => "src/server/connect/tests.rs"
            a_wrong_typed_answer_is_a_protocol_error_that_points_at_the_fault,
        TooLarge => "tests/it/remote/limits.rs"
            an_answer_over_the_limit_is_a_protocol_error_and_the_next_one_is_given,
        Revision => "src/server/connect/tests.rs"
            an_unknown_revision_is_refused_naming_both_sides,
        Unwritable => "src/server/session/tests.rs"
            a_request_over_the_write_limit_is_refused_and_the_next_one_goes_out,
        EndlessRounds => "tests/it/rounds.rs"
            a_server_that_asks_for_ever_is_given_eight_rounds,
        InputRefused => "tests/it/rounds.rs"
            without_anybody_who_answers_the_call_fails_and_says_what_was_asked_for,
        NotFinal => "src/server/rounds.rs"
            a_result_of_a_kind_that_is_not_known_is_none,
        Status => "tests/it/remote/odd.rs"
            a_refusal_without_json_is_a_protocol_error_that_shows_how_it_begins,
        ContentType => "tests/it/remote/odd.rs"
            a_page_for_people_or_another_type_of_content_is_a_protocol_error,
        NoAnswer => "tests/it/remote/odd.rs"
            json_without_the_answer_is_a_protocol_error,
        NoTaskResult => "src/server/deferred/tests.rs"
            a_task_that_ended_without_a_result_says_how,
        TaskExpired => "tests/it/tasks.rs"
            a_forgotten_task_is_an_error_and_after_its_time_an_expired_one,
    })
}

fn of_starts() -> [Proofs; 5] {
    [
        proofs!(StartError {
            Config => "tests/it/start.rs"
                every_missing_program_is_named_before_any_server_is_started,
            Servers => "tests/it/order.rs"
                a_chain_of_slow_servers_fails_at_the_limit_for_all_together,
        }),
        proofs!(RestartError {
            Unknown => "tests/it/health.rs"
                a_restart_that_fails_leaves_the_server_unavailable_with_the_reason,
            Failed => "tests/it/health.rs"
                a_restart_that_fails_leaves_the_server_unavailable_with_the_reason,
            Shutdown => "tests/it/health.rs"
                a_host_that_is_shut_down_during_a_restart_leaves_nothing_behind,
        }),
        proofs!(StartReason {
            Spawn => "tests/it/limits.rs"
                without_a_shim_limits_are_told_to_have_no_effect_and_a_sandbox_fails_the_start,
            Exited => "tests/it/failure.rs"
                an_exit_during_the_start_is_told_at_once_when_no_launch_can_follow,
            TimedOut => "tests/it/failure.rs"
                one_server_that_does_not_answer_in_time_stops_all,
            Call => "tests/it/failure.rs"
                a_failure_names_the_server_how_far_it_came_and_its_last_words,
            Dependency => "tests/it/failure.rs"
                a_server_that_is_not_required_may_fail_and_the_others_run,
            StartLimit => "tests/it/install.rs"
                an_installation_does_not_outlast_the_limit_for_all_servers,
        }),
        proofs!(ReloadError {
            Config => "tests/it/reload.rs"
                a_file_that_cannot_be_used_changes_nothing_and_all_its_problems_are_told,
            NoFiles => "tests/it/reload.rs"
                a_configuration_without_files_is_replaced_by_a_given_one,
            Shutdown => "tests/it/reload.rs"
                a_file_that_cannot_be_used_changes_nothing_and_all_its_problems_are_told,
        }),
        proofs!(LockError {
            Unreadable => "src/lock/tests/form.rs"
                what_cannot_be_read_is_told_with_the_file,
            TooLarge => "src/lock/tests/form.rs"
                a_file_at_the_limit_is_read_and_one_past_it_is_not,
            Malformed => "src/lock/tests/form.rs"
                what_is_no_lock_is_refused_with_file_and_line,
            Version => "src/lock/tests/form.rs"
                what_is_no_lock_is_refused_with_file_and_line,
            Misfit => "src/lock/tests/form.rs"
                what_is_no_lock_is_refused_with_file_and_line,
        }),
    ]
}

fn of_signing_in() -> Proofs {
    proofs!(AuthFault {
        Nobody => "tests/it/auth.rs"
            without_a_way_to_reach_a_person_the_error_says_what_to_do_and_nothing_is_asked,
        NoWay => "tests/it/auth/faults.rs"
            a_server_that_names_nobody_who_gives_tokens_is_told_so,
        Address => "tests/it/auth.rs"
            a_hostile_pointer_or_page_ends_the_sign_in_before_anything_is_asked_there,
        Discovery => "tests/it/auth.rs"
            a_hostile_pointer_or_page_ends_the_sign_in_before_anything_is_asked_there,
        Registration => "tests/it/auth/faults.rs"
            an_authorization_server_that_knows_no_clients_or_gives_no_token_is_told_so,
        OtherIssuer => "tests/it/auth/secrets.rs"
            a_clients_secret_goes_to_no_other_authorization_server_than_the_first_or_the_one_named,
        Declined => "tests/it/auth.rs"
            a_person_who_says_no_is_not_asked_again,
        NotAsked => "tests/it/auth/faults.rs"
            a_person_who_cannot_be_asked_is_told_with_the_reason,
        Late => "tests/it/auth/start.rs"
            a_restart_ends_when_it_was_promised_to_though_somebody_is_signing_in,
        NoToken => "tests/it/auth/faults.rs"
            an_authorization_server_that_knows_no_clients_or_gives_no_token_is_told_so,
        Identity => "tests/it/auth/enterprise.rs"
            an_assertion_for_another_resource_is_not_shown_to_anybody,
        Scope => "tests/it/auth.rs"
            a_call_that_wants_a_scope_more_has_it_asked_for_once,
        Refused => "tests/it/auth/faults.rs"
            a_server_that_takes_no_token_is_asked_a_few_times_and_told_so,
        Helper => "tests/it/auth/helper.rs"
            a_program_that_fails_or_prints_what_is_not_its_to_print_is_told_without_its_words,
        Other => "tests/it/auth/faults.rs"
            an_applications_own_way_says_why_it_has_no_token,
        Shutdown => "tests/it/auth/faults.rs"
            a_shutdown_ends_the_wait_for_a_person,
    })
}

/// Proves: TR7.5
#[test]
fn every_error_has_a_test_that_brings_it_about() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = of_calls().into_iter().chain(of_starts()).chain([of_answers(), of_signing_in()]);
    for (error, proofs) in all {
        for (variant, [file, test]) in proofs {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            let is_there = text.contains(&format!("fn {test}()"));
            assert!(is_there, "`{error}::{variant}` has no test `{test}` in {file}");
        }
    }
}
