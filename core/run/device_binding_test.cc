// Workers and devices: what the plan says of them, and who gets which.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "assay/golden.h"
#include "core/plugin/registry.h"
#include "core/run/plan.h"
#include "core/run/recorder.h"
#include "core/run/run_fixture.h"
#include "core/run/supervisor.h"

namespace assay::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const std::string kVariable = "FAKE_VISIBLE_DEVICES";  // of the test backend fake_cards, whose cards 0 and 2 are usable

// Plans of a case that is computed, on test backends.
class DevicePlan : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    options_.backend = "fake_cards";
  }
  void add(const std::string& name, const std::string& assay, const std::string& env_vars = "") {
    const fs::path folder = dir_ / "cases" / name;
    fs::create_directories(folder);
    const std::string golden = std::string(ASSAY_SOURCE_DIR) + "/golden/moe_10m_licences/";
    std::ofstream(folder / "model_config.yaml")
        << "MODE: inference\nTEST_TYPE: frozen-start\n"
        << env_vars << "MODEL_ARGS:\n  --load: " << golden << "checkpoint\n  --use-checkpoint-args: true\n"
        << "  --no-use-tokenizer-model-from-checkpoint-args: true\n"
        << "  --tokenizer-type: NullTokenizer\n  --vocab-size: 4096\n  --bf16: true\n  --prompts: [\"1 2 3\"]\n"
        << "  --output-path: ${INFERENCE_OUTPUT_PATH}\nMETRICS: [generated_tokens]\nASSAY:\n  engine: static_legacy\n"
        << assay;
  }
  std::vector<DeviceUse> uses() {
    options_.cases = *discover::discover({(dir_ / "cases").string()});
    plugin::PluginRegistry registry(options_.plugins);
    const Result<Plan> plan = make_plan(options_, registry);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    std::vector<DeviceUse> found;
    for (const PlannedCase& one : plan->cases) EXPECT_FALSE(one.settled) << one.outcome.verdict.reason;
    for (const Group& group : plan->groups) found.push_back(group.device);
    return found;
  }
};

TEST_F(DevicePlan, AWorkerHasADeviceForItselfUnlessItsCasesAgreeToShare) {
  add("a", "  workers_per_device: 4\n");
  ASSERT_THAT(uses(), SizeIs(1));
  EXPECT_EQ(uses()[0].variable, kVariable);
  EXPECT_THAT(uses()[0].devices, ElementsAre("0", "2"));
  EXPECT_EQ(uses()[0].workers, 4);
  add("b", "  workers_per_device: 2\n");
  EXPECT_EQ(uses()[0].workers, 2);
  add("c", "  timeout: 9s\n");
  EXPECT_EQ(uses()[0].workers, 1);
  add("d", "  workers_per_device: 3\n");
  EXPECT_EQ(uses()[0].workers, 1);
}

TEST_F(DevicePlan, DevicesAreThoseThatTheRunnerMaySee) {
  add("a", "  timeout: 9s\n");
  options_.environment[kVariable] = "7,5,3";
  EXPECT_THAT(uses()[0].devices, ElementsAre("7", "3"));
}

TEST_F(DevicePlan, ABackendWithoutDevicesAndACaseThatChoosesItsOwnAreNotBound) {
  add("a", "  timeout: 9s\n", "ENV_VARS:\n  " + kVariable + ": 1\n");
  EXPECT_THAT(uses()[0].variable, IsEmpty());
  fs::remove_all(dir_ / "cases/a");
  add("b", "  timeout: 9s\n");
  options_.backend = "fake_low";
  EXPECT_THAT(uses()[0].variable, IsEmpty());
}

// Groups of the test engine, one case each, bound by hand.
class DeviceBinding : public Run {
 protected:
  void add_group(const std::string& prompt, int workers, const std::string& variable = kVariable) {
    Group group;
    group.head.output = options_.output.string();
    group.head.engine = "misbehaving";
    group.head.model = "{}";
    group.head.environment_name = "dev";
    group.head.platform = "here";
    group.head.plugins.install_dir = kBuild / "tests/plugins";
    if (!variable.empty()) group.device = {variable, {"4", "GPU-6"}, workers};
    PlannedCase planned;
    planned.order.id = planned.order.name = planned.outcome.name = "case" + std::to_string(plan_.cases.size());
    planned.order.engine_options = "{}";
    planned.order.prompts = {prompt};
    planned.order.dir = dir_.string();
    planned.order.metrics = {"generated_text"};
    planned.timeout = options_.case_timeout;
    group.cases.push_back(plan_.cases.size());
    plan_.cases.push_back(planned);
    plan_.groups.push_back(group);
  }

  // Most workers at once on each device; "" stands for those that are not bound.
  std::map<std::string, int> most_at_once() {
    Result<Journal> journal = Journal::open(options_.output);
    EXPECT_TRUE(journal.ok());
    Recorder recorder(plan_, *journal, observer_);
    Supervisor(options_, plan_, recorder).run();
    std::map<std::string, int> now, most;
    std::map<std::string, std::string> device_of;
    for (const std::string& line : *read_event_lines(options_.output / "results.jsonl")) {
      const Json event = *parse_line(line);
      const std::string worker = event.value("worker", "");
      if (event["event"] == event::kWorkerStarted) {
        const std::string& device = device_of[worker] = event.value("device", "");
        most[device] = std::max(most[device], ++now[device]);
      } else if (event["event"] == event::kWorkerFinished || event["event"] == event::kWorkerCrashed) {
        --now[device_of.at(worker)];
      }
    }
    return most;
  }

  Plan plan_;
};

TEST_F(DeviceBinding, OneWorkerADeviceWhateverTheJobs) {
  options_.jobs = 6;
  for (int i = 0; i < 6; ++i) add_group("slow 60", 1);
  const auto most = most_at_once();
  EXPECT_THAT(most, UnorderedElementsAre(Key(kVariable + "=4"), Key(kVariable + "=GPU-6")));
  for (const auto& [device, workers] : most) EXPECT_EQ(workers, 1) << device;
}

TEST_F(DeviceBinding, TheWorkerSeesItsDeviceAlone) {
  options_.jobs = 2;
  add_group("env " + kVariable, 1);
  add_group("env " + kVariable, 1);
  most_at_once();
  std::set<std::string> seen;
  for (const PlannedCase& one : plan_.cases) seen.insert(*read_results(one.outcome.actual)->requests[0].text);
  EXPECT_THAT(seen, UnorderedElementsAre("4", "GPU-6"));
}

TEST_F(DeviceBinding, SharersGoTogetherAndOthersDoNotWaitForADevice) {
  options_.jobs = 6;
  const std::string go = dir_ / "go";
  for (int i = 0; i < 4; ++i) add_group("await " + go, 2);
  add_group("slow 10", 1);
  add_group("slow 10", 0, "");
  // The sharers go on once all of them are there and the one without a device is over, or after a minute.
  std::thread watcher([&] {
    for (int i = 0; i < 6000; ++i) {
      if (fs::exists(dir_ / "out/results.jsonl") && events(event::kWorkerStarted) >= 5 &&
          events(event::kCaseFinished) >= 1) {
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::ofstream{go};
  });
  const auto most = most_at_once();
  watcher.join();
  EXPECT_EQ(most.at(kVariable + "=4"), 2);
  EXPECT_EQ(most.at(kVariable + "=GPU-6"), 2);
  EXPECT_EQ(most.at(""), 1);
  EXPECT_EQ(observer_.order.front(), "case5");  // nothing held it up
}

TEST_F(DeviceBinding, AWorkerThatDiesGivesItsDeviceBack) {
  options_.jobs = 4;
  add_group("segv", 1);
  add_group("abort", 1);
  add_group("slow 1", 1);
  add_group("slow 1", 1);
  const auto most = most_at_once();
  for (const auto& [device, workers] : most) EXPECT_EQ(workers, 1) << device;
  EXPECT_THAT(observer_.order, SizeIs(4));
}

}  // namespace
}  // namespace assay::run
