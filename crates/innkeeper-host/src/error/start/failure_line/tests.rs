//! The selected line of the output of real programs.

use super::failure_line;

#[track_caller]
fn assert_line(stderr: &str, expected: &str) {
    assert_eq!(failure_line(stderr).as_deref(), Some(expected));
}

#[test]
fn the_error_of_a_node_server_is_selected_without_its_stack_and_npm_warnings() {
    assert_line(
        "npm warn Unknown user config \"nodedir\". This will stop working in the next major version of npm.\n\
         Error: BRAVE_API_KEY environment variable is required\n",
        "Error: BRAVE_API_KEY environment variable is required",
    );
    assert_line(
        "file:///srv/t.mjs:1\n\
         function f(){ const k = process.env.FOO_KEY; if(!k) throw new Error(\"FOO_KEY is not set\"); }\n\
         \x20                                                         ^\n\n\
         Error: FOO_KEY is not set\n\
         \x20   at f (file:///srv/t.mjs:1:59)\n\
         \x20   at ModuleJob.run (node:internal/modules/esm/module_job:325:25)\n\n\
         Node.js v20.20.2\n",
        "Error: FOO_KEY is not set",
    );
    assert_line(
        "node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\n\
         Error: Cannot find module '/srv/nothere.mjs'\n\
         \x20   at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)\n\
         \x20   at node:internal/main/run_main_module:28:49 {\n\
         \x20 code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v20.20.2\n",
        "Error: Cannot find module '/srv/nothere.mjs'",
    );
    assert_line(
        "node:internal/process/esm_loader:34\n      internalBinding('errors').triggerUncaughtException(\n\
         \x20     ^\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/a.js\n\
         \x20   at new NodeError (node:internal/errors:405:5) {\n  code: 'ERR_MODULE_NOT_FOUND'\n}\n",
        "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/a.js",
    );
    assert_line(
        "/srv/t.js:1\nthrow 'no licence'\n^\nno licence\n\
         (Use `node --trace-uncaught ...` to show where the exception was thrown)\n\nNode.js v20.20.2\n",
        "no licence",
    );
}

#[test]
fn the_last_line_of_a_python_traceback_is_selected() {
    assert_line(
        "Traceback (most recent call last):\n  File \"<string>\", line 5, in <module>\n\
         \x20 File \"<frozen os>\", line 679, in __getitem__\nKeyError: 'MY_API_KEY'\n",
        "KeyError: 'MY_API_KEY'",
    );
    assert_line(
        "Traceback (most recent call last):\n  File \"<string>\", line 5, in <module>\n\n\
         KeyError: 'MY_API_KEY'\nThe server has ended.\n",
        "KeyError: 'MY_API_KEY'",
    );
    assert_line(
        "INFO starting\n  + Exception Group Traceback (most recent call last):\n\
         \x20 |   File \"/srv/a.py\", line 3, in <module>\n\
         \x20 | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n\
         \x20 +-+---------------- 1 ----------------\n\
         \x20   | Traceback (most recent call last):\n\
         \x20   |   File \"/srv/a.py\", line 9, in run\n\
         \x20   | ValueError: no such database\n\
         \x20   +------------------------------------\n",
        "ValueError: no such database",
    );
    assert_line(
        "usage: server [-h] --db DB\nserver: error: the following arguments are required: --db\n",
        "server: error: the following arguments are required: --db",
    );
}

#[test]
fn the_message_of_a_panic_is_selected() {
    assert_line(
        "thread 'main' panicked at src/main.rs:5:10:\n\
         called `Option::unwrap()` on a `None` value\n\
         note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
        "called `Option::unwrap()` on a `None` value",
    );
    assert_line(
        "thread 'main' panicked at 'no key', src/main.rs:5:10\nstack backtrace:\n   0: std::panicking\n",
        "'no key', src/main.rs:5:10",
    );
    assert_line(
        "panic: open /srv/a: no such file\n\ngoroutine 1 [running]:\nmain.main()\n\t/srv/main.go:4 +0x1d\n",
        "panic: open /srv/a: no such file",
    );
}

#[test]
fn the_npm_line_that_names_the_problem_is_selected() {
    assert_line(
        "npm warn Unknown user config \"nodedir\".\nnpm error code E404\n\
         npm error 404 Not Found - GET https://registry.example/@scope%2fserver\nnpm error 404\n\
         npm error 404  The requested resource '@scope/server@*' could not be found or you do not have permission to access it.\n\
         npm error 404\nnpm error 404 Note that you can also install from a\n\
         npm error 404 tarball, folder, http url, or git url.\n\
         npm error A complete log of this run can be found in: /cache/_logs/2026-11-23T17_41_48_141Z-debug-0.log\n",
        "The requested resource '@scope/server@*' could not be found or you do not have permission to access it.",
    );
    assert_line(
        "npm ERR! code ETARGET\n\
         npm ERR! notarget No matching version found for @scope/server@99.9.9.\n\
         npm ERR! notarget In most cases you or one of your dependencies are requesting a package version that doesn't exist.\n",
        "No matching version found for @scope/server@99.9.9.",
    );
    assert_line(
        "npm error code 1\nnpm error path /cache/_npx/1/node_modules/puppeteer\nnpm error command failed\n\
         npm error command sh -c node install.mjs\n\
         npm error Chrome (131.0.1) download failed\n\
         npm error ERROR: Failed to set up chrome v131.0.1! Set \"PUPPETEER_SKIP_DOWNLOAD\" env variable to skip download.\n\
         npm error     at async file:///cache/x.js:1:2\n\
         npm error A complete log of this run can be found in: /cache/_logs/x.log\n",
        "ERROR: Failed to set up chrome v131.0.1! Set \"PUPPETEER_SKIP_DOWNLOAD\" env variable to skip download.",
    );
    // npm reports the failure of a script, and the script's own error stands before.
    assert_line(
        "Error: no licence\n    at main (/srv/a.js:1:1)\nnpm error Lifecycle script `start` failed with error:\n\
         npm error code 1\nnpm error path /srv\nnpm error command failed\nnpm error command sh -c node a.js\n",
        "Error: no licence",
    );
}

#[test]
fn the_innermost_cause_of_uv_is_selected() {
    assert_line(
        "error: No solution found when resolving tool dependencies\n\
         \x20 cause: Because mcp-x was not found in the package registry and you require mcp-x, we can conclude that your requirements are unsatisfiable.\n",
        "No solution found when resolving tool dependencies: Because mcp-x was not found in the package registry and you require mcp-x, we can conclude that your requirements are unsatisfiable.",
    );
    assert_line(
        "  × No solution found when resolving tool dependencies:\n\
         \x20 ╰─▶ Because mcp-x was not found in the package registry, it failed.\n",
        "No solution found when resolving tool dependencies: Because mcp-x was not found in the package registry, it failed.",
    );
    assert_line(
        "error: Failed to fetch: `https://registry.example/simple/mcp-x/`\n  Caused by: Request failed after 3 retries\n\
         \x20 Caused by: client error (Connect)\n  Caused by: invalid peer certificate: UnknownIssuer\n",
        "Failed to fetch: `https://registry.example/simple/mcp-x/`: invalid peer certificate: UnknownIssuer",
    );
    assert_line(
        "Downloading cryptography (4.5MiB)\n Downloaded cryptography\nInstalled 31 packages in 55ms\nno time zone\n",
        "no time zone",
    );
    assert_line(
        "Installed 1 package in 1ms\nPackage `six` does not provide any executables.\n",
        "Package `six` does not provide any executables.",
    );
}

#[test]
fn without_an_error_the_last_line_with_words_is_selected() {
    assert_line(
        "Usage: server DIR\n\nAt least one directory is needed\n  1. x\n",
        "At least one directory is needed",
    );
    assert_line("\n  only this\n}\n", "only this");
    assert_line(
        "2026-11-23 10:00:00 ERROR db: gone\nINFO bye\n",
        "2026-11-23 10:00:00 ERROR db: gone",
    );
    assert_line(
        "error: the following required arguments were not provided:\n  <DIR>\n\nUsage: x <DIR>\n\nFor more information, try '--help'.\n",
        "the following required arguments were not provided: <DIR>",
    );
    assert_eq!(failure_line(""), None);
    assert_eq!(failure_line("\n   at x (y)\nnpm warn z\nNode.js v20.20.2\n"), None);
}

#[test]
fn a_long_line_is_cut() {
    let line = failure_line(&"é".repeat(400)).unwrap();
    assert_eq!(line.chars().count(), 301);
    assert!(line.ends_with('…'));
    assert_line(&"é".repeat(300), &"é".repeat(300));
}

#[test]
fn an_error_of_npm_is_its_first_text_that_is_neither_empty_nor_indented_nor_a_detail() {
    for before in ["npm error", "npm error   in a frame", "npm error 404", "npm error code E404"] {
        assert_line(&format!("{before}\nnpm error stopped by a signal\n"), "stopped by a signal");
    }
}
