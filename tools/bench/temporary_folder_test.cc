#include "tools/bench/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace assay::bench {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolder, GoesWithAllThatIsInIt) {
  fs::path path;
  {
    Result<TemporaryFolder> made = TemporaryFolder::make();
    ASSERT_TRUE(made.ok()) << made.status().message();
    std::optional<TemporaryFolder> folder = *std::move(made);
    path = folder->path();
    fs::create_directory(path / "more");
    std::ofstream(path / "more" / "file") << "text";
    ASSERT_TRUE(fs::exists(path / "more" / "file"));
    folder.reset();
    EXPECT_FALSE(fs::exists(path));
    EXPECT_TRUE(TemporaryFolder::make().ok());
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolder, GoesWhereASignalEndsTheProcess) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(signal, SIG_DFL);  // whatever the test runs under
      const Result<TemporaryFolder> folder = TemporaryFolder::make();
      if (!folder.ok()) ::_exit(1);
      const std::string name = folder->path().string();
      if (::write(ends[1], name.data(), name.size()) < 0) ::_exit(2);
      for (;;) ::pause();
    }
    char name[4096] = {};
    ASSERT_GT(::read(ends[0], name, sizeof name - 1), 0);
    EXPECT_TRUE(fs::exists(name));
    ::kill(child, signal);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_FALSE(fs::exists(name)) << name;
    for (const int end : ends) ::close(end);
  }
}

// As while a checkpoint is written: files come into the folder when its removal has begun.
TEST(TemporaryFolder, GoesWhileOthersWriteIntoIt) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGTERM, SIG_DFL);
    const Result<TemporaryFolder> folder = TemporaryFolder::make();
    if (!folder.ok()) ::_exit(1);
    const fs::path inner = folder->path() / "iteration";
    fs::create_directory(inner);
    std::vector<fs::path> files;
    for (int i = 0; i < 400; ++i) std::ofstream(files.emplace_back(inner / std::to_string(i))) << i;
    const std::string name = folder->path().string();
    if (::write(ends[1], name.data(), name.size()) < 0) ::_exit(2);
    while (std::all_of(files.begin(), files.end(), [](const fs::path& file) { return fs::exists(file); })) {
    }
    for (int i = 0; i < 64; ++i) std::ofstream(folder->path() / ("late" + std::to_string(i))) << i;
    for (;;) ::pause();
  }
  std::array<char, 4096> name{};
  ASSERT_GT(::read(ends[0], name.data(), name.size() - 1), 0);
  ::kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  const fs::path path = name.data();
  for (const auto& entry : fs::directory_iterator(path.parent_path())) {
    EXPECT_FALSE(entry.path().string().starts_with(path.string())) << entry.path();
  }
  for (const int end : ends) ::close(end);
}

}  // namespace
}  // namespace assay::bench
