#include "tools/load_bench/raw_read.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "backends/model/checkpoint/file_reader.h"
#include "core/run/stopwatch.h"

namespace assay::tools {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

struct Piece {
  const std::string* file;
  uint64_t offset;
  uint64_t bytes;
};

}  // namespace

Result<RawRead> read_raw(const std::vector<std::string>& files, int threads) {
  RawRead read;
  std::vector<Piece> pieces;
  for (const std::string& file : files) {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(file, error);
    if (error) return infra(file + ": " + error.message());
    for (uint64_t at = 0; at < size; at += kPieceBytes) pieces.push_back({&file, at, std::min(kPieceBytes, size - at)});
    read.bytes += size;
  }
  const size_t count =
      std::clamp<size_t>(pieces.size(), 1, static_cast<size_t>(threads));  // the others had nothing to do
  std::vector<std::vector<std::byte>> buffers(count, std::vector<std::byte>(kPieceBytes));
  std::vector<Status> results(count);
  std::atomic<size_t> next = 0;
  const auto work = [&](size_t thread) {
    model::FileReader reader;
    for (size_t i = next++; i < pieces.size() && results[thread].ok(); i = next++) {
      const Piece& piece = pieces[i];
      results[thread] = reader.read(*piece.file, piece.offset, std::span(buffers[thread]).first(piece.bytes));
    }
  };
  const run::Stopwatch watch;
  {
    std::vector<std::jthread> others;
    for (size_t thread = 1; thread < count; ++thread) others.emplace_back(work, thread);
    work(0);
  }
  read.seconds = watch.seconds();
  for (const Status& result : results) {
    if (!result.ok()) return result;
  }
  return read;
}

}  // namespace assay::tools
