// The stream gives what Checkpoint::read gives, in any cut and order, and notices what is damaged.
#include "backends/model/checkpoint/checkpoint_stream.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backends/model/checkpoint/convert.h"
#include "backends/model/checkpoint/torch_dist_writer.h"

namespace assay::model {
namespace {

using ::testing::HasSubstr;
using Shape = std::vector<int64_t>;

namespace fs = std::filesystem;

constexpr Dtype kDtypes[] = {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16};

class Stream : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(ASSAY_BINARY_DIR) / "tests" / "scratch" / (std::string("stream_") + info->name());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // One tensor "w" whose elements differ from their neighbours.
  void write(const Shape& shape, Dtype dtype, const Shape& counts, const WriteOptions& options = {.files = 2}) const {
    const auto fill = [dtype](int64_t first, int64_t count, void* out) {
      auto* to = static_cast<std::byte*>(out);
      for (int64_t i = first; i < first + count; ++i, to += dtype_size(dtype)) {
        const float value = static_cast<float>(i * 37 % 1009) / 64.0F - 5.0F;
        convert_elements(reinterpret_cast<const std::byte*>(&value), Dtype::kFloat32, to, dtype, 1);
      }
    };
    const Status written = write_torch_dist(folder_.string(), {{"w", shape, dtype, counts, fill}}, {}, options);
    ASSERT_TRUE(written.ok()) << written.message();
  }

  std::unique_ptr<Checkpoint> open(const CheckpointOptions& options = {}) const {
    Result<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::open(folder_.string(), options);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    return checkpoint.ok() ? *std::move(checkpoint) : nullptr;
  }

  // Flips a bit of the tensor's byte `index` within chunk `chunk`, all of whose bytes are stored row-major.
  void damage(size_t chunk, uint64_t index) const {
    const auto checkpoint = open();
    const ItemPlace place = checkpoint->contents().tensors[0].places[chunk];
    const fs::path path = fs::path(checkpoint->contents().path) / checkpoint->contents().files[place.file];
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    std::string archive(place.length, '\0');
    file.seekg(static_cast<std::streamoff>(place.offset)).read(archive.data(), static_cast<int64_t>(archive.size()));
    const size_t name = archive.find("archive/data/0");
    ASSERT_NE(name, std::string::npos);
    const size_t data = (name + 14 + 4 + 63) / 64 * 64;  // behind the padding field
    archive[data + index] = static_cast<char>(archive[data + index] ^ 4);
    file.seekp(static_cast<std::streamoff>(place.offset)).write(archive.data(), static_cast<int64_t>(archive.size()));
  }

  fs::path folder_;
};

// All of "w", rows of the second axis cut into parts of `step`, read in reverse order, against Checkpoint::read.
void expect_same(const Checkpoint& checkpoint, Dtype out, int64_t step) {
  CheckpointStream stream(checkpoint);
  CheckpointStream::Reader reader;
  const Shape& shape = checkpoint.contents().find("w")->shape;
  const size_t row = static_cast<size_t>(shape[2]) * dtype_size(out);
  std::vector<std::byte> expected(static_cast<size_t>(shape[1]) * row);
  std::vector<std::byte> seen(expected.size());
  for (int64_t i = shape[0]; i-- > 0;) {
    const std::array<int64_t, 1> leading = {i};
    ASSERT_TRUE(checkpoint.read("w", leading, out, expected.data()).ok());
    for (int64_t end = shape[1]; end > 0; end -= std::min(end, step)) {
      const int64_t begin = std::max<int64_t>(0, end - step);
      std::byte* to = seen.data() + static_cast<size_t>(begin) * row;
      const Status status = stream.read(reader, "w", leading, out, to, {begin, end});
      ASSERT_TRUE(status.ok()) << status.message();
    }
    ASSERT_EQ(seen, expected) << i;
  }
  const Status finished = stream.finish();
  EXPECT_TRUE(finished.ok()) << finished.message();
}

TEST_F(Stream, EveryChunkingDtypeResidueAndStrideReadsAsThroughTheMapping) {
  for (const Shape& counts : {Shape{}, {3, 1, 1}, {1, 5, 1}, {1, 1, 7}, {2, 3, 4}, {1, 2, 3}, {3, 5, 7}}) {
    for (const Dtype stored : kDtypes) {
      for (const bool reversed : {false, true}) {
        write({3, 5, 7}, stored, counts, {.files = 3, .residue = 9, .reversed_strides = reversed});
        const auto checkpoint = open({.check_crc = !reversed});
        ASSERT_NE(checkpoint, nullptr);
        for (const Dtype out : kDtypes) expect_same(*checkpoint, out, 2);
      }
    }
  }
}

TEST_F(Stream, PartsLargerThanABlockReadAsThroughTheMapping) {
  for (const Shape& counts : {Shape{1, 1, 1}, {1, 1, 2}, {1, 2, 3}}) {
    write({2, 700, 1001}, Dtype::kBfloat16, counts);
    const auto checkpoint = open();
    ASSERT_NE(checkpoint, nullptr);
    expect_same(*checkpoint, Dtype::kBfloat16, 650);
    expect_same(*checkpoint, Dtype::kFloat32, 650);
  }
}

TEST_F(Stream, ManyThreadsReadOneChunk) {
  write({1, 64, 4000}, Dtype::kBfloat16, {});
  const auto checkpoint = open();
  CheckpointStream stream(*checkpoint);
  std::vector<uint16_t> seen(64 * 4000);
  std::atomic<int64_t> next = 0;
  std::vector<Status> results(4);
  std::vector<std::thread> threads;
  threads.reserve(results.size());
  for (Status& result : results) {
    threads.emplace_back([&] {
      CheckpointStream::Reader reader;
      for (int64_t row = next++; row < 64 && result.ok(); row = next++) {
        uint16_t* to = seen.data() + row * 4000;
        result = stream.read(reader, "w", std::array<int64_t, 1>{0}, Dtype::kBfloat16, to, {row, row + 1});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) EXPECT_TRUE(result.ok()) << result.message();
  EXPECT_TRUE(stream.finish().ok());
  std::vector<uint16_t> expected(seen.size());
  ASSERT_TRUE(checkpoint->read("w", {}, Dtype::kBfloat16, expected.data()).ok());
  EXPECT_EQ(seen, expected);
}

TEST_F(Stream, ReadsOfTheSamePartTwiceAreRightAndPassTheCheck) {
  write({1, 4, 10}, Dtype::kFloat32, {});
  const auto checkpoint = open();
  CheckpointStream stream(*checkpoint);
  CheckpointStream::Reader reader;
  std::vector<float> rows(20);
  for (int i = 0; i < 2; ++i) {
    const Status status = stream.read(reader, "w", std::array<int64_t, 1>{0}, Dtype::kFloat32, rows.data(), {1, 3});
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_TRUE(stream.finish().ok());
}

TEST_F(Stream, ADamagedChunkIsNoticedByTheReadOfItsLastPart) {
  write({1, 8, 16}, Dtype::kFloat32, {1, 2, 1});
  damage(1, 77);
  const auto checkpoint = open();
  CheckpointStream stream(*checkpoint);
  CheckpointStream::Reader reader;
  std::vector<float> rows(8 * 16);
  const auto read = [&](int64_t begin, int64_t end) {
    return stream.read(reader, "w", std::array<int64_t, 1>{0}, Dtype::kFloat32, rows.data(), {begin, end});
  };
  EXPECT_TRUE(read(5, 8).ok());
  EXPECT_TRUE(read(0, 4).ok());
  const Status status = read(4, 5);
  EXPECT_EQ(status.code(), StatusCode::kInvalid);
  EXPECT_THAT(status.message(), HasSubstr("'w': CRC-32"));
}

TEST_F(Stream, DamageInWhatNobodyReadIsNoticedAtTheEnd) {
  write({1, 8, 16}, Dtype::kFloat32, {1, 2, 1});
  damage(0, 3);
  const auto checkpoint = open();
  CheckpointStream stream(*checkpoint);
  CheckpointStream::Reader reader;
  std::vector<float> rows(8 * 16);
  ASSERT_TRUE(stream.read(reader, "w", std::array<int64_t, 1>{0}, Dtype::kFloat32, rows.data(), {2, 8}).ok());
  const Status status = stream.finish();
  EXPECT_EQ(status.code(), StatusCode::kInvalid);
  EXPECT_THAT(status.message(), HasSubstr("the data is damaged: copy the file again"));
}

TEST_F(Stream, AFileInThePlaceOfAnotherIsNoticed) {
  write({1, 4, 8}, Dtype::kFloat32, {}, {.files = 1});
  const auto checkpoint = open();
  CheckpointStream stream(*checkpoint);
  CheckpointStream::Reader reader;
  std::vector<std::byte> to(4 * 8 * 4);
  const fs::path file = folder_ / "iter_0000001" / "__0_0.distcp";
  fs::rename(file, file.string() + ".before");
  fs::copy(file.string() + ".before", file);
  const std::array<int64_t, 1> leading = {0};
  const Status read = stream.read(reader, "w", leading, Dtype::kFloat32, to.data(), {0, 4});
  EXPECT_EQ(read.code(), StatusCode::kInvalid);
  EXPECT_THAT(read.message(), HasSubstr("__0_0.distcp: another file has taken its place"));
}

TEST_F(Stream, AFileThatShrankIsNamed) {
  write({1, 8, 1000}, Dtype::kFloat32, {}, {.files = 1});
  FileReader reader;
  std::vector<std::byte> bytes(64);
  const std::string path = (folder_ / "iter_0000001" / "__0_0.distcp").string();
  EXPECT_TRUE(reader.read(path, 0, bytes).ok());
  const Status status = reader.read(path, fs::file_size(path) - 10, bytes);
  EXPECT_EQ(status.code(), StatusCode::kInvalid);
  EXPECT_THAT(status.message(), HasSubstr(path + ": ends at byte"));
  EXPECT_EQ(reader.read(path + "x", 0, bytes).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace assay::model
