// Barriers between the nodes of a training: files in a folder that all of them see, as Megatron-LM's script has them.
#pragma once

#include <functional>
#include <string>

#include "assay/status.h"
#include "core/train/case_plan.h"

namespace assay::train {

class Meeting {
 public:
  // `cancelled` may be empty.
  Meeting(NodeMeeting where, int nodes, int rank, std::function<bool()> cancelled);

  // Returns when every node has come; at once where there is one node. Fails with kInfra past the time limit, naming
  // who is missing.
  Status wait(const std::string& name) const;

  // Tells the others how a phase ended here and returns the worst code of all: 0 where all ended well.
  Result<int> exchange(const std::string& phase, int exit_code) const;

 private:
  NodeMeeting where_;
  int nodes_;
  int rank_;
  std::function<bool()> cancelled_;
};

}  // namespace assay::train
