// What a profile says about a Slurm: see docs/launchers.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::launchers {

struct SlurmProfile {
  // Lines of the batch script; "" and empty: no such line.
  std::string partition;
  std::string account;
  std::string qos;
  std::string constraint;
  std::string reservation;
  std::string nodelist;
  std::string exclude;
  std::string time;                  // in Slurm's spelling, over what the job says
  std::string mem;                   // likewise
  std::string gres = "gpu:{count}";  // {count}: devices of a task
  std::string devices = "gres";      // how they are asked for: gres, gpus-per-task, none
  std::string exported = "ALL";      // --export
  bool requeue = true;               // --requeue, else --no-requeue
  std::vector<std::string> extra;    // further options, one each: "--exclusive"
  std::vector<std::string> before;   // shell lines that run before the worker: "module load cuda"
  // Programs; without a slash they are looked up in PATH.
  std::string sbatch = "sbatch";
  std::string scontrol = "scontrol";
  std::string scancel = "scancel";
  std::string squeue = "squeue";
  std::string sacct = "sacct";
  double command_seconds = 60;  // one of them may take
};

extern const char* const kSlurmOptionsSchema;

// Fails with kInvalid: an unknown member (with the nearest name), a wrong type, a value with a control character.
Result<SlurmProfile> parse_profile(std::string_view json);

}  // namespace assay::launchers
