// assay run --resume RUN, assay recipe run --resume RUN: the options of the run that is gone on with.
#pragma once

#include <boost/program_options.hpp>
#include <vector>

#include "assay/status.h"
#include "assay/verdict.h"
#include "tools/assay/command.h"

namespace assay::cli {

// `values` with everything that they leave open as RUN's journal has it; "output" is RUN. The current folder becomes
// the one that RUN was started in; paths among `values` keep their meaning. `command`: {"run"} or {"recipe", "run"}.
// Fails with one line where RUN is no run of that command or wrote nothing down, or where paths, --output, --shard or
// --durations are given that are not RUN's own; other options that differ are found by run().
Result<boost::program_options::variables_map> resume_values(
    const boost::program_options::options_description& description, boost::program_options::variables_map values,
    const Words& command);

// --rerun: names of verdicts in any letters, joined by commas; "failed" stands for all that do not pass.
Result<std::vector<Verdict>> parse_rerun(const std::string& text, bool strict);

}  // namespace assay::cli
