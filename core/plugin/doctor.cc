#include "core/plugin/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/golden/text.h"
#include "core/plugin/host.h"
#include "core/plugin/probe.h"

namespace assay::plugin {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<uint64_t, const char*>, 15> kCapabilities = {
    {{ASSAY_CAP_LOGPROBS, "logprobs"},
     {ASSAY_CAP_TOP_N, "top_n"},
     {ASSAY_CAP_PROMPT_LOGPROBS, "prompt_logprobs"},
     {ASSAY_CAP_FORCED_TOKENS, "forced_tokens"},
     {ASSAY_CAP_ROUTING, "routing"},
     {ASSAY_CAP_BATCH, "batch"},
     {ASSAY_CAP_SEED, "seed"},
     {ASSAY_CAP_TEXT, "text"},
     {ASSAY_CAP_TOKENS, "tokens"},
     {ASSAY_CAP_NEEDS_BACKEND, "needs_backend"},
     {ASSAY_CAP_RECORDED, "recorded"},
     {ASSAY_CAP_L1, "L1"},
     {ASSAY_CAP_L2, "L2"},
     {ASSAY_CAP_L3, "L3"},
     {ASSAY_CAP_TRAIN, "train"}}};

// A file may have any name.
std::string printable(const std::filesystem::path& path) { return text::printable(path.string()); }

// Loads `file` in a child and carries its descriptor over as JSON.
void examine(DoctorRow* row) {
  const auto fail = [row](const LoadError& error) {
    row->failure = to_string(error.failure);
    row->message = error.message;
  };
  if (std::optional<LoadError> broken = probe(row->file)) return fail(*broken);
  const Result<ChildReport> report = run_in_child(
      [row] {
        Plugin plugin;
        if (load(row->file, silent_host(), &plugin)) return std::string("null");
        return Json{{"version", plugin.version},
                    {"abi", fmt::format("{}.{}", plugin.abi_major, plugin.abi_minor)},
                    {"description", plugin.description},
                    {"capabilities", plugin.capabilities},
                    {"metrics", plugin.metrics}}
            .dump(-1, ' ', false, Json::error_handler_t::replace);
      },
      std::chrono::seconds(20));
  const Json seen = report.ok() && report->finished ? Json::parse(report->text, nullptr, false) : Json();
  if (!seen.is_object()) {
    return fail({LoadFailure::kCrashed, row->file.string() + ": loads only now and then; run it under a debugger"});
  }
  row->ok = true;
  row->version = seen["version"];
  row->abi = seen["abi"];
  row->description = seen["description"];
  row->capabilities = capability_names(seen["capabilities"]);
  const bool computes = (seen["capabilities"].get<uint64_t>() & ASSAY_CAP_RECORDED) == 0;
  if (computes && (row->kind == "engine" || row->kind == "backend")) row->levels = level_names(seen["capabilities"]);
  row->metrics = seen["metrics"].get<std::vector<std::string>>();
}

}  // namespace

std::vector<std::string> capability_names(uint64_t capabilities) {
  std::vector<std::string> names;
  for (const auto& [bit, name] : kCapabilities) {
    if ((capabilities & bit) != 0) names.emplace_back(name);
    capabilities &= ~bit;
  }
  for (int bit = 0; bit < 64; ++bit) {
    if ((capabilities >> bit & 1) != 0) names.push_back(fmt::format("bit {}", bit));
  }
  return names;
}

bool DoctorReport::healthy() const {
  const bool rows_ok =
      std::all_of(rows.begin(), rows.end(), [](const DoctorRow& r) { return r.ok || !r.shadowed_by.empty(); });
  const bool dirs_ok =
      std::all_of(unreadable.begin(), unreadable.end(), [](const UnreadableDir& one) { return one.dir.trusted; });
  return rows_ok && dirs_ok;
}

DoctorReport doctor(const SearchOptions& options) {
  DoctorReport report;
  report.abi = fmt::format("{}.{}", ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR);
  report.dirs = search_dirs(options);
  Listing listing = list_files(report.dirs);
  report.unreadable = std::move(listing.unreadable);
  for (const Candidate& candidate : listing.candidates) {
    DoctorRow row;
    row.file = candidate.file;
    row.kind = to_string(candidate.claim.kind);
    row.name = candidate.claim.name;
    row.shadowed_by = candidate.shadowed_by;
    examine(&row);
    report.rows.push_back(std::move(row));
  }
  for (const std::filesystem::path& file : listing.misnamed) {
    DoctorRow row;
    row.file = file;
    row.failure = to_string(LoadFailure::kWrongName);
    row.message = file.string() +
                  ": file name is not <kind>_<name>.so with kind engine, backend, comparator or "
                  "launcher; rename it or move it elsewhere";
    report.rows.push_back(std::move(row));
  }
  return report;
}

std::string to_text(const DoctorReport& report) {
  std::string out = fmt::format("plugin ABI {}, searched in this order:\n", report.abi);
  for (const SearchDir& dir : report.dirs) {
    const auto unreadable = std::find_if(report.unreadable.begin(), report.unreadable.end(),
                                         [&](const UnreadableDir& one) { return one.dir.path == dir.path; });
    const bool readable = unreadable == report.unreadable.end();
    out += fmt::format("  {}{}\n", printable(dir.path),
                       readable ? "" : fmt::format("  (cannot be read: {})", unreadable->reason));
  }
  for (const DoctorRow& row : report.rows) {
    const std::string what =
        row.kind.empty() ? printable(row.file.filename()) : text::printable(row.kind + " " + row.name);
    if (row.ok) {
      out += fmt::format("{:<8} {} {} (ABI {}): {}\n", row.shadowed_by.empty() ? "ok" : "shadowed", what,
                         text::printable(row.version), row.abi, text::printable(row.description));
      if (!row.levels.empty()) out += fmt::format("         determinism: {}\n", row.levels);
      if (!row.metrics.empty() && row.metrics != std::vector<std::string>{row.name}) {
        out += fmt::format("         metrics: {}\n", text::printable(fmt::format("{}", fmt::join(row.metrics, ", "))));
      }
    } else {
      out += fmt::format("{:<8} {}: {}: {}\n", "BROKEN", what, row.failure, text::printable(row.message));
    }
    if (!row.shadowed_by.empty()) {
      out += fmt::format("         {} is not used: {} comes first\n", printable(row.file), printable(row.shadowed_by));
    }
  }
  if (report.rows.empty()) out += "no plugin files found\n";
  return out;
}

std::string to_json(const DoctorReport& report) {
  Json rows = Json::array();
  for (const DoctorRow& row : report.rows) {
    rows.push_back(Json{{"file", row.file.string()},
                        {"kind", row.kind},
                        {"name", row.name},
                        {"ok", row.ok},
                        {"shadowed_by", row.shadowed_by.empty() ? Json() : Json(row.shadowed_by.string())},
                        {"failure", row.ok ? Json() : Json(row.failure)},
                        {"message", row.ok ? Json() : Json(row.message)},
                        {"version", row.version},
                        {"abi", row.abi},
                        {"description", row.description},
                        {"capabilities", row.capabilities},
                        {"metrics", row.metrics}});
  }
  Json search = Json::array();
  for (const SearchDir& dir : report.dirs) search.push_back(dir.path.string());
  return Json{{"abi", report.abi}, {"search", search}, {"healthy", report.healthy()}, {"plugins", rows}}.dump(
             2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace assay::plugin
