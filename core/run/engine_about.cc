#include "core/run/engine_about.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "assay/sdk.hpp"
#include "core/golden/text.h"
#include "core/plugin/doctor.h"

namespace assay::run {
namespace {

Status take_facts(std::string_view json, std::map<std::string, std::string>* facts) {
  if (json.empty()) return {};
  const auto refuse = [json] {
    return invalid(fmt::format("info: facts are {}, expected a JSON object of strings; fix the engine",
                               text::quoted(std::string(json), 60)));
  };
  const nlohmann::json parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object()) return refuse();
  for (const auto& [name, value] : parsed.items()) {
    if (!value.is_string()) return refuse();
    (*facts)[name] = value.get<std::string>();
  }
  return {};
}

}  // namespace

Result<EngineAbout> about_of(const plugin::Plugin& engine, void* handle) {
  EngineAbout about{.capabilities = engine.capabilities};
  const assay_engine_table* table = engine.engine();
  if (!ASSAY_KNOWS(table, info) || table->info == nullptr) return about;
  const std::string who = fmt::format("engine {}", engine.name);
  auto info = sdk::sized<assay_engine_info>();
  info.capabilities = engine.capabilities;
  if (Status asked = sdk::call(table->info, handle, &info); !asked.ok()) return asked.with(who);
  if (const uint64_t more = info.capabilities & ~engine.capabilities; more != 0) {
    return invalid(fmt::format("{}: info claims {}, which its descriptor has not; fix the engine", who,
                               fmt::join(plugin::capability_names(more), ", ")));
  }
  about.capabilities = info.capabilities;
  if (Status taken = take_facts(sdk::text(info.facts), &about.facts); !taken.ok()) return taken.with(who);
  return about;
}

}  // namespace assay::run
