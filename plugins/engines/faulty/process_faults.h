// Faults that strike the process, and memory that is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "assay/status.h"
#include "plugins/engines/faulty/fault.h"

namespace assay::engines {

// Does not return, or takes the process along, for the faults of Family::kProcess; kBrokenStep returns kInternal. Does
// nothing for others.
Status harm_process(Fault fault);

// Takes and touches memory and never gives it back, 64 MiB at a time, 10 ms apart: at most `bytes`.
void leak_memory(size_t bytes);

// 1, 2, 3 ...: counts over all engines of the process, as state does that no engine cleans. From any thread.
uint64_t next_call();

// True for the model that this was asked of first in the process, as state does that knows one model. From any thread.
bool is_first_model(const void* model);

// `bytes` of touched memory, given back with the pointer.
std::unique_ptr<char[]> take_memory(size_t bytes);

}  // namespace assay::engines
