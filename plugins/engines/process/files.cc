// Files around a command: what it is told, what it wrote, and what was run.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "plugins/engines/process/process.h"

namespace assay::engines {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The output goes from the place of the case's own results to where an engine's files are.
Status ProcessEngine::bring_output(const fs::path& from, const fs::path& to) const {
  std::error_code code;
  if (!fs::exists(from, code) && !code) return {};  // the command wrote none
  if (!code) fs::copy_file(from, to, fs::copy_options::overwrite_existing, code);
  if (code) {
    if (Status done = redactor_.file(from); !done.ok()) host_.log(ASSAY_LOG_ERROR, done.message());
    return infra(fmt::format("{}: what the command wrote cannot be copied to {}: {}; it is kept where it is",
                             from.string(), to.string(), code.message()));
  }
  fs::remove(from, code);
  if (!code) return {};
  return infra(fmt::format("{}: cannot be removed after it was read: {}", from.string(), code.message()));
}

Status ProcessEngine::write_prompts(const std::vector<Waiting>& batch, const fs::path& file) const {
  std::string text;
  for (const Waiting& request : batch) {
    Json line = {{"id", std::stoull(told_id(request))}};
    if (request.ids.empty()) {
      line["text"] = request.text;
    } else {
      line["tokens"] = request.ids;
    }
    line["max_new_tokens"] = request.max_new_tokens;
    line["temperature"] = request.sampling.temperature;
    line["top_k"] = request.sampling.top_k;
    line["top_p"] = request.sampling.top_p;
    line["seed"] = request.sampling.seed;
    line["top_n"] = request.top_n;
    line["logprobs"] = request.logprobs;
    text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  return out ? Status() : infra(file.string() + ": cannot be written; is the disk full?");
}

// What was run, for whoever wants to run it again: secrets are taken out.
Status ProcessEngine::note_command(const command::CommandOptions& options, const fs::path& file) const {
  Json environment = Json::object();
  for (const auto& [name, value] : options.environment) environment[name] = redactor_.value(name, value);
  std::error_code code;
  const Json json = {{"command", redactor_.words(options.argv)},
                     {"folder", options.folder.empty() ? fs::current_path(code).string() : options.folder.string()},
                     {"environment", environment},
                     {"time_limit_s", static_cast<double>(options.time_limit.count()) / 1000}};
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
  out.close();
  if (!out) return infra(file.string() + ": cannot be written; is the disk full?");
  host_.log(ASSAY_LOG_INFO, "command: " + json["command"].dump(-1, ' ', false, Json::error_handler_t::replace));
  return {};
}

}  // namespace assay::engines
