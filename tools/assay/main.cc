#include <algorithm>
#include <iostream>
#include <string_view>

#include "core/command/standard_streams.h"
#include "core/discover/nearest.h"
#include "tools/assay/command.h"
#include "tools/assay/version.h"

namespace {

using assay::cli::Words;

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Words& words);
};

constexpr Command kCommands[] = {
    {"new", "write a new case", assay::cli::new_command},
    {"run", "run cases and judge what the engine says", assay::cli::run_command},
    {"list", "list cases", assay::cli::list_command},
    {"show", "show one case, or a checkpoint, in full", assay::cli::show_command},
    {"ci", "run a case as Megatron-LM's run_ci_test.sh does", assay::cli::ci_command},
    {"compare", "judge a results file against a golden file, without an engine", assay::cli::compare_command},
    {"merge", "make one run out of shards, or of any runs", assay::cli::merge_command},
    {"simulate", "how long a run would take on many workers", assay::cli::simulate_command},
    {"report", "make the reports of a run again from its journal", assay::cli::report_command},
    {"record", "run cases and keep what they say as pending goldens", assay::cli::record_command},
    {"review", "go through pending goldens: accept, reject, skip", assay::cli::review_command},
    {"accept", "let values of a pending golden into the golden", assay::cli::accept_command},
    {"reject", "remove a pending golden", assay::cli::reject_command},
    {"calibrate", "measure how far equal runs of a case are apart", assay::cli::calibrate_command},
    {"golden", "lint: find golden files that cannot do their work", assay::cli::golden_command},
    {"recipe", "list and run the workloads of Megatron-LM's recipes", assay::cli::recipe_command},
    {"tokenize", "text to ids and back", assay::cli::tokenize_command},
    {"plugin", "list, examine, begin and test plugins", assay::cli::plugin_command},
    {"doctor", "explain this machine: plugins, devices, libraries, limits", assay::cli::doctor_command},
    {"bench", "measure decode, prefill and load beside the memory's speed", assay::cli::bench_command},
    {"self-test", "plant faults in an engine and see that each is noticed", assay::cli::self_test_command},
};

void print_help(std::ostream& out) {
  out << "assay " << assay::cli::kVersion << ": does this LLM inference engine still say what it must say?\n\n";
  for (const Command& command : kCommands) {
    out << "  assay " << command.name << std::string(12 - std::string(command.name).size(), ' ') << command.summary
        << "\n";
  }
  out << "\n'assay COMMAND --help' tells more.\n"
         "exit codes: 0 all passed, 1 a verdict failed, 2 bad command line, 3 infrastructure only, 4 nothing ran\n";
}

int dispatch(const Words& words) {
  if (words.empty()) {
    print_help(std::cerr);
    return assay::cli::kExitUsage;
  }
  if (words[0] == "--help" || words[0] == "help") {
    print_help(std::cout);
    return assay::cli::kExitOk;
  }
  if (words[0] == "--version") {
    std::cout << "assay " << assay::cli::kVersion << "\n";
    return assay::cli::kExitOk;
  }
  const auto* command = std::find_if(std::begin(kCommands), std::end(kCommands),
                                     [&](const Command& candidate) { return words[0] == candidate.name; });
  if (command != std::end(kCommands)) return command->run(Words(words.begin() + 1, words.end()));
  std::vector<std::string_view> known;
  for (const Command& candidate : kCommands) known.emplace_back(candidate.name);
  return assay::cli::fail(assay::invalid("no command '" + words[0] + "'" +
                                         assay::discover::did_you_mean(words[0], known) +
                                         "; 'assay --help' lists them"));
}

}  // namespace

int main(int argc, char** argv) {
  assay::command::occupy_standard_streams();
  try {
    const int code = dispatch(Words(argv + 1, argv + argc));
    std::cout.flush();
    if (std::cout || code != assay::cli::kExitOk) return code;
    std::cerr << "assay: standard output is closed or full: what was asked for could not be printed\n";
    return assay::cli::kExitInfra;
  } catch (const std::exception& error) {
    std::cerr << "assay: internal error: " << error.what() << "\n";
    return assay::cli::kExitInfra;
  }
}
