#include "tools/self_test/workshop.h"

#include <fmt/format.h>

#include <fstream>

#include "core/discover/discover.h"
#include "core/run/journal.h"
#include "tools/self_test/trial.h"

namespace assay::self_test {
namespace {

namespace fs = std::filesystem;

class Silent : public run::RunObserver {
 public:
  void run_started(const run::RunInfo& /*info*/) override {}
  void case_started(const std::string& /*name*/, const std::string& /*worker*/) override {}
  void case_finished(const run::CaseOutcome& /*outcome*/) override {}
  void note(const std::string& /*event*/, const std::string& /*line*/) override {}
  void run_finished(const run::RunSummary& /*summary*/) override {}
};

Status write_text(const fs::path& path, const std::string& text) {
  std::error_code code;
  fs::create_directories(path.parent_path(), code);
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? Status() : infra(path.string() + ": cannot be written; name a folder with room by --output");
}

}  // namespace

fs::path Workshop::case_folder(const std::string& group, const std::string& name) const {
  return options_.folder / "cases" / group / name;
}

Result<Base> Workshop::record(const std::string& name, const TestCase& test, const CaseChange& change,
                              const GroupRun& how) {
  const std::string group = "golden_" + name;
  const fs::path folder = case_folder(group, name);
  if (Status written = write_text(folder / "model_config.yaml", case_text(test, change)); !written.ok()) return written;
  Result<run::RunSummary> summary = run(group, how);
  if (!summary) return summary.status();
  const run::CaseOutcome& outcome = summary->outcomes.at(0);
  // There is no golden yet: any other verdict means that the engine did not answer.
  if (outcome.verdict.verdict != Verdict::kNotComparable || outcome.actual.empty()) {
    return invalid(fmt::format("{}: the correct engine gives no golden values: {}: {}", test.dir,
                               to_string(outcome.verdict.verdict), outcome.verdict.reason));
  }
  Base base{test, options_.folder / "golden" / (name + ".json"), ""};
  std::error_code code;
  fs::create_directories(base.golden.parent_path(), code);
  fs::copy_file(outcome.actual, base.golden, fs::copy_options::overwrite_existing, code);
  if (code) return infra(base.golden.string() + ": cannot be written: " + code.message());
  base.content = content_of(base.golden.string());
  return base;
}

Status Workshop::add_case(const std::string& group, const std::string& name, const Base& base,
                          const CaseChange& change) {
  const fs::path folder = case_folder(group, name);
  if (Status written = write_text(folder / "model_config.yaml", case_text(base.test, change)); !written.ok()) {
    return written;
  }
  if (change.metamorphic) return {};
  std::error_code code;
  const fs::path link = folder / "golden_values_dev_any.json";
  fs::remove(link, code);
  fs::create_symlink(fs::absolute(base.golden), link, code);
  return code ? infra(link.string() + ": cannot be made: " + code.message()) : Status();
}

Result<run::RunSummary> Workshop::run(const std::string& group, const GroupRun& how) {
  run::RunOptions options;
  Result<std::vector<TestCase>> cases = discover::discover({(options_.folder / "cases" / group).string()});
  if (!cases) return cases.status();
  options.cases = *std::move(cases);
  options.environment = options_.environment;
  options.engine = how.engine;
  options.engine_options = how.engine_options;
  options.backend = how.backend;
  options.backend_options = how.backend_options;
  options.jobs = options_.jobs;
  options.repeat = how.repeat;
  options.output = options_.folder / "runs" / group;
  options.plugins = options_.plugins;
  options.worker = options_.worker;
  options.command = {"assay", "self-test"};
  options.cancel = options_.cancel;
  if (Status free = run::discard_run(options.output); !free.ok()) return free;  // of an earlier self-test
  Silent silent;
  return run::run(options, silent);
}

}  // namespace assay::self_test
