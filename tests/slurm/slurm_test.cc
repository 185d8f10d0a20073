// Whole runs on a real Slurm of two nodes, started for this program on this machine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tests/program.h"

extern char** environ;  // NOLINT: POSIX names it

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kCannotStart = 77;  // of cluster.sh
const std::string kCluster = std::string(ASSAY_SOURCE_DIR) + "/tests/slurm/cluster.sh";

// A program that runs beside the test, its output in two files. Killed at the end.
class Background {
 public:
  Background(const std::vector<std::string>& words, const fs::path& base) : base_(base) {
    std::vector<std::string> owned = words;
    std::vector<char*> pointers;
    for (std::string& word : owned) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const std::string out = base.string() + ".out", err = base.string() + ".err";
    posix_spawn_file_actions_addchdir_np(&actions, ASSAY_SOURCE_DIR);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    EXPECT_EQ(posix_spawn(&pid_, pointers[0], &actions, nullptr, pointers.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Background() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  void signal(int number) const { ::kill(pid_, number); }
  Output wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(base_.string() + ".out"),
            read_file(base_.string() + ".err")};
  }

 private:
  fs::path base_;
  pid_t pid_ = -1;
};

bool until(std::chrono::seconds limit, const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(100ms);
  }
  return true;
}

class TwoNodes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new TemporaryFolder;
    const Output started = run_file(kCluster, {"start", cluster_->path() / "slurm"});
    if (started.code == kCannotStart) {
      reason_ = started.err.substr(0, started.err.find('\n'));
    } else {
      ASSERT_EQ(started.code, 0) << started.err;
      ::setenv("SLURM_CONF", (cluster_->path() / "slurm/slurm.conf").c_str(), 1);
    }
  }
  static void TearDownTestSuite() {
    ::unsetenv("SLURM_CONF");
    cluster("stop");
    delete cluster_;
  }
  void SetUp() override {
    if (!reason_.empty()) GTEST_SKIP() << reason_;
    fs::create_directories(dir());
  }
  static fs::path dir() { return cluster_->path() / "run"; }
  void TearDown() override {
    if (reason_.empty()) fs::remove_all(dir());
  }

  static Output cluster(const std::string& word, const std::string& name = "", const std::string& more = "") {
    std::vector<std::string> words = {word, cluster_->path() / "slurm"};
    for (const std::string& one : {name, more}) {
      if (!one.empty()) words.push_back(one);
    }
    return run_file(kCluster, words);
  }
  static std::string slurm(const std::string& program, const std::vector<std::string>& words) {
    const fs::path file = find_executable(program);
    return run_file(file, words).out;
  }

  // A case of the test engine; it passes when the engine answers what the prompt says after its first word.
  static void add_case(const std::string& name, const std::string& prompt) {
    const fs::path folder = dir() / "cases" / name;
    write_file(folder / "prompts.jsonl", json{{"text", prompt}}.dump() + "\n");
    write_file(folder / "golden_values_dev_here.json",
               json{{"0", {{"input_prompt", prompt}, {"generated_text", prompt.substr(prompt.find(' ') + 1)}}}}.dump());
    write_file(folder / "model_config.yaml",
               "MODE: inference\nTEST_TYPE: frozen-start\nMODEL_ARGS:\n  --load: nowhere\n  --tokenizer-type: "
               "NullTokenizer\n  --vocab-size: 100\n  --output-path: ${INFERENCE_OUTPUT_PATH}\n  --prompt-file: " +
                   (folder / "prompts.jsonl").string() +
                   "\nMETRICS: [generated_text]\nASSAY:\n  engine: misbehaving\n");
  }
  static std::vector<std::string> words(json workers, json more = json::object(),
                                        const std::string& launcher = "slurm") {
    workers.emplace("poll", 0.3);
    workers.emplace("poll_most", 0.5);
    more["workers"] = std::move(workers);
    return {std::string(ASSAY_BINARY_DIR) + "/bin/assay",
            "run",
            dir() / "cases",
            "--platform",
            "here",
            "--plugin-path",
            std::string(ASSAY_BINARY_DIR) + "/tests/plugins",
            "--launcher",
            launcher,
            "--launcher-options",
            more.dump(),
            "--json",
            "--output",
            dir() / "out"};
  }
  static Output run(std::vector<std::string> all) {
    const std::string program = all.front();
    all.erase(all.begin());
    fs::remove_all(dir() / "out");  // a run is not replaced
    return run_file(program, all);
  }
  static json case_of(const Output& output, const std::string& name) {
    const json all = json::parse(output.out, nullptr, false);
    for (const json& one : all.is_array() ? all : json::array()) {
      if (one["name"] == name) return one;
    }
    ADD_FAILURE() << "no case " << name << " in " << output.out << output.err;
    return {{"verdict", "none"}, {"reason", ""}};
  }
  static std::string verdict(const Output& output, const std::string& name) { return case_of(output, name)["verdict"]; }
  static size_t events(const std::string& name, const std::string& of_case = "") {
    std::ifstream file(dir() / "out/results.jsonl");
    size_t count = 0;
    for (std::string line; std::getline(file, line);) {
      const json event = json::parse(line, nullptr, false);
      if (!event.is_object()) continue;
      count += event.value("event", "") == name && (of_case.empty() || event.value("case", "") == of_case) ? 1 : 0;
    }
    return count;
  }
  // "12_0" of the only running task.
  static std::string running_task() {
    const std::string out = slurm("squeue", {"-h", "-r", "-t", "R", "-o", "%i"});
    return out.substr(0, out.find('\n'));
  }

  static inline TemporaryFolder* cluster_ = nullptr;
  static inline std::string reason_;
};

TEST_F(TwoNodes, TheGoldCasesRunOnBothAndAreIdentical) {
  const Output output = run_program(
      "assay", {"run", "testcases", "--filter", "*moe_10m* and not *self_test* and not *@* and not tag:weights_16b",
                "--json", "--launcher", "slurm", "--launcher-options",
                R"({"workers": {"tasks": 2, "cpus": 4, "poll": 0.3}, "partition": "all"})", "--output", dir() / "out"});
  ASSERT_EQ(output.code, 0) << output.out << output.err;
  const json cases = json::parse(output.out);
  EXPECT_GE(cases.size(), 3U);
  for (const json& one : cases) EXPECT_EQ(one["verdict"], "IDENTICAL") << one.dump(1);
  EXPECT_THAT(slurm("scontrol", {"-o", "show", "job"}), AllOf(HasSubstr("BatchHost=n1"), HasSubstr("BatchHost=n2")));
}

TEST_F(TwoNodes, AJobThatIsRefusedIsInfraInSlurmsWords) {
  add_case("a", "slow 1");
  const Output output = run(words({}, {{"partition", "nowhere"}}));
  EXPECT_EQ(output.code, 3) << output.err;
  EXPECT_EQ(verdict(output, "a"), "INFRA");
  EXPECT_THAT(case_of(output, "a")["reason"].get<std::string>(), HasSubstr("nvalid partition"));
}

// cluster.sh allows arrays of four tasks.
TEST_F(TwoNodes, MoreTasksThanAnArrayMayHaveBecomeSeveralArrays) {
  constexpr size_t kTasks = 6;
  for (size_t i = 0; i < kTasks; ++i) add_case("a" + std::to_string(i), "slow 1");
  for (const char* jobs : {"0", "1"}) {  // all at once; one at a time, so that the second array waits for the first
    std::vector<std::string> all = words({{"tasks", kTasks}});
    if (*jobs != '0') all.insert(all.end(), {"--jobs", jobs});
    const Output output = run(all);
    EXPECT_EQ(output.code, 0) << output.out << output.err;
    for (size_t i = 0; i < kTasks; ++i) EXPECT_EQ(verdict(output, "a" + std::to_string(i)), "IDENTICAL");
    EXPECT_EQ(events("worker_finished"), kTasks);
    size_t scripts = 0;
    for (const auto& entry : fs::directory_iterator(dir() / "out/launcher")) {
      scripts += entry.path().extension() == ".sh" ? 1 : 0;
    }
    EXPECT_EQ(scripts, 2u);
  }
}

TEST_F(TwoNodes, AWorkerThatDiesCostsItsCaseAlone) {
  add_case("a", "slow 1");
  add_case("b", "segv");
  add_case("c", "slow 1");
  const Output output = run(words(json::object()));
  EXPECT_EQ(output.code, 1) << output.err;
  EXPECT_EQ(verdict(output, "a"), "IDENTICAL");
  EXPECT_EQ(verdict(output, "b"), "CRASHED");
  EXPECT_THAT(case_of(output, "b")["reason"].get<std::string>(), HasSubstr("SIGSEGV"));
  EXPECT_EQ(verdict(output, "c"), "IDENTICAL");
}

TEST_F(TwoNodes, ACaseThatHangsIsEndedByItsOwnTimeout) {
  add_case("a", "hang");
  add_case("b", "slow 1");
  std::vector<std::string> all = words(json::object());
  all.insert(all.end(), {"--timeout", "2"});
  const Output output = run(all);
  EXPECT_EQ(output.code, 1) << output.err;
  EXPECT_EQ(verdict(output, "a"), "CRASHED");
  EXPECT_THAT(case_of(output, "a")["reason"].get<std::string>(), HasSubstr("no verdict after 2.0 s"));
  EXPECT_EQ(verdict(output, "b"), "IDENTICAL");
}

// Slurm begins the task anew by itself: on the other node after the loss of one, and after a requeue.
TEST_F(TwoNodes, WhatHadEndedIsNotRunAgainWhenANodeIsLostOrATaskIsRequeued) {
  for (const char* how : {"requeue", "node"}) {
    fs::remove_all(dir());
    add_case("a", "slow 1");
    const std::string go = dir() / "go";
    add_case("b", "await " + go);  // until it is to be begun anew, however long that takes
    add_case("c", "slow 1");
    Background assay(words(json::object()), dir() / "assay");
    ASSERT_TRUE(until(30s, [] { return events("case_started", "b") == 1; })) << how;
    const std::string task = running_task();
    std::string node = slurm("squeue", {"-h", "-j", task, "-o", "%N"});
    node = node.substr(0, node.find('\n'));
    if (std::string(how) == "node") {
      ASSERT_EQ(cluster("fail", node).code, 0);
      // what slurmctld does by itself once the node has not answered for SlurmdTimeout
      slurm("scontrol", {"update", "NodeName=" + node, "State=DOWN", "Reason=test"});
    } else {
      slurm("scontrol", {"requeue", task});
    }
    // Slurm keeps a task that is begun anew for two minutes, so that nothing of the first one is left on the node.
    ASSERT_TRUE(until(20s, [&] { return slurm("squeue", {"-h", "-j", task, "-o", "%T"}) == "PENDING\n"; })) << how;
    write_file(go, "");
    std::this_thread::sleep_for(5s);
    slurm("scontrol", {"update", "JobId=" + task, "StartTime=now"});
    const Output output = assay.wait();
    EXPECT_EQ(output.code, 0) << how << output.out << output.err;
    for (const char* name : {"a", "b", "c"}) EXPECT_EQ(verdict(output, name), "IDENTICAL") << how;
    EXPECT_EQ(events("case_started", "a"), 1u) << how;
    EXPECT_EQ(events("case_started", "b"), 2u) << how;
    EXPECT_EQ(events("worker_crashed"), 0u) << how;
    if (std::string(how) == "node") {
      cluster("node", node);
      slurm("scontrol", {"update", "NodeName=" + node, "State=RESUME"});
      EXPECT_TRUE(until(20s, [] { return slurm("sinfo", {"-h", "-p", "all", "-o", "%T %D"}) == "idle 2\n"; }));
    }
  }
}

TEST_F(TwoNodes, ATaskThatSomebodyElseCancelsOrWhoseTimeIsOverCostsItsUnfinishedCases) {
  for (const int i : {1, 2}) {
    add_case("a" + std::to_string(i), "slow 1");
    add_case("z" + std::to_string(i), "slow 60000");
  }
  Background assay(words({{"tasks", 2}}), dir() / "assay");
  ASSERT_TRUE(until(30s, [] { return events("case_finished") == 2 && events("case_started") == 4; }));
  const std::string out = slurm("squeue", {"-h", "-r", "-t", "R", "-o", "%F"});
  const std::string job = out.substr(0, out.find('\n'));
  slurm("scontrol", {"update", "JobId=" + job + "_1", "EndTime=now+1"});
  slurm("scancel", {job + "_0"});
  const Output output = assay.wait();
  EXPECT_EQ(output.code, 3) << output.out << output.err;
  EXPECT_EQ(verdict(output, "a1"), "IDENTICAL");
  EXPECT_EQ(verdict(output, "a2"), "IDENTICAL");
  std::string reasons;
  for (const char* name : {"z1", "z2"}) {
    EXPECT_EQ(verdict(output, name), "INFRA");
    reasons += case_of(output, name)["reason"].get<std::string>() + "\n";
  }
  EXPECT_THAT(reasons, AllOf(HasSubstr("CANCELLED"), HasSubstr("TIMEOUT")));
}

TEST_F(TwoNodes, AnInterruptCancelsTheRunsOwnJobAndNoOther) {
  add_case("a", "slow 60000");
  Background assay(words(json::object()), dir() / "assay");
  ASSERT_TRUE(until(30s, [] { return events("case_started") == 1; }));
  std::string name = slurm("squeue", {"-h", "-o", "%j"});
  name = name.substr(0, name.find('\n'));
  const std::string own = slurm("squeue", {"-h", "-o", "%F"});
  const std::string foreign =
      slurm("sbatch", {"--parsable", "--job-name=" + name, "--output=/dev/null", "--wrap=sleep 300"});
  assay.signal(SIGINT);
  const Output output = assay.wait();
  EXPECT_EQ(output.code, 3) << output.out << output.err;
  EXPECT_EQ(verdict(output, "a"), "INFRA");
  EXPECT_TRUE(until(10s,
                    [&] {
                      return slurm("squeue", {"-h", "-o", "%A"}) == foreign;
                    }))
      << slurm("squeue", {}) << "of this run: " << own;
  slurm("scancel", {foreign.substr(0, foreign.find('\n'))});
}

TEST_F(TwoNodes, ARunnerThatIsKilledLeavesNoWorker) {
  add_case("a", "slow 60000");
  Background assay(words({{"heartbeat", 2}}), dir() / "assay");
  ASSERT_TRUE(until(30s, [] { return events("case_started") == 1; }));
  assay.signal(SIGKILL);
  assay.wait();
  EXPECT_FALSE(slurm("squeue", {"-h"}).empty());
  EXPECT_TRUE(until(20s, [] { return slurm("squeue", {"-h"}).empty(); })) << slurm("squeue", {});
  EXPECT_THAT(read_file(dir() / "out/workers/w000.events.jsonl"), HasSubstr("worker_orphaned"));
}

TEST_F(TwoNodes, SrunByHandIsALauncherToo) {
  add_case("a", "slow 1");
  add_case("b", "exit");
  add_case("c", "slow 1");
  const Output output =
      run(words({{"tasks", 2}}, {{"start", {"srun", "--ntasks=1", "--quiet", "{script}"}}}, "command"));
  EXPECT_EQ(output.code, 1) << output.out << output.err;
  EXPECT_EQ(verdict(output, "a"), "IDENTICAL");
  EXPECT_EQ(verdict(output, "b"), "CRASHED");
  EXPECT_THAT(case_of(output, "b")["reason"].get<std::string>(), HasSubstr("exit code 3"));
  EXPECT_EQ(verdict(output, "c"), "IDENTICAL");
}

TEST_F(TwoNodes, AControllerThatIsDownForAWhileCostsNothing) {
  add_case("a", "slow 3000");
  add_case("b", "slow 1");
  Background assay(words(json::object()), dir() / "assay");
  ASSERT_TRUE(until(30s, [] { return events("case_started") == 1; }));
  cluster("controller", "down");
  const Output output = assay.wait();
  EXPECT_EQ(output.code, 0) << output.out << output.err;
  EXPECT_EQ(cluster("controller", "up").code, 0);
}

}  // namespace
}  // namespace assay::tests
