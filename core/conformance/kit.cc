#include "core/conformance/kit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/command/command.h"
#include "core/conformance/findings.h"
#include "core/conformance/watch.h"
#include "core/plugin/host.h"
#include "core/plugin/probe.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

std::vector<Check> checks_of(plugin::Kind kind) {
  std::vector<Check> checks = descriptor_checks();
  const std::vector<Check> more = kind == plugin::Kind::kEngine       ? engine_checks()
                                  : kind == plugin::Kind::kBackend    ? backend_checks()
                                  : kind == plugin::Kind::kComparator ? comparator_checks()
                                                                      : launcher_checks();
  checks.insert(checks.end(), more.begin(), more.end());
  return checks;
}

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// A host whose log expects lines that fit engine.log.
const assay_host* expecting_host(Findings* findings) {
  static std::mutex mutex;
  return plugin::make_host({.log =
                                [findings](assay_log_level level, std::string_view line) {
                                  const std::lock_guard<std::mutex> lock(mutex);
                                  findings->expect(one_line(line), "log: not one line of UTF-8: " + std::string(line));
                                  findings->expect(level >= ASSAY_LOG_DEBUG && level <= ASSAY_LOG_ERROR,
                                                   "log: no such level");
                                },
                            .cancelled = [] { return false; }});
}

// In the child process.
std::string run_check(const std::filesystem::path& file, const KitOptions& options, const Check& check, Watch& watch) {
  watch.begin();
  Findings findings;
  Findings of_log;
  Subject subject;
  subject.options = options;
  subject.host = expecting_host(&of_log);
  if (const auto broken = plugin::load(file, subject.host, &subject.plugin)) return dump({{"broken", broken->message}});
  check.run(subject, findings);
  for (const std::string& failure : of_log.failures()) findings.fail(failure);
  return dump({{"failures", findings.failures()},
               {"left_out", findings.left_out()},
               {"expectations", findings.expectations()}});
}

std::string how_it_died(const plugin::ChildReport& report, const Watch& watch, std::chrono::milliseconds limit) {
  const std::string doing = watch.doing().empty() ? "loading" : watch.doing();
  if (report.hung)
    return fmt::format("{}: did not come to an end within {} s", doing, static_cast<double>(limit.count()) / 1000.0);
  const std::string fault = watch.fault();
  return fmt::format("{}: the process died with {}{}{}", doing, report.death, fault.empty() ? "" : ": ", fault);
}

void add_results(const std::string& check, const json& seen, std::vector<CheckResult>* results) {
  if (seen.contains("broken")) {
    results->push_back({check, Outcome::kFailed, seen["broken"].get<std::string>(), 0});
    return;
  }
  for (const std::string& failure : seen.value("failures", std::vector<std::string>())) {
    results->push_back({check, Outcome::kFailed, failure, 0});
  }
  for (const std::string& reason : seen.value("left_out", std::vector<std::string>())) {
    results->push_back({check, Outcome::kNotChecked, reason, 0});
  }
  const auto expectations = seen.value("expectations", uint64_t{0});
  if (seen["failures"].empty() && expectations > 0) results->push_back({check, Outcome::kPassed, "", expectations});
}

// Descriptor as JSON, asked in a child.
Result<json> describe(const std::filesystem::path& file) {
  const Result<plugin::ChildReport> report = plugin::run_in_child(
      [&] {
        plugin::Plugin plugin;
        if (plugin::load(file, plugin::silent_host(), &plugin)) return std::string();
        return dump({{"kind", static_cast<uint32_t>(plugin.kind)},
                     {"name", plugin.name},
                     {"version", plugin.version},
                     {"abi", fmt::format("{}.{}", plugin.abi_major, plugin.abi_minor)}});
      },
      std::chrono::seconds(20));
  if (!report) return report.status();
  return json::parse(report->text, nullptr, false);
}

}  // namespace

bool KitReport::passed() const {
  const auto is = [](Outcome outcome) { return [outcome](const CheckResult& one) { return one.outcome == outcome; }; };
  return std::none_of(results.begin(), results.end(), is(Outcome::kFailed)) &&
         std::any_of(results.begin(), results.end(), is(Outcome::kPassed));
}

Result<KitReport> test_plugin(const std::filesystem::path& file, const KitOptions& options) {
  if (!json::parse(options.options, nullptr, false).is_object()) {
    return invalid("--options '" + options.options + "': expected a JSON object like {\"batch\":4}");
  }
  KitReport report;
  report.file = file;
  if (const auto broken = plugin::probe(file)) {
    report.results.push_back({"load", Outcome::kFailed, broken->message, 0});
    return report;
  }
  const Result<json> described = describe(file);
  if (!described) return described.status();
  if (!described->is_object()) {
    report.results.push_back({"load", Outcome::kFailed, file.string() + ": loads only now and then", 0});
    return report;
  }
  const auto kind = static_cast<plugin::Kind>((*described)["kind"].get<uint32_t>());
  report.kind = plugin::to_string(kind);
  report.name = (*described)["name"];
  report.version = (*described)["version"];
  report.abi = (*described)["abi"];
  for (const Check& check : checks_of(kind)) {
    Watch watch;
    const std::string mark = command::new_mark();  // of whatever the check starts
    const Result<plugin::ChildReport> child = plugin::run_in_child(
        [&] {
          ::setenv(command::kMarkVariable, mark.c_str(), 1);
          return run_check(file, options, check, watch);
        },
        options.limit);
    if (!child) return child.status();
    if (!child->finished) {
      command::end_marked(mark);
      report.results.push_back({check.name, Outcome::kFailed, how_it_died(*child, watch, options.limit), 0});
    } else {
      add_results(check.name, json::parse(child->text, nullptr, false), &report.results);
    }
  }
  return report;
}

}  // namespace assay::conformance
