#include "core/train/checkpoints.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/train/meeting.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

class Checkpoints : public testing::Test {
 protected:
  Checkpoints() { fs::create_directories(root_); }
  ~Checkpoints() override { fs::remove_all(root_); }
  const fs::path root_ = fs::path(testing::TempDir()) / ("checkpoints_" + std::to_string(::getpid()));
};

TEST_F(Checkpoints, TheTrackerHoldsOneWholeNumber) {
  const auto tracked = [&](const std::string& text) {
    std::ofstream(root_ / "latest_checkpointed_iteration.txt") << text;
    return tracked_iteration(root_.string());
  };
  EXPECT_EQ(tracked("120"), 120);
  EXPECT_EQ(tracked("120\n"), 120);
  for (const char* none : {"", "release", "12x", "12 34", "-3", "1.5"}) EXPECT_EQ(tracked(none), 0) << none;
  EXPECT_EQ(tracked_iteration("/no/such/folder"), 0);
}

TEST_F(Checkpoints, AnExitCodeThatNobodyCanReadIsAFailure) {
  const NodeMeeting where{.folder = root_.string(), .seconds = 20};
  const auto exchange = [&](const std::string& phase, const std::string& other) {
    fs::create_directories(root_ / (phase + "_status"));
    std::ofstream(root_ / (phase + "_status") / "node_1") << other;
    return *Meeting(where, 2, 0, {}).exchange(phase, 0);
  };
  EXPECT_EQ(exchange("good", "0\n"), 0);
  EXPECT_EQ(exchange("failed", "137\n"), 137);
  EXPECT_EQ(exchange("empty", ""), 1);
  EXPECT_EQ(exchange("word", "killed"), 1);
  EXPECT_EQ(exchange("half", "0x"), 1);
}

}  // namespace
}  // namespace assay::train
