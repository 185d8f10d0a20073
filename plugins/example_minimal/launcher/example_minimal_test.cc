// Calls the plugin as assay does. Ends with 0 when every expectation holds.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "assay/sdk.hpp"

extern "C" const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t abi_minor, const assay_host* host);

namespace {

using namespace assay;

int failures = 0;

#define EXPECT(condition)                                                         \
  if (!(condition)) {                                                             \
    std::fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
    ++failures;                                                                   \
  }

const assay_launcher_table* table = nullptr;

void* open(const std::string& options = "{}") {
  auto config = sdk::sized<assay_launcher_config>();
  config.options = sdk::view(options);
  void* launcher = nullptr;
  return sdk::call(table->open, &config, &launcher).ok() ? launcher : nullptr;
}

// One job whose tasks are shell scripts; `most` of them at one time.
uint64_t start(void* launcher, const std::vector<std::string>& scripts, uint32_t most = 0, double seconds = 0) {
  const std::string shell = "/bin/sh";
  const std::string flag = "-c";
  std::vector<std::vector<assay_str>> words;
  std::vector<assay_task> tasks;
  for (const std::string& script : scripts) words.push_back({sdk::view(shell), sdk::view(flag), sdk::view(script)});
  const std::string log = "/dev/null";
  for (const auto& argv : words) tasks.push_back({argv.data(), argv.size(), sdk::view(log)});
  auto job = sdk::sized<assay_job>();
  job.tasks = tasks.data();
  job.task_count = tasks.size();
  job.most_at_once = most;
  job.seconds = seconds;
  uint64_t id = 0;
  EXPECT(sdk::call(table->start, launcher, &job, &id).ok());
  return id;
}

// Polls until no task waits or runs, for ten seconds.
std::vector<assay_task_state> finish(void* launcher, uint64_t id, size_t count) {
  std::vector<assay_task_state> states(count, sdk::sized<assay_task_state>());
  for (int i = 0; i < 1000; ++i) {
    EXPECT(sdk::call(table->poll, launcher, id, states.data(), count).ok());
    size_t over = 0;
    for (const assay_task_state& state : states) over += state.phase >= ASSAY_TASK_EXITED ? 1 : 0;
    if (over == count) return states;
    usleep(10000);
  }
  EXPECT(!"every task has ended");
  return states;
}

void tells_how_each_task_ended() {
  void* launcher = open();
  const auto states = finish(launcher, start(launcher, {"exit 0", "exit 3", "kill -9 $$"}, 1), 3);
  EXPECT(states[0].phase == ASSAY_TASK_EXITED && states[0].exit_code == 0 && states[0].signal == 0);
  EXPECT(states[1].phase == ASSAY_TASK_EXITED && states[1].exit_code == 3);
  EXPECT(states[2].phase == ASSAY_TASK_EXITED && states[2].signal == 9);
  table->close(launcher);
}

void ends_what_is_cancelled_or_too_slow() {
  void* launcher = open();
  const uint64_t slow = start(launcher, {"sleep 60"}, 0, 0.1);
  const uint64_t cancelled = start(launcher, {"sleep 60", "exit 0"});
  EXPECT(sdk::call(table->cancel, launcher, cancelled, int64_t{0}).ok());
  EXPECT(sdk::call(table->cancel, launcher, cancelled + 9, int64_t{0}).code() == StatusCode::kNotFound);
  const auto states = finish(launcher, cancelled, 2);
  EXPECT(states[0].phase == ASSAY_TASK_LOST && sdk::text(states[0].reason) == "cancelled");
  EXPECT(states[1].phase == ASSAY_TASK_EXITED);
  EXPECT(finish(launcher, slow, 1)[0].phase == ASSAY_TASK_LOST);
  table->close(launcher);
}

}  // namespace

int main() {
  const assay_plugin* plugin = assay_plugin_query(ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, nullptr);
  EXPECT(assay_plugin_query(ASSAY_ABI_MAJOR + 1, 0, nullptr) == nullptr);
  table = static_cast<const assay_launcher_table*>(plugin->table);
  EXPECT(open(R"({"x": 1})") == nullptr);
  tells_how_each_task_ended();
  ends_what_is_cancelled_or_too_slow();
  return failures == 0 ? 0 : 1;
}
