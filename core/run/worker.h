// The body of assay-worker: one load, then the cases of its plan one after the other.
#pragma once

#include <filesystem>
#include <string>

namespace assay::run {

// Exit code of a worker that could not write down what it had to report: the machine's fault, whatever the case did.
inline constexpr int kCannotReport = 121;

// Reads the plan, writes events (events.h) to `events` and runs the cases. Returns the exit code of the process: 0 when
// every case got its verdict, whatever it is; 2 when the plan or the event file cannot be used, kCannotReport when an
// event cannot be appended (said on stderr). `secrets`: value of kSecretsVariable (secrets.h), "" where it is not set.
// Takes stdout and stderr of the process into its hands: they go to engine.log while a case runs.
int run_worker(const std::filesystem::path& plan, const std::filesystem::path& events, const std::string& secrets);

}  // namespace assay::run
