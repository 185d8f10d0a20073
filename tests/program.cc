#include "tests/program.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

extern char** environ;  // NOLINT: POSIX names it

namespace assay::tests {

namespace fs = std::filesystem;

namespace {

// Before any test: what a shell or a CI system happens to export is no part of a test. All that a test starts has the
// environment of the test program, so it is that one which is cleared; what a test sets itself comes later.
[[maybe_unused]] const bool cleared = [] {
  std::vector<std::string> others;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    std::string name(text.substr(0, text.find('=')));
    if (!is_handed_on(name)) others.push_back(std::move(name));
  }
  for (const std::string& name : others) ::unsetenv(name.c_str());
  return true;
}();

}  // namespace

bool is_handed_on(std::string_view name) {
  static constexpr std::array<std::string_view, 23> kNames = {"PATH",
                                                              "HOME",
                                                              "USER",
                                                              "LOGNAME",
                                                              "SHELL",
                                                              "TMPDIR",
                                                              "TZ",
                                                              "LANG",
                                                              "LD_LIBRARY_PATH",
                                                              "CC",
                                                              "CXX",
                                                              "CPATH",
                                                              "CUDACXX",
                                                              "CFLAGS",
                                                              "CXXFLAGS",
                                                              "LDFLAGS",
                                                              "LIBRARY_PATH",
                                                              "CUDA_HOME",
                                                              "CUDA_VISIBLE_DEVICES",
                                                              "PKG_CONFIG_PATH",
                                                              "PYTHONPATH",
                                                              "VIRTUAL_ENV",
                                                              "ASSAY_MEGATRON_TREE"};
  static constexpr std::array<std::string_view, 7> kPrefixes = {"LC_",   "GTEST_",        "CCACHE_", "CMAKE_",
                                                                "GCOV_", "LLVM_PROFILE_", "PYENV_"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() || name.ends_with("SAN_OPTIONS") ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

Output run_program(const std::string& program, const std::vector<std::string>& words, const std::string& input,
                   const fs::path& folder) {
  return run_file(std::string(ASSAY_BINARY_DIR) + "/bin/" + program, words, input, folder);
}

fs::path find_executable(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder) / name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

Output run_file(const fs::path& executable, const std::vector<std::string>& words, const std::string& input,
                const fs::path& folder) {
  const TemporaryFolder files;
  write_file(files / "in", input);
  std::vector<std::string> owned = {executable.string()};
  owned.insert(owned.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : owned) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const fs::path where = folder.empty() ? fs::path(ASSAY_SOURCE_DIR) : folder;
  posix_spawn_file_actions_addchdir_np(&actions, where.c_str());
  const std::string in = files / "in";
  const std::string out = files / "out";
  const std::string err = files / "err";
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, in.c_str(), 0, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), 0101, 0600);  // O_WRONLY | O_CREAT
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), 0101, 0600);
  pid_t child = 0;
  const int error = posix_spawn(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(owned[0] + " cannot be started");
  int status = 0;
  waitpid(child, &status, 0);
  Output output;
  output.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  output.out = read_file(out);
  output.err = read_file(err);
  return output;
}

void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

fs::path shared_folder() {
  const fs::path folder = fs::path(ASSAY_SOURCE_DIR) / ".." / "shared";
  return fs::is_directory(folder) ? fs::canonical(folder) : fs::path();
}

}  // namespace assay::tests
