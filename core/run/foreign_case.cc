#include "core/run/foreign_case.h"

#include <system_error>

#include "core/discover/harness_args.h"
#include "core/discover/input_path.h"
#include "core/train/job.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string absolute(const std::string& path) {
  std::error_code code;
  const fs::path whole = fs::absolute(path, code);
  return code ? path : whole.lexically_normal().string();
}

std::string found_or_as_written(const std::string& path, const std::string& case_dir) {
  if (path.empty()) return path;
  const Result<std::string> found = discover::find_input(path, case_dir);
  return found ? absolute(*found) : path;
}

}  // namespace

bool is_foreign(const plugin::Plugin& engine) {
  return !engine.can(ASSAY_CAP_NEEDS_BACKEND) && !engine.can(ASSAY_CAP_RECORDED);
}

bool wants_case(const plugin::Plugin& engine) {
  const Json schema = Json::parse(engine.options_schema, nullptr, false);
  return schema.is_object() && schema.contains("properties") && schema["properties"].contains("case");
}

Result<Json> case_member(const TestCase& test, const discover::EngineOptions& options,
                         const discover::Variables& variables, const ForeignLimits& limits) {
  const std::string script = test.assay.script.value_or("");
  Result<std::vector<std::string>> model_args =
      discover::harness_words(test, variables, 1, train::starts_as_program(script));
  if (!model_args) return model_args.status();
  return Json{{"name", test.name},
              {"dir", absolute(test.dir)},
              {"config", absolute(test.config)},
              {"model_args", *model_args},
              {"script", script},
              {"launcher", test.launcher},
              {"checkpoint", found_or_as_written(options.load, test.dir)},
              {"tokenizer", found_or_as_written(options.tokenizer.model.string(), test.dir)},
              {"output_path", options.output_path},
              {"first_id", options.first_request_id},
              {"output_every", options.output_every},
              {"time_limit_s", limits.seconds},
              {"memory_limit", limits.memory}};
}

std::string with_case_folder(const std::string& options, const fs::path& folder) {
  Json json = Json::parse(options, nullptr, false);
  if (!json.is_object() || !json.contains("case") || !json["case"].is_object()) return options;
  json["case"]["output"] = folder.string();
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace assay::run
