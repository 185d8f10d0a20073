// What scontrol and sacct print about an array job.
#include "plugins/launchers/slurm/states.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::launchers;
  const std::string_view text = assay::fuzz::text_of(data, size);
  for (const auto& states : {parse_scontrol(text), parse_sacct(text)}) {
    assay::fuzz::require(states.size() <= 1u << 20, "the number of tasks is bounded");
    for (const auto& [task, state] : states) {
      assay::fuzz::require(state.phase != ASSAY_TASK_LOST || !state.reason.empty(), "a lost task has a reason");
      assay::fuzz::require(!waits_for_ever(state) || state.over(), "a task that waits for ever counts as over");
    }
  }
  return 0;
}
