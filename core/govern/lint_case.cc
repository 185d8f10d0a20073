// A golden against the case that it belongs to.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "assay/golden.h"
#include "backends/model/config/effective_args.h"
#include "core/compare/checks.h"
#include "core/compare/views.h"
#include "core/discover/arguments.h"
#include "core/discover/engine_options.h"
#include "core/golden/text.h"
#include "core/govern/lint.h"
#include "core/govern/metric_part.h"

namespace assay::govern {
namespace {

// What the case asks: one prompt a request, ids from `first_id` on.
struct Asked {
  int first_id = 0;
  std::vector<std::string> prompts;
};

// Adds ${NAME} and $NAME of `text` that are unset, so that what does not depend on them can be told all the same.
void add_placeholders(std::string_view text, discover::Variables& variables) {
  for (size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at + 1)) {
    size_t begin = at + 1;
    if (begin < text.size() && text[begin] == '{') ++begin;
    size_t end = begin;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
    const std::string_view name = text.substr(begin, end - begin);
    if (!name.empty() && variables.find(name) == nullptr) {
      variables.environment.emplace(name, "/unset/" + std::string(name));
    }
  }
}

Result<Asked> asked_by(const TestCase& test, discover::Variables variables) {
  for (const ModelArg& arg : test.model_args.entries) {
    add_placeholders(arg.text, variables);
    for (const std::string& item : arg.items) add_placeholders(item, variables);
  }
  const auto arguments = discover::read_arguments(test, variables);
  if (!arguments) return arguments.status();
  const auto options = discover::resolve_engine_options(test, model::apply_checkpoint_args(arguments->record, nullptr));
  if (!options) return options.status();
  auto prompts = discover::load_prompts(*options, test.dir);
  if (!prompts) return prompts.status();
  return Asked{options->first_request_id, *std::move(prompts)};
}

class CaseLint {
 public:
  CaseLint(std::string path, const ResultSet& set) : path_(std::move(path)), set_(set) {}

  void check_metrics(const std::vector<std::string>& metrics) {
    constexpr std::array<std::string_view, 3> kQuantities = {"throughput", "mem-max-allocated-bytes",
                                                             "lifetime_prefill_token_count"};
    for (const std::string& metric : metrics) {
      const bool quantity = std::find(kQuantities.begin(), kQuantities.end(), metric) != kQuantities.end();
      if (!quantity && !is_field(metric)) continue;  // of a comparator that assay does not know
      const std::string lacking = first_lacking(set_, metric);
      if (lacking.empty()) {
        check_filled(metric);
        continue;
      }
      error("metric-missing",
            quantity ? fmt::format("METRICS lists {}, which this golden lacks", metric)
                     : fmt::format("METRICS lists {}, which request {} lacks", metric, text::printable(lacking)));
    }
  }

  void check_requests(const Asked& asked) {
    const bool escaped = compare::escapes_newlines(set_);
    for (const RequestRecord& request : set_.requests) {
      const size_t index = index_of(request.id, asked);
      if (index >= asked.prompts.size()) {
        error("obsolete-request", fmt::format("request {} is asked by none of the case's {} prompts (ids from {})",
                                              text::printable(request.id), asked.prompts.size(), asked.first_id));
      } else if (request.prompt) {
        check_prompt(request, asked.prompts[index], escaped);
      }
    }
    for (size_t i = 0; i < asked.prompts.size(); ++i) {
      const std::string id = std::to_string(asked.first_id + static_cast<int64_t>(i));
      if (set_.find(id) != nullptr) continue;
      error("missing-request", fmt::format("prompt {} of {} ({}) has no request {} here", i + 1, asked.prompts.size(),
                                           text::quoted(asked.prompts[i], 40), id));
      break;  // the first says it
    }
  }

  std::vector<LintFinding> take() { return std::move(found_); }

 private:
  // What is judged may not be empty: the golden could never pass.
  void check_filled(const std::string& metric) {
    const std::string part = part_of(metric);
    for (const RequestRecord& request : set_.requests) {
      const bool empty = (part == "generated_text" && request.text && request.text->empty()) ||
                         (part == "generated_tokens" && request.tokens && request.tokens->empty()) ||
                         (part == "logprobs" && request.logprobs && request.logprobs->empty());
      if (!empty) continue;
      return error("empty", fmt::format("METRICS lists {}, which is empty in request {}: nothing could pass", metric,
                                        text::printable(request.id)));
    }
  }

  void error(std::string rule, std::string message) {
    found_.push_back({LintLevel::kError, std::move(rule), path_, std::move(message)});
  }

  // Place of the request among the prompts; beyond their number where it is none.
  static size_t index_of(const std::string& id, const Asked& asked) {
    for (size_t i = 0; i < asked.prompts.size(); ++i) {
      if (id == std::to_string(asked.first_id + static_cast<int64_t>(i))) return i;
    }
    return asked.prompts.size();
  }

  void check_prompt(const RequestRecord& request, const std::string& prompt, bool escaped) {
    RequestRecord copy;
    copy.prompt = request.prompt;
    compare::RecordView view(copy);
    if (escaped) view.unescape_newlines();
    const std::string_view recorded(view.record().prompt.data, view.record().prompt.size);
    if (recorded == prompt) return;
    const size_t at = text::common_prefix(recorded, prompt);
    error("prompt", fmt::format("request {} answers another prompt: at code point {} the golden has {}, the case {}",
                                text::printable(request.id), text::count(recorded.substr(0, at)),
                                text::around(recorded, at, 30, 30), text::around(prompt, at, 30, 30)));
  }

  std::string path_;
  const ResultSet& set_;
  std::vector<LintFinding> found_;
};

}  // namespace

std::vector<LintFinding> lint_against_case(const std::string& path, const TestCase& test,
                                           const discover::Variables& variables, bool* prompts_known) {
  *prompts_known = true;
  const auto set = read_results(path);
  if (!set) return {};  // lint_golden_text says why
  CaseLint lint(path, *set);
  if (test.metrics) lint.check_metrics(*test.metrics);
  const auto asked = asked_by(test, variables);
  if (asked) {
    lint.check_requests(*asked);
  } else {
    *prompts_known = false;
  }
  return lint.take();
}

}  // namespace assay::govern
