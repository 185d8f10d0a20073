// The same weights in other files: what a checkpoint says must not depend on how it is cut.
#pragma once

#include <cstdint>
#include <string>

#include "assay/status.h"
#include "backends/model/checkpoint/checkpoint.h"

namespace assay::model {

// Bytes of the tensors that rewrite_checkpoint writes; its files need a little more.
uint64_t rewritten_bytes(const Checkpoint& checkpoint);

// Writes every readable tensor of `checkpoint` and its arguments to `folder`, with other chunks, another number of data
// files and the arguments in the other of their two places. Element by element the bits stay. Memory: a few MB a
// thread. Fails like Checkpoint::read (a tensor that cannot be read) and write_torch_dist (kInfra: the disk).
Status rewrite_checkpoint(const Checkpoint& checkpoint, const std::string& folder);

}  // namespace assay::model
