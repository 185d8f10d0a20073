#include "tools/load_bench/load_bench.h"

#include <algorithm>
#include <filesystem>

#include "backends/model/checkpoint/checkpoint.h"
#include "core/run/stopwatch.h"
#include "tools/load_bench/file_cache.h"
#include "tools/load_bench/memory_peak.h"
#include "tools/load_bench/raw_read.h"

namespace assay::tools {
namespace {

struct Load {
  double seconds = 0;
  uint64_t peak_bytes = 0;
};

Result<Load> load_once(const Loader& loader) {
  const MemoryPeak peak;
  const run::Stopwatch watch;
  if (Status opened = loader.open(); !opened.ok()) return opened;
  const Load load{watch.seconds(), peak.bytes()};
  loader.close();
  return load;
}

// The checkpoint's data files; adds up its tensors. The mapping is gone on return.
Result<std::vector<std::string>> data_files(const std::string& folder, LoadFigures& figures) {
  const auto checkpoint = model::Checkpoint::open(folder);
  if (!checkpoint) return checkpoint.status();
  const model::CheckpointContents& contents = (*checkpoint)->contents();
  for (const model::TensorInfo& tensor : contents.tensors) figures.tensor_bytes += tensor.bytes();
  std::vector<std::string> files;
  for (const std::string& file : contents.files) {
    files.push_back((std::filesystem::path(contents.path) / file).string());
  }
  return files;
}

}  // namespace

double LoadFigures::best_raw_gb_per_s() const {
  const auto best = std::ranges::min_element(rounds, {}, &LoadRound::raw_seconds);
  return best == rounds.end() ? 0 : static_cast<double>(file_bytes) / best->raw_seconds * 1e-9;
}

double LoadFigures::best_load_gb_per_s() const {
  const auto best = std::ranges::min_element(rounds, {}, &LoadRound::load_seconds);
  return best == rounds.end() ? 0 : static_cast<double>(tensor_bytes) / best->load_seconds * 1e-9;
}

Result<LoadFigures> measure_load(const std::string& folder, const Loader& loader, const LoadBenchOptions& options) {
  LoadFigures figures;
  const Result<std::vector<std::string>> files = data_files(folder, figures);
  if (!files) return files.status();
  const auto prepare = [&] { return options.cold ? drop_from_cache(*files) : Status(); };
  if (!options.cold) {
    if (Result<RawRead> warmed = read_raw(*files, options.threads); !warmed) return warmed.status();
  }
  const Result<Load> first = load_once(loader);
  if (!first) return first.status();
  figures.first_load_seconds = first->seconds;
  for (int round = 0; round < options.rounds; ++round) {
    if (Status prepared = prepare(); !prepared.ok()) return prepared;
    const Result<RawRead> raw = read_raw(*files, options.threads);
    if (!raw) return raw.status();
    figures.file_bytes = raw->bytes;
    if (Status prepared = prepare(); !prepared.ok()) return prepared;
    const Result<Load> load = load_once(loader);
    if (!load) return load.status();
    figures.rounds.push_back({raw->seconds, load->seconds});
    figures.peak_bytes = std::max(figures.peak_bytes, load->peak_bytes);
  }
  return figures;
}

}  // namespace assay::tools
