#include "core/recipe/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/golden/text.h"

namespace assay::recipe {
namespace {

constexpr size_t kWidest = 90;  // code points of a column
constexpr size_t kColumns = 9;
constexpr std::array<const char*, kColumns> kTitles = {"model",   "test case", "environment", "platform", "scope",
                                                       "cadence", "gpus",      "limit",       "flavour"};
using Line = std::array<std::string, kColumns>;

Value or_null(const std::string& text) { return text.empty() ? Value(nullptr) : Value(text); }

Value to_json(const Entry& entry) {
  const Workload& work = entry.workload;
  Value json = work.spec;
  const auto add = [&json](const char* key, Value value) { json.emplace(std::string(key), std::move(value)); };
  json["name"] = work.name;
  if (json.contains("script")) json["script"] = or_null(work.script);
  add("type", work.type);
  add("recipe", work.file);
  add("line", work.line);
  add("flavour", entry.flavour);
  add("training_script", or_null(entry.words.training_script));
  add("case", or_null(entry.case_dir));
  add("golden", or_null(entry.words.golden));
  add("error", or_null(work.error.message()));
  return json;
}

std::string cell(const std::string& text) { return text.empty() ? "-" : text::printable(text::prefix(text, kWidest)); }

// "4x8" for 4 nodes with 8 GPUs each, "8" for one node.
std::string gpus_of(const Workload& work) {
  const std::string nodes = work.text("nodes");
  const std::string gpus = work.text("gpus");
  return nodes.empty() || nodes == "1" ? gpus : nodes + "x" + gpus;
}

Line line_of(const Entry& entry) {
  const Workload& work = entry.workload;
  std::string cadence;
  if (const auto list = work.spec.find("cadence"); list != work.spec.end() && list->is_array()) {
    for (const Value& one : *list) cadence += (cadence.empty() ? "" : ",") + python_str(one);
  }
  std::string limit = work.text("time_limit");
  if (!limit.empty()) limit += " s";
  if (const std::string repeat = work.text("n_repeat"); !repeat.empty() && repeat != "1") limit += " x" + repeat;
  return {cell(work.text("model")),
          cell(work.is_build() ? work.name : work.text("test_case")),
          cell(work.text("environment")),
          cell(work.text("platforms")),
          cell(work.text("scope")),
          cell(cadence),
          cell(gpus_of(work)),
          cell(limit),
          cell(entry.flavour)};
}

void append(std::string& out, const Line& line, const std::array<size_t, kColumns>& widths) {
  for (size_t i = 0; i < kColumns; ++i) {
    out += line[i];
    if (i + 1 < kColumns) out.append(widths[i] - text::count(line[i]) + 2, ' ');
  }
  out += "\n";
}

std::string counted(size_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

}  // namespace

std::string list_json(const Catalogue& catalogue) {
  std::string out = "[";
  for (const Entry& entry : catalogue.entries) {
    out += out.size() == 1 ? "\n" : ",\n";
    out += to_json(entry).dump(-1, ' ', false, Value::error_handler_t::replace);
  }
  return out + "\n]\n";
}

std::string list_text(const Catalogue& catalogue) {
  Line titles;
  std::copy(kTitles.begin(), kTitles.end(), titles.begin());
  std::vector<Line> lines = {titles};
  size_t builds = 0;
  for (const Entry& entry : catalogue.entries) {
    lines.push_back(line_of(entry));
    if (entry.workload.is_build()) ++builds;
  }
  std::array<size_t, kColumns> widths{};
  for (const Line& line : lines) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], text::count(line[i]));
  }
  std::string out;
  if (lines.size() > 1) {
    for (const Line& line : lines) append(out, line, widths);
  }
  out += fmt::format("{} of {} in {}", counted(catalogue.entries.size() - builds, "workload"), catalogue.expanded,
                     counted(catalogue.files, "recipe"));
  return out + (builds > 0 ? ", " + counted(builds, "build") + "\n" : "\n");
}

}  // namespace assay::recipe
