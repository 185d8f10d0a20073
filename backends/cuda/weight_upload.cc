#include "backends/cuda/weight_upload.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "backends/cuda/kernels/pack.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/runtime/stream.h"
#include "backends/reference/arithmetic/formats.h"

namespace assay::cuda {
namespace {

constexpr int64_t kJobBytes = int64_t{8} << 20;

void finish_vector(const UploadJob& job, float* values) {
  for (int64_t i = 0; i < (job.end - job.begin) * job.ref->cols && job.finish != Finish::kNone; ++i) {
    if (job.finish != Finish::kAddOne) values[i] = arithmetic::round_bf16(values[i]);
    if (job.finish != Finish::kRound) values[i] = values[i] + 1.0f;
  }
}

// One thread's two buffers: while one is copied, the other is read into.
class Lane {
 public:
  Lane(size_t bytes, bool tiles) {
    for (Slot& slot : slots_) {
      slot.pinned = PinnedBuffer<std::byte>(bytes);
      if (tiles) slot.rows = DeviceBuffer<std::byte>(bytes);
      slot.free.record(stream_);
    }
  }

  Status upload(const model::Checkpoint& checkpoint, const UploadJob& job) {
    Slot& slot = slots_[turn_++ % slots_.size()];
    slot.free.wait();
    std::byte* host = slot.pinned.data();
    Status status = model::read_weight_rows(checkpoint, *job.ref, job.begin, job.end, job.dtype, host);
    if (!status.ok()) return status;
    if (job.finish != Finish::kNone) finish_vector(job, reinterpret_cast<float*>(host));
    std::byte* to = job.to + static_cast<size_t>(job.begin * job.ref->cols) * model::dtype_size(job.dtype);
    if (job.tiles.tiled) to = slot.rows.data();
    check(cudaMemcpyAsync(to, host, job.bytes(), cudaMemcpyHostToDevice, stream_.get()), "cudaMemcpyAsync");
    if (job.tiles.tiled) {
      pack_tiles({job.tiles, to, static_cast<int>(job.begin), static_cast<int>(job.end - job.begin)}, stream_.get());
    }
    slot.free.record(stream_);
    return status;
  }

  void wait() const { stream_.wait(); }

 private:
  struct Slot {
    PinnedBuffer<std::byte> pinned;
    DeviceBuffer<std::byte> rows;  // what is packed from
    Event free;
  };
  Stream stream_;
  std::array<Slot, 2> slots_;
  size_t turn_ = 0;
};

}  // namespace

int64_t rows_a_job(int64_t row_bytes) { return std::max<int64_t>(1, kJobBytes / row_bytes); }

Status upload_all(const model::Checkpoint& checkpoint, const std::vector<UploadJob>& jobs, const Device& device,
                  int threads) {
  size_t bytes = 0;
  bool tiles = false;
  for (const UploadJob& job : jobs) {
    bytes = std::max(bytes, job.bytes());
    tiles = tiles || job.tiles.tiled;
  }
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  Status status;
  const auto work = [&] {
    const Status done = on_device([&]() -> Status {
      use_device(device);
      Lane lane(bytes, tiles);
      for (size_t i = next.fetch_add(1); i < jobs.size(); i = next.fetch_add(1)) {
        if (Status read = lane.upload(checkpoint, jobs[i]); !read.ok()) return read;
      }
      lane.wait();
      return {};
    });
    if (done.ok()) return;
    const std::scoped_lock lock(mutex);
    if (status.ok()) status = done;
    next = jobs.size();
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  others.clear();  // joins
  checkpoint.drop_pages();
  return status;
}

}  // namespace assay::cuda
