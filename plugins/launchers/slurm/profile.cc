#include "plugins/launchers/slurm/profile.h"

#include <algorithm>
#include <utility>

#include "plugins/engines/common/options_json.h"
#include "plugins/engines/common/template_words.h"

namespace assay::launchers {

const char* const kSlurmOptionsSchema = R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "partition": {"type": "string"},
    "account": {"type": "string"},
    "qos": {"type": "string"},
    "constraint": {"type": "string"},
    "reservation": {"type": "string"},
    "nodelist": {"type": "string"},
    "exclude": {"type": "string"},
    "time": {"type": "string", "description": "time limit of a task as sbatch --time takes it"},
    "mem": {"type": "string", "description": "memory of a task as sbatch --mem takes it"},
    "gres": {"type": "string", "default": "gpu:{count}", "description": "{count}: devices of a task"},
    "devices": {"enum": ["gres", "gpus-per-task", "none"], "default": "gres"},
    "export": {"type": "string", "default": "ALL"},
    "requeue": {"type": "boolean", "default": true},
    "extra": {"type": "array", "items": {"type": "string"}, "description": "further options of sbatch, one each"},
    "before": {"type": "array", "items": {"type": "string"}, "description": "shell lines that run before the worker"},
    "sbatch": {"type": "string", "default": "sbatch"},
    "scontrol": {"type": "string", "default": "scontrol"},
    "scancel": {"type": "string", "default": "scancel"},
    "squeue": {"type": "string", "default": "squeue"},
    "sacct": {"type": "string", "default": "sacct"},
    "command_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 60}
  }
})json";

Result<SlurmProfile> parse_profile(std::string_view json) {
  const std::string what = "options of launcher slurm";
  SlurmProfile made;
  engines::OptionsReader reader(json, what);
  const std::vector<std::pair<const char*, std::string*>> texts = {{"partition", &made.partition},
                                                                   {"account", &made.account},
                                                                   {"qos", &made.qos},
                                                                   {"constraint", &made.constraint},
                                                                   {"reservation", &made.reservation},
                                                                   {"nodelist", &made.nodelist},
                                                                   {"exclude", &made.exclude},
                                                                   {"time", &made.time},
                                                                   {"mem", &made.mem},
                                                                   {"gres", &made.gres},
                                                                   {"export", &made.exported},
                                                                   {"sbatch", &made.sbatch},
                                                                   {"scontrol", &made.scontrol},
                                                                   {"scancel", &made.scancel},
                                                                   {"squeue", &made.squeue},
                                                                   {"sacct", &made.sacct}};
  for (const auto& [name, value] : texts) reader.string(name, value);
  reader.choice("devices", {"gres", "gpus-per-task", "none"}, &made.devices);
  reader.boolean("requeue", &made.requeue);
  reader.strings("extra", &made.extra);
  reader.strings("before", &made.before);
  reader.number("command_seconds", {.above = 0, .most = 3600}, &made.command_seconds);
  reader.known("workers");  // of the runner
  if (Status status = reader.finish(); !status.ok()) return status;
  const auto broken = [](const std::string& text) {
    return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  };
  for (const auto& [name, value] : texts) {
    if (broken(*value)) return invalid(what + ": " + name + " holds a control character, expected one line");
  }
  if (const auto gres = engines::fill_in({made.gres}, {{"count", {{"1"}}}}, what + ": gres"); !gres)
    return gres.status();
  for (const std::string& option : made.extra) {
    if (broken(option) || !option.starts_with("-")) {
      return invalid(what + ": extra holds '" + option.substr(0, 60) +
                     "', expected options like --exclusive, one each");
    }
  }
  return made;
}

}  // namespace assay::launchers
