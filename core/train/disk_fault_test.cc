// Folders that cannot be listed to their end: the disk's fault, told in one line.
#include <dirent.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "core/train/checkpoints.h"
#include "core/train/extract.h"

namespace {
int g_entries_left = -1;  // until the disk fails; -1: it does not
}

// In the place of the library's, for the whole of this program.
extern "C" __attribute__((visibility("default"))) dirent* readdir(DIR* folder) {  // NOLINT: POSIX names it
  static const auto real = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
  if (g_entries_left == 0) {
    errno = EIO;
    return nullptr;
  }
  if (g_entries_left > 0) --g_entries_left;
  return real(folder);
}

namespace assay::train {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class DiskFault : public testing::Test {
 protected:
  DiskFault() { fs::create_directories(root_ / "saved/iter_0000002"); }
  ~DiskFault() override {
    g_entries_left = -1;
    fs::remove_all(root_);
  }
  // The same call with a disk that fails after 0, 1, 2 ... entries: kInfra each time, until it is not asked any more.
  template <class Call>
  void expect_infra(const Call& call) {
    int failures = 0;
    for (int left = 0; left < 100; ++left) {
      g_entries_left = left;
      const Status status = call();
      const bool failed_at_all = g_entries_left == 0;
      g_entries_left = -1;
      if (!failed_at_all) break;
      if (status.ok()) continue;  // that was the last entry
      ++failures;
      EXPECT_EQ(status.code(), StatusCode::kInfra) << status.message();
      EXPECT_THAT(status.message(), AllOf(HasSubstr(root_.string()), HasSubstr("Input/output error")));
    }
    EXPECT_GT(failures, 1);
  }
  const fs::path root_ = fs::path(testing::TempDir()) / ("disk_fault." + std::to_string(::getpid()));
};

TEST_F(DiskFault, IsNoMissingEventFile) {
  fs::copy_file(ASSAY_SOURCE_DIR "/core/train/testdata/simple.tfevents", root_ / "events.tfevents.1");
  ASSERT_TRUE(read_event_folder(root_.string()).ok());
  expect_infra([&] { return read_event_folder(root_.string()).status(); });
  const Status none = read_event_folder((root_ / "none").string()).status();
  EXPECT_EQ(none.code(), StatusCode::kNotFound);
}

TEST_F(DiskFault, IsNoEndOfTheTrainingThatResumes) {
  std::ofstream(root_ / "saved/latest_checkpointed_iteration.txt") << "2";
  const auto view = [&] { return make_resume_view((root_ / "saved").string(), 2, (root_ / "view").string()); };
  ASSERT_TRUE(view().ok());
  fs::remove_all(root_ / "view");
  expect_infra([&] {
    fs::create_directories(root_ / "other");
    return make_resume_view((root_ / "saved").string(), 2, (root_ / "other/view").string());
  });
}

}  // namespace
}  // namespace assay::train
