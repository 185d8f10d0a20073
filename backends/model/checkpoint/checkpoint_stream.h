// One pass over a checkpoint's tensors by many threads, at the speed of its files.
//
//   CheckpointStream stream(checkpoint);
//   CheckpointStream::Reader reader;                                       // on each thread
//   Status s = stream.read(reader, "w", {}, Dtype::kBfloat16, buffer, {0, 512});
//   ...
//   s = stream.finish();                                                   // once, after the last read
#pragma once

#include <atomic>
#include <span>
#include <string_view>
#include <vector>

#include "backends/model/checkpoint/checkpoint.h"
#include "backends/model/checkpoint/file_reader.h"

namespace assay::model {

class CheckpointStream {
 public:
  // What a thread reads with.
  struct Reader {
    FileReader file;
    std::vector<std::byte> block;  // what is converted or put in place from there
  };

  explicit CheckpointStream(const Checkpoint& checkpoint);  // which must outlive it

  // As Checkpoint::read, but the bytes are read from the file, not through its mapping, straight to `dst` where they
  // stay as they are, and a chunk's CRC is put together from those of the parts that were read of it, in any order. So
  // a wrong one is noticed by the read of the chunk's last part or by finish(); until then data may be damaged. Parts
  // that are read twice cost a further pass over their chunk. Chunks that are not row-major are read as
  // Checkpoint::read does. Thread-safe, with a Reader for each thread.
  Status read(Reader& reader, std::string_view key, std::span<const int64_t> leading, Dtype out, void* dst,
              RowRange rows = {});

  // Checks the chunks of which parts were read, but not all. The first failure.
  Status finish();

 private:
  struct Part;  // checkpoint_stream.cc
  struct Progress {
    std::atomic<uint64_t> bytes = 0;  // of the storage that were read
    std::atomic<uint32_t> crc = 0;    // the part that they have in that of the storage
  };

  Status read_chunk(Reader& reader, size_t chunk, const Checkpoint::Request& request);
  Result<uint32_t> read_part(Reader& reader, const Part& part, bool with_crc) const;
  Status note(const Part& part, uint32_t crc);

  const Checkpoint& checkpoint_;
  std::vector<Progress> progress_;  // per chunk of the checkpoint
};

}  // namespace assay::model
