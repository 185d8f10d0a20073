// What every command that runs cases shares: its options and what they mean.
#pragma once

#include <atomic>
#include <boost/program_options.hpp>

#include "core/run/run.h"
#include "tools/assay/command.h"

namespace assay::cli {

// Adds the options that choose cases, goldens, engine, backend, limits and the output folder; "path" is for positional
// words, which `paths` describes. Options of one command's own are added by that command.
void add_run_options(boost::program_options::options_description* options,
                     const char* paths = "case folders, or folders of cases (default: .)");

// What `values` ask for. Discovers the cases, reads the process environment, and names a new folder below assay-out/
// when --output is not given. `command` is recorded: {"assay", "run", ...}. Options that the command does not have
// keep their default. Fails with kInvalid or kNotFound, one line naming the option or the path.
Result<run::RunOptions> make_run_options(const boost::program_options::variables_map& values, const Words& command);

// The same for cases that are known already; "path" of `values` is not looked at.
Result<run::RunOptions> make_run_options(const boost::program_options::variables_map& values, const Words& command,
                                         std::vector<TestCase> cases);

// Adds the options that say what a run prints and which reports it writes, "strict" among them.
void add_report_options(boost::program_options::options_description* options);

// Runs, prints and writes reports as `values` ask for; returns the exit code. `options` come from make_run_options().
int run_and_report(const boost::program_options::variables_map& values, run::RunOptions options);

// Turns true once SIGINT, SIGTERM or SIGHUP arrived; the first call installs the handlers. For RunOptions::cancel. From
// then on a console that nobody reads any more (`assay run | head`) costs lines, and not the run.
const std::atomic<bool>* cancel_on_signals();

}  // namespace assay::cli
