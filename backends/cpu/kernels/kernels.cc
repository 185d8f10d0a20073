#include "backends/cpu/kernels/kernels.h"

#include "backends/cpu/kernels/isas.h"

namespace assay::cpu {

std::vector<std::string_view> built_isas() {
  std::vector<std::string_view> names;
  for (const Isa& isa : isas()) names.push_back(isa.name);
  return names;
}

bool can_run(std::string_view name) {
  for (const Isa& isa : isas()) {
    if (isa.name == name) return isa.usable();
  }
  return false;
}

Result<const Kernels*> select_kernels(std::string_view name) {
  std::string known = "auto";
  for (const Isa& isa : isas()) {
    known += ", " + std::string(isa.name);
    if (name != "auto" && name != isa.name) continue;
    if (isa.usable()) return isa.kernels;
    if (name == isa.name) {
      return unsupported("isa '" + std::string(name) + "': this processor lacks it, it needs " +
                         std::string(isa.needs) + "; use isa=auto");
    }
  }
  return invalid("isa '" + std::string(name) + "' is unknown; known here are: " + known);
}

}  // namespace assay::cpu
