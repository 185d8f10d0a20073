// For tests of runs whose workers are started by a launcher: the command launcher with a shell, so that every end of a
// task can be had.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/run/run_fixture.h"

namespace assay::run {

using namespace std::chrono_literals;

class LaunchedRun : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    options_.launcher = "command";
    options_.jobs = 0;
    options_.kill_grace = 200ms;
    options_.environment["PATH"] = "/usr/bin:/bin";
    start({"{argv}"});
  }
  void start(const std::vector<std::string>& words, Json workers = Json::object()) {
    for (const auto& [name, value] : std::vector<std::pair<const char*, double>>{{"poll", 0.1}, {"poll_most", 0.1}}) {
      if (!workers.contains(name)) workers[name] = value;
    }
    options_.launcher_options = Json{{"start", words}, {"workers", workers}}.dump();
  }
  // A case that passes when the engine answers.
  void add(const std::string& name, const std::string& prompt, const std::string& more = "") {
    add_golden(add_case(name, {prompt}, more), prompt, prompt.substr(prompt.find(' ') + 1));
  }
  // A file that a case of the words await or take waits for.
  std::string go() const { return dir_ / "go"; }
  // A shell line that runs the worker; `file` tells how often it was run before.
  std::string counting(const std::string& line) const {
    const std::string count = dir_ / "count";
    return "n=$(cat " + count + " 2>/dev/null || echo 0); echo $((n+1)) >" + count + "; " + line;
  }
};

}  // namespace assay::run
