//! Maps each error variant to the test that causes it.
//!
//! A variant without a test does not compile, and a missing test or a missing enum fails this test.

use std::fs;
use std::path::Path;

use innkeeper_process::SpawnError;

use super::*;
use crate::{HttpClientError, LockError, ReloadError, StructuredContentError};

/// The variants of one error type, each with the path and name of a test.
type ErrorTests = (&'static str, Vec<(&'static str, [&'static str; 2])>);

macro_rules! proofs {
    ($error:ident { $($($variant:ident)|+ => $file:literal $test:ident,)+ }) => {{
        // The compiler checks that no variant is missing.
        let _: fn(&$error) = |error| match error {
            $($(| $error::$variant { .. })+ => {})+
        };
        let proofs = vec![$($((stringify!($variant), [$file, stringify!($test)])),+),+];
        (stringify!($error), proofs)
    }};
}

fn call_errors() -> [ErrorTests; 5] {
    [
        proofs!(CallErrorKind {
            Routing | Validation | Unavailable | Timeout | Protocol | Server | Withheld
                => "src/error/tests.rs"
                every_failed_call_names_its_server_its_class_and_the_reason,
        }),
        proofs!(StructuredContentError {
            Missing | Shape => "src/call/tests.rs"
                a_result_without_structured_content_or_of_another_shape_says_which,
        }),
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
            Server => "tests/it/calls/response.rs"
                an_error_object_comes_with_its_code_message_and_data,
            Withheld => "tests/it/guard.rs"
                a_result_is_reported_or_withheld_by_the_mode_and_the_call_has_run_once,
        }),
        proofs!(RoutingError {
            UnknownServer => "tests/it/calls/route.rs"
                a_bare_name_is_refused_with_its_only_candidate,
            UnknownItem => "tests/it/calls/route.rs"
                a_tool_kept_out_by_the_configuration_cannot_be_called_and_the_status_says_why,
            ToolWithheld => "tests/it/pins.rs"
                a_changed_and_an_unknown_tool_are_refused_and_the_others_can_be_called,
            ItemWithheld => "tests/it/guard/contents.rs"
                definitions_of_prompts_and_resources_are_reported_or_excluded_by_the_mode,
            UnusableItem => "tests/it/calls/route.rs"
                a_tool_without_a_usable_schema_is_excluded_by_name_and_a_call_says_why,
            UnknownResource => "tests/it/calls/resource.rs"
                a_uri_nobody_offers_is_a_routing_error_with_a_suggestion,
            Ambiguous => "tests/it/calls/resource.rs"
                a_uri_of_two_servers_is_ambiguous_until_the_server_is_named,
        }),
        proofs!(UnavailableReason {
            Exited => "tests/it/calls/server_loss.rs"
                a_crash_by_a_signal_is_reported_with_the_signal,
            ClosedOutput => "tests/it/calls/server_loss.rs"
                a_server_that_closes_its_output_is_lost_and_its_process_killed,
            ClosedInput => "tests/it/calls/server_loss.rs"
                a_server_that_closes_its_input_is_lost_and_its_process_killed,
            Unresponsive => "tests/it/health.rs"
                a_call_without_an_answer_in_time_takes_its_server_out_and_no_other,
            NotStarted => "tests/it/health.rs"
                a_restart_that_fails_leaves_the_server_unavailable_with_the_reason,
            InvalidConfiguration => "tests/it/partial.rs"
                a_server_with_an_invalid_entry_is_unavailable_and_the_others_are_ready,
            Starting => "tests/it/health.rs"
                a_server_is_starting_then_ready_then_unavailable_and_at_the_end_shut_down,
            Shutdown => "tests/it/calls/server_loss.rs"
                calls_under_way_at_a_shutdown_end_with_it,
            ResultBufferFull => "src/session/tests.rs"
                a_large_result_is_refused_if_nobody_takes_the_earlier_ones_for_30_seconds,
            InvalidMessages => "src/session/tests.rs"
                a_thousand_invalid_lines_in_a_row_are_tolerated_and_the_next_ends_the_session,
            Unreachable => "tests/it/remote/retry.rs"
                a_server_that_cannot_be_reached_is_unavailable_and_nothing_has_run,
            ConnectionLost => "tests/it/remote/sse.rs"
                a_stream_that_breaks_ends_every_call_at_once_and_no_neighbour,
            ConnectionRejected => "tests/it/remote/origin.rs"
                a_redirect_in_the_handshake_is_not_followed_either,
            Unauthorized => "tests/it/auth.rs"
                without_a_way_to_reach_a_person_the_error_says_what_to_do_and_nothing_is_asked,
            Busy => "tests/it/remote/retry.rs"
                a_server_that_stays_busy_is_unavailable_after_the_attempts_it_is_given,
            NotSent => "tests/it/remote_client.rs"
                a_request_that_the_application_does_not_permit_is_not_sent,
        }),
    ]
}

fn protocol_errors() -> ErrorTests {
    proofs!(ProtocolError {
        Malformed => "src/session/tests.rs"
            characters_split_across_reads_arrive_whole_and_invalid_bytes_fail_one_call_only,
        InvalidResult => "src/connection/handshake/tests.rs"
            a_wrongly_typed_response_is_a_protocol_error_that_points_at_the_member,
        TooLarge => "tests/it/remote/limits.rs"
            an_answer_over_the_limit_is_a_protocol_error_and_the_next_one_is_given,
        UnsupportedRevision => "src/connection/handshake/tests.rs"
            an_unknown_revision_is_refused_naming_both_sides,
        Serialization => "src/session/tests.rs"
            a_request_that_cannot_be_serialized_fails_and_the_next_request_is_sent_whole,
        TooManyRoundTrips => "tests/it/round_trips.rs"
            a_server_that_asks_for_ever_is_given_eight_round_trips,
        InputDenied => "tests/it/round_trips.rs"
            without_anybody_who_answers_the_call_fails_and_says_what_was_asked_for,
        UnexpectedResultType => "src/connection/result_type.rs"
            a_result_of_an_unknown_type_is_rejected,
        HttpStatus => "tests/it/remote/malformed.rs"
            a_refusal_without_json_is_a_protocol_error_that_shows_how_it_begins,
        UnexpectedContentType => "tests/it/remote/malformed.rs"
            an_html_page_or_another_content_type_is_a_protocol_error,
        MissingResponse => "tests/it/remote/malformed.rs"
            json_without_the_answer_is_a_protocol_error,
        NoTaskResult => "src/connection/task_poll/tests.rs"
            a_task_that_ended_without_a_result_says_how,
        TaskExpired => "tests/it/tasks.rs"
            a_forgotten_task_is_an_error_and_after_its_time_an_expired_one,
    })
}

/// The reasons for which a server has no process, no stream or no connection.
fn launch_errors() -> [ErrorTests; 4] {
    [
        proofs!(HttpClientError {
            Tls => "../innkeeper-cli/tests/it/certificates.rs"
                a_remote_server_is_not_reached_without_the_certificate_of_its_authority,
            Proxy => "src/transport/client.rs"
                an_invalid_proxy_is_reported_with_its_variable,
            Client => "src/transport/client.rs"
                a_client_that_the_library_rejects_is_reported,
        }),
        proofs!(ConnectFailureKind {
            Refused => "tests/it/start.rs"
                a_refused_connection_is_repeated_for_two_seconds_at_most,
            NameNotFound => "tests/it/start.rs"
                a_host_name_without_an_address_fails_the_first_attempt_with_a_hint,
            Certificate => "../innkeeper-cli/tests/it/certificates.rs"
                a_remote_server_is_not_reached_without_the_certificate_of_its_authority,
            Other => "src/transport/http/response_error.rs"
                a_handshake_that_ends_is_a_connection_failure_of_no_special_kind,
        }),
        proofs!(SpawnError {
            NotFound | NoInterpreter | NotExecutable | NotAProgram | TooLarge | WorkingDirectory
                | Other => "../innkeeper-process/src/tests/launch.rs"
                each_reason_for_not_starting_is_told_apart_without_showing_a_path,
            Busy => "../innkeeper-process/src/tests/launch.rs"
                a_program_that_is_being_written_is_told_apart,
            Confinement => "../innkeeper-process/src/tests/confinement.rs"
                a_server_whose_sandbox_cannot_be_had_is_not_started,
            Supervisor => "../innkeeper-process/src/tests/launch.rs"
                a_supervisor_that_is_missing_or_is_none_fails_the_start,
        }),
        proofs!(ConnectorError {
            Failed => "tests/it/in_process/failure.rs"
                a_connector_that_fails_is_retried_and_its_error_names_the_server,
            Panicked => "tests/it/in_process/failure.rs"
                a_connector_that_panics_fails_the_start_and_is_not_retried,
            AlreadyUsed => "tests/it/in_process/lifetime.rs"
                a_stream_is_used_once_and_a_restart_names_the_way_to_restart,
            Missing => "tests/it/in_process/failure.rs"
                a_required_entry_without_a_connector_is_an_error_and_an_optional_entry_a_warning,
        }),
    ]
}

fn start_errors() -> [ErrorTests; 6] {
    [
        proofs!(StartError {
            Config => "tests/it/start.rs"
                every_missing_program_is_named_before_any_server_is_started,
            Servers => "tests/it/order.rs"
                a_chain_of_slow_servers_fails_at_the_limit_for_all_together,
        }),
        proofs!(RestartError {
            UnknownServer | Failed => "tests/it/health.rs"
                a_restart_that_fails_leaves_the_server_unavailable_with_the_reason,
            Shutdown => "tests/it/health.rs"
                a_host_that_is_shut_down_during_a_restart_leaves_nothing_behind,
        }),
        proofs!(StopError {
            UnknownServer => "tests/it/stop_server.rs"
                a_server_is_stopped_by_its_name_while_the_host_runs,
            Shutdown => "tests/it/stop_server.rs"
                a_stop_beside_a_shutdown_leaves_nothing_behind,
        }),
        proofs!(StartFailureReason {
            Spawn => "tests/it/limits.rs"
                without_a_shim_limits_are_reported_as_not_applied_and_a_sandbox_fails_the_start,
            Connector => "tests/it/in_process/failure.rs"
                a_connector_that_fails_is_retried_and_its_error_names_the_server,
            Exited => "tests/it/failure.rs"
                an_exit_during_the_start_is_reported_at_once_when_no_launch_can_follow,
            TimedOut => "tests/it/failure.rs"
                one_server_that_does_not_answer_in_time_stops_all,
            Call => "tests/it/failure.rs"
                a_failure_names_the_server_its_phase_and_its_last_stderr,
            Dependency => "tests/it/partial.rs"
                a_server_with_an_invalid_entry_is_unavailable_and_the_others_are_ready,
            StartTimeout => "tests/it/order.rs"
                a_chain_of_slow_servers_fails_at_the_limit_for_all_together,
        }),
        proofs!(ReloadError {
            Config | Shutdown => "tests/it/reload.rs"
                a_file_that_cannot_be_used_changes_nothing_and_all_its_problems_are_reported,
            NoFiles => "tests/it/reload.rs"
                a_configuration_without_files_is_replaced_by_a_given_one,
        }),
        proofs!(LockError {
            Unreadable => "src/lock/tests/form.rs"
                an_unreadable_lock_is_reported_with_the_file,
            TooLarge => "src/lock/tests/form.rs"
                a_file_at_the_limit_is_read_and_one_past_it_is_not,
            Malformed | UnsupportedVersion | HashMismatch => "src/lock/tests/form.rs"
                an_invalid_lock_is_refused_with_file_and_line,
        }),
    ]
}

fn auth_errors() -> ErrorTests {
    proofs!(AuthErrorKind {
        NoUserAgent => "tests/it/auth.rs"
            without_a_way_to_reach_a_person_the_error_says_what_to_do_and_nothing_is_asked,
        NoAuthorizationServer => "tests/it/auth/faults.rs"
            a_server_that_names_no_authorization_server_is_reported,
        DisallowedAddress | Discovery => "tests/it/auth.rs"
            a_hostile_pointer_or_page_ends_the_sign_in_before_anything_is_asked_there,
        Registration | TokenRequestFailed => "tests/it/auth/faults.rs"
            an_authorization_server_that_knows_no_clients_or_gives_no_token_is_reported,
        IssuerMismatch => "tests/it/auth/secrets.rs"
            a_clients_secret_goes_to_no_other_authorization_server_than_the_first_or_the_one_named,
        Declined => "tests/it/auth.rs"
            a_person_who_says_no_is_not_asked_again,
        UserAgentFailed => "tests/it/auth/faults.rs"
            a_failing_user_agent_is_reported_with_the_reason,
        Timeout => "tests/it/auth/start.rs"
            a_restart_ends_when_it_was_promised_to_though_somebody_is_signing_in,
        IdentityProvider => "tests/it/auth/enterprise.rs"
            an_assertion_for_another_resource_is_not_shown_to_anybody,
        InsufficientScope => "tests/it/auth.rs"
            a_call_that_requires_another_scope_has_it_requested_once,
        TokenRejected => "tests/it/auth/faults.rs"
            a_server_that_takes_no_token_is_asked_a_few_times_and_reported,
        HeadersHelper => "tests/it/auth/helper.rs"
            a_program_that_fails_or_prints_reserved_headers_is_reported_without_its_output,
        Other => "tests/it/auth/faults.rs"
            a_custom_token_provider_says_why_it_has_no_token,
        Shutdown => "src/transport/auth/bearer_auth.rs"
            a_sign_in_runs_from_its_challenge_to_the_end_of_its_task,
    })
}

/// Returns the public enums of errors in the files of a directory.
fn error_enums(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(error_enums(&path));
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let declarations = text.lines().filter_map(|line| line.strip_prefix("pub enum "));
        let enums = declarations.filter_map(|rest| rest.split(' ').next());
        let ends = ["Error", "ErrorKind", "FailureKind", "Reason"];
        let of_errors = enums.filter(|name| ends.iter().any(|end| name.ends_with(end)));
        names.extend(of_errors.map(str::to_owned));
    }
    names
}

/// Proves: TR7.5
#[test]
fn every_error_has_a_test_that_causes_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all: Vec<ErrorTests> = call_errors()
        .into_iter()
        .chain(start_errors())
        .chain(launch_errors())
        .chain([protocol_errors(), auth_errors()])
        .collect();
    for name in error_enums(&root.join("src")) {
        assert!(all.iter().any(|(error, _)| *error == name), "`{name}` has no tests here");
    }
    for (error, proofs) in all {
        for (variant, [file, test]) in proofs {
            let text = fs::read_to_string(root.join(file)).unwrap();
            let is_there = text.contains(&format!("fn {test}()"));
            assert!(is_there, "`{error}::{variant}` has no test `{test}` in {file}");
        }
    }
}
