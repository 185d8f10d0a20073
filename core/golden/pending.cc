#include "core/golden/pending.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/golden/digest.h"
#include "core/golden/stable_text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kMember = "pending";

std::string to_json(const PendingInfo& info) {
  const Json json = {{"recorded_at", info.recorded_at},
                     {"run_id", info.run_id},
                     {"command", info.command},
                     {"golden_sha256", info.golden_sha256}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Result<PendingInfo> parse_info(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return invalid("member \"pending\" of \"assay\" is no object");
  PendingInfo info;
  for (const auto& [name, member] :
       {std::pair("recorded_at", &info.recorded_at), std::pair("run_id", &info.run_id),
        std::pair("command", &info.command), std::pair("golden_sha256", &info.golden_sha256)}) {
    const auto found = json.find(name);
    if (found == json.end()) continue;
    if (!found->is_string()) return invalid(fmt::format("member \"{}\" of \"pending\" is no string", name));
    *member = found->get<std::string>();
  }
  return info;
}

}  // namespace

Result<std::vector<std::string>> list_pending(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  if (!fs::exists(folder, error)) return paths;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const auto name = parse_golden_name(at->path().filename().string());
    if (name && name->pending) paths.push_back(at->path().string());
  }
  if (error) return infra(fmt::format("{}: cannot be listed: {}", folder, error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<PendingGolden> read_pending(const std::string& path, const std::string& case_dir) {
  const auto name = parse_golden_name(fs::path(path).filename().string());
  if (!name || !name->pending) {
    return invalid(path + ": not the name of a pending golden; expected golden_values_..._....pending.json");
  }
  PendingGolden pending;
  pending.path = path;
  pending.name = *name;
  pending.golden_path = (fs::path(case_dir) / golden_name(name->environment, name->platform)).string();
  auto results = read_results(path);
  if (!results) return results.status();
  pending.results = *std::move(results);
  auto meta = parse_golden_meta(pending.results.extra);
  if (!meta) return meta.status().with(path);
  pending.meta = *std::move(meta);
  pending.results.extra.clear();
  auto& further = pending.meta.further;
  const auto member = std::find_if(further.begin(), further.end(), [](const auto& at) { return at.first == kMember; });
  if (member == further.end()) {
    return invalid(path + ": no member \"pending\" in its object \"assay\"; only 'assay record' makes pending goldens");
  }
  auto info = parse_info(member->second);
  if (!info) return info.status().with(path);
  pending.info = *std::move(info);
  further.erase(member);
  return pending;
}

std::string pending_text(const PendingGolden& pending) {
  GoldenMeta meta = pending.meta;
  meta.further.emplace_back(kMember, to_json(pending.info));
  ResultSet set = pending.results;
  set.extra = to_json(meta);
  return stable_text(set);
}

Result<std::string> judging_golden(const PendingGolden& pending) {
  const std::string folder = fs::path(pending.golden_path).parent_path().string();
  const auto choice = resolve_golden(folder, pending.name.environment, pending.name.platform);
  if (!choice && choice.status().code() == StatusCode::kNotFound) return std::string();
  if (!choice) return choice.status();
  return choice->path;
}

Result<std::string> golden_digest(const std::string& path) {
  if (path.empty()) return std::string();
  auto set = read_results(path);
  if (!set && set.status().code() == StatusCode::kNotFound) return std::string();
  if (!set) return set.status();
  return digest_of_text(stable_text(*set));
}

}  // namespace assay
