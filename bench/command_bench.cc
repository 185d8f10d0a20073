// Whole commands, timed from outside: `assay list` of 1,000 cases, `assay run` of 10,000 replayed cases.
#include <benchmark/benchmark.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/many_cases.h"

extern char** environ;  // NOLINT: POSIX names it

namespace {

namespace fs = std::filesystem;

// Runs the program of this build with its output thrown away; returns its exit code, -1 when it could not start.
int run_assay(const std::vector<std::string>& words) {
  std::vector<std::string> owned = {std::string(ASSAY_BINARY_DIR) + "/bin/assay"};
  owned.insert(owned.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : owned) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1, 0);
  pid_t child = 0;
  const int error = posix_spawn(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "assay-bench-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void timed_command(benchmark::State& state, const std::vector<std::string>& words, const fs::path& output) {
  for (auto _ : state) {
    fs::remove_all(output);
    const auto begin = std::chrono::steady_clock::now();
    const int code = run_assay(words);
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    if (code != 0) state.SkipWithError(("assay " + words[0] + " ended with code " + std::to_string(code)).c_str());
  }
}

void BM_ListCases(benchmark::State& state) {
  Folder folder;
  assay::bench::write_cases(folder.path() / "cases", static_cast<int>(state.range(0)));
  timed_command(state, {"list", (folder.path() / "cases").string(), "--json"}, folder.path() / "none");
}
BENCHMARK(BM_ListCases)->Arg(1000)->Unit(benchmark::kMillisecond)->UseManualTime();

void BM_ReplayAndCompare(benchmark::State& state) {
  Folder folder;
  assay::bench::write_cases(folder.path() / "cases", static_cast<int>(state.range(0)));
  const fs::path output = folder.path() / "out";
  timed_command(state,
                {"run", (folder.path() / "cases").string(), "--jobs", "2", "--quiet", "--output", output.string()},
                output);
}
BENCHMARK(BM_ReplayAndCompare)->Arg(10000)->Unit(benchmark::kSecond)->UseManualTime()->Iterations(3);

}  // namespace

BENCHMARK_MAIN();
