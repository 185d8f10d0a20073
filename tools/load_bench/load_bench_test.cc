#include "tools/load_bench/load_bench.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "backends/model/checkpoint/torch_dist_writer.h"
#include "tools/load_bench/file_cache.h"
#include "tools/load_bench/memory_peak.h"
#include "tools/load_bench/raw_read.h"

namespace assay::tools {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr int64_t kElements = int64_t{3} << 20;  // 12 MB: several pieces of a raw read

class LoadBench : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(ASSAY_BINARY_DIR) / "tests" / "scratch" /
              (std::string("load_bench_") + info->name() + std::to_string(::getpid()));
    const auto zeros = [](int64_t, int64_t count, void* out) { std::memset(out, 0, static_cast<size_t>(count) * 4); };
    const Status written = model::write_torch_dist(
        folder_.string(), {{"w", {3, kElements / 3}, model::Dtype::kFloat32, {3, 1}, zeros}}, {}, {.files = 2});
    ASSERT_TRUE(written.ok()) << written.message();
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(LoadBench, TimesOpeningAloneBesideARawReadOfTheSameFiles) {
  int opened = 0;
  int closed = 0;
  constexpr size_t kTaken = size_t{64} << 20;
  std::unique_ptr<char[]> memory;
  const Loader loader{.open =
                          [&] {
                            ++opened;
                            memory = std::make_unique<char[]>(kTaken);  // zeroed: touched
                            ::usleep(30000);
                            return Status();
                          },
                      .close =
                          [&] {
                            ++closed;
                            memory.reset();
                            ::usleep(200000);
                          }};
  const Result<LoadFigures> figures = measure_load(folder_.string(), loader, {.threads = 2, .rounds = 3});
  ASSERT_TRUE(figures.ok()) << figures.status().message();
  EXPECT_EQ(opened, 4);
  EXPECT_EQ(closed, 4);
  EXPECT_EQ(figures->tensor_bytes, uint64_t{4} * kElements);
  EXPECT_GT(figures->file_bytes, figures->tensor_bytes);
  EXPECT_LT(figures->file_bytes, figures->tensor_bytes + 20000);
  ASSERT_EQ(figures->rounds.size(), 3U);
  for (const LoadRound& round : figures->rounds) {
    EXPECT_GT(round.raw_seconds, 0);
    EXPECT_GE(round.load_seconds, 0.03);
  }
  EXPECT_GE(figures->peak_bytes, kTaken - (1 << 20));  // pages that the kernel took back meanwhile
  EXPECT_LT(figures->peak_bytes, 2 * kTaken);
  EXPECT_DOUBLE_EQ(figures->fraction(), figures->best_load_gb_per_s() / figures->best_raw_gb_per_s());
}

TEST_F(LoadBench, WhatCannotBeOpenedIsTheResult) {
  const Loader broken{.open = [] { return exhausted("no room"); }, .close = [] {}};
  const Result<LoadFigures> figures = measure_load(folder_.string(), broken, {.threads = 1});
  EXPECT_EQ(figures.status().code(), StatusCode::kExhausted);
  const Loader loader{.open = [] { return Status(); }, .close = [] {}};
  EXPECT_EQ(measure_load((folder_ / "none").string(), loader, {}).status().code(), StatusCode::kNotFound);
}

TEST_F(LoadBench, FilesLeaveTheCacheOrTheReasonIsGiven) {
  const std::string file = (folder_ / "iter_0000001" / "__0_0.distcp").string();
  const Status dropped = drop_from_cache({file});
  EXPECT_TRUE(dropped.ok() || dropped.message().find("stay in the cache") != std::string::npos) << dropped.message();
  EXPECT_THAT(drop_from_cache({file + "x"}).message(), HasSubstr(file + "x: cannot open"));
}

TEST_F(LoadBench, ARawReadReadsEveryByteOnce) {
  const fs::path file = folder_ / "iter_0000001" / "__0_0.distcp";
  const Result<RawRead> read = read_raw({file.string(), file.string()}, 3);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->bytes, 2 * fs::file_size(file));
  EXPECT_FALSE(read_raw({(folder_ / "none").string()}, 1).ok());
}

}  // namespace
}  // namespace assay::tools
