// Options of `run` and `recipe run` that say how much of the work is done here, and how it is judged: --metamorphic,
// --shard with --durations, --resume with --rerun.
#pragma once

#include <boost/program_options.hpp>

#include "assay/status.h"
#include "core/run/run.h"
#include "tools/assay/command.h"

namespace assay::cli {

void add_part_options(boost::program_options::options_description* options);

// `values`, with --resume those of the run that is gone on with (resume_options.h). `command`: the words between
// "assay" and the first option, {"run"} or {"recipe", "run"}. Fails with one line where options do not go together.
Result<boost::program_options::variables_map> with_parts(const boost::program_options::options_description& options,
                                                         boost::program_options::variables_map values,
                                                         const Words& command);

// Puts them into `options`, which come from make_run_options(). Reads the files of --durations. Fails with one line.
Status take_parts(const boost::program_options::variables_map& values, run::RunOptions* options);

}  // namespace assay::cli
