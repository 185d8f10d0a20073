// Secrets of a run (core/command/redact.h): kept out of its journal, its reports, its logs and the plans of workers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "assay/status.h"
#include "core/command/redact.h"
#include "core/run/plan.h"
#include "core/run/run.h"

namespace assay::run {

// Knows the secret variables of the calling process, of --set, of ENV_VARS, and what is secret in options of engines,
// backends and launchers (core/run/listed_secrets.h), those that cases have of their own included.
command::Redactor secrets_of(const RunOptions& options, const Plan& plan);

// As far as a worker knows them: its environment, its plan, and those that came beside it (kSecretsVariable).
command::Redactor secrets_of_worker(const WorkerPlan& plan, const std::string& secrets);

// Takes the secrets out of files in a folder that nobody writes to any more: its logs (.log, .txt), or all texts (.json
// and .jsonl too, results apart) with those of the folders below. Goes on after a failure and returns the first.
enum class Below : uint8_t { kNoneButLogs, kAllTexts };
Status clean_texts(const command::Redactor& redactor, const std::filesystem::path& folder, Below below);

// Replaces the secrets in every string of `json`; members of an object called "environment" or "variables" are judged
// by their names, too.
void redact(const command::Redactor& redactor, nlohmann::ordered_json* json);

// How secrets of a worker's plan travel: in the worker's environment, the file has placeholders for them.
inline constexpr const char* kSecretsVariable = "ASSAY_SECRETS";

struct HiddenSecrets {
  std::string text;     // JSON document with placeholders
  std::string secrets;  // value of kSecretsVariable; empty: there are none in the document
};
HiddenSecrets hide_secrets(const command::Redactor& redactor, const std::string& json);

// The document as it was. kInvalid where placeholders and `secrets` do not fit together.
Result<std::string> reveal_secrets(const std::string& json, const std::string& secrets);

}  // namespace assay::run
