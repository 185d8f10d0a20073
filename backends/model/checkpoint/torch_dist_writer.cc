#include "backends/model/checkpoint/torch_dist_writer.h"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "backends/model/checkpoint/box_copy.h"
#include "backends/model/checkpoint/dcp_pickles.h"
#include "backends/model/checkpoint/file_sink.h"
#include "backends/model/checkpoint/zip_writer.h"

namespace assay::model {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBlockElements = int64_t{1} << 16;

void head(ZipWriter& zip, const std::string& root, const std::string& pickle) {
  zip.add(root + "/data.pkl", pickle);
  zip.add(root + "/.format_version", "1");
  zip.add(root + "/.storage_alignment", std::to_string(ZipWriter::kAlignment));
  zip.add(root + "/byteorder", "little");
}

void tail(ZipWriter& zip, const std::string& root) {
  zip.add(root + "/version", "3\n");
  zip.finish();
}

// Where head() makes the storage begin: it must be known before the archive, to give it the wanted residue.
uint64_t storage_offset(const std::string& root, const std::string& pickle) {
  uint64_t at = ZipWriter::member_end(0, root + "/data.pkl", pickle.size());
  at = ZipWriter::member_end(at, root + "/.format_version", 1);
  at = ZipWriter::member_end(at, root + "/.storage_alignment", 2);
  at = ZipWriter::member_end(at, root + "/byteorder", 6);
  return ZipWriter::data_offset(at, root + "/data/0");
}

void write_elements(const WrittenItem& item, bool reversed, ZipWriter& zip) {
  const TensorToWrite& tensor = *item.tensor;
  const size_t size = dtype_size(tensor.dtype);
  std::vector<std::byte> block(static_cast<size_t>(kBlockElements) * size);
  size_t used = 0;  // elements in `block`
  const auto put = [&](int64_t first, int64_t count) {
    while (count > 0) {
      const int64_t part = std::min(count, kBlockElements - static_cast<int64_t>(used));
      tensor.fill(first, part, block.data() + used * size);
      used += static_cast<size_t>(part);
      first += part;
      count -= part;
      if (used == static_cast<size_t>(kBlockElements)) {
        zip.append(block);
        used = 0;
      }
    }
  };
  // A copy from the whole tensor to the chunk; the axes of both are turned round for reversed strides.
  Box whole{std::vector<int64_t>(tensor.shape.size(), 0), tensor.shape};
  Box box = item.box;
  std::vector<int64_t> strides = row_major_strides(tensor.shape);
  if (reversed) {
    for (auto* axes : {&whole.sizes, &box.offsets, &box.sizes, &strides}) std::reverse(axes->begin(), axes->end());
  }
  BoxCopy copy;
  if (plan_copy(whole, strides, box, copy)) {
    for_each_run(copy, [&](int64_t first, int64_t) {
      if (copy.src_step == 1) {
        put(first, copy.run);
      } else {
        for (int64_t i = 0; i < copy.run; ++i) put(first + i * copy.src_step, 1);
      }
    });
  }
  zip.append({block.data(), used * size});
}

void write_item(WrittenItem& item, const std::string& common, const WriteOptions& options, FileSink& sink) {
  const std::string root = "archive";
  std::string pickle = common;
  if (item.tensor != nullptr) {
    pickle = tensor_pickle(item.tensor->dtype, item.box.sizes, options.reversed_strides);
    if (options.residue >= 0) {
      const uint64_t at = (sink.offset() + storage_offset(root, pickle)) % 64;
      sink.write(std::string((static_cast<uint64_t>(options.residue) + 64 - at) % 64, '\0'));
    }
  }
  item.offset = sink.offset();
  ZipWriter zip(sink);
  head(zip, root, pickle);
  if (item.tensor != nullptr) {
    zip.begin(root + "/data/0");
    write_elements(item, options.reversed_strides, zip);
    zip.end();
  }
  tail(zip, root);
  item.length = sink.offset() - item.offset;
}

Status write_text(const std::string& path, std::string_view text) {
  Result<std::unique_ptr<FileSink>> sink = FileSink::create(path);
  if (!sink.ok()) return sink.status();
  (*sink)->write(text);
  return (*sink)->close();
}

Status write_file(int file, const std::string& path, std::vector<WrittenItem>& items, const std::string& common,
                  const WriteOptions& options) {
  Result<std::unique_ptr<FileSink>> sink = FileSink::create((fs::path(path) / data_file_name(file)).string());
  if (!sink.ok()) return sink.status();
  for (WrittenItem& item : items) {
    if ((*sink)->failed()) break;  // a full disk: no need to make up the rest
    if (item.file == file) write_item(item, common, options, **sink);
  }
  return (*sink)->close();
}

Status check(const std::vector<TensorToWrite>& tensors, const WriteOptions& options) {
  if (options.files < 1 || options.files > 100000) return invalid(fmt::format("{} data files", options.files));
  if (options.residue > 63) return invalid(fmt::format("residue {}; expected 0 to 63", options.residue));
  std::set<std::string> keys;
  for (const TensorToWrite& tensor : tensors) {
    if (!keys.insert(tensor.key).second) return invalid(fmt::format("tensor '{}' twice", tensor.key));
    if (tensor.dtype == Dtype::kOther || element_count(tensor.shape) < 0 || tensor.shape.size() > kMaxRank) {
      return invalid(fmt::format("tensor '{}': impossible shape {} or dtype", tensor.key, shape_text(tensor.shape)));
    }
    bool fits = tensor.chunk_counts.empty() || tensor.chunk_counts.size() == tensor.shape.size();
    for (size_t d = 0; fits && d < tensor.chunk_counts.size(); ++d) {
      fits = tensor.chunk_counts[d] >= 1 && tensor.chunk_counts[d] <= std::max<int64_t>(tensor.shape[d], 1);
    }
    if (!fits) {
      return invalid(fmt::format("tensor '{}' of shape {} cannot be cut into {} parts", tensor.key,
                                 shape_text(tensor.shape), shape_text(tensor.chunk_counts)));
    }
  }
  return {};
}

}  // namespace

std::vector<Box> chunk_grid(const std::vector<int64_t>& shape, const std::vector<int64_t>& counts) {
  std::vector<Box> boxes{Box{}};
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t parts = counts.empty() ? 1 : counts[d];
    std::vector<Box> next;
    for (const Box& box : boxes) {
      int64_t at = 0;
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t size = shape[d] / parts + (part < shape[d] % parts ? 1 : 0);
        next.push_back(box);
        next.back().offsets.push_back(at);
        next.back().sizes.push_back(size);
        at += size;
      }
    }
    boxes = std::move(next);
  }
  return boxes;
}

Status write_torch_dist(const std::string& folder, const std::vector<TensorToWrite>& tensors, const ArgRecord& args,
                        const WriteOptions& options) {
  if (Status s = check(tensors, options); !s.ok()) return s;
  const std::string name = options.iteration < 0 ? "release" : fmt::format("iter_{:07}", options.iteration);
  const std::string path = (fs::path(folder) / name).string();
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return infra(fmt::format("{}: cannot create: {}", path, error.message()));
  // What describes an earlier checkpoint goes first: stopped half-way, files of both must not pass for one of them.
  for (const char* file : {"/.metadata", "/metadata.json"}) {
    fs::remove(path + file, error);
    if (error) return infra(fmt::format("{}{}: cannot replace: {}", path, file, error.message()));
  }

  std::vector<WrittenItem> items;
  for (const TensorToWrite& tensor : tensors) {
    for (Box& box : chunk_grid(tensor.shape, tensor.chunk_counts)) {
      items.push_back({&tensor, std::move(box), static_cast<int>(items.size() % static_cast<size_t>(options.files))});
    }
  }
  if (!options.common_pt) items.push_back({});
  const std::string common = common_pickle(args, options);

  std::vector<Status> results(static_cast<size_t>(options.files));
  std::atomic<int> next = 0;
  const auto work = [&] {
    for (int file = next++; file < options.files; file = next++) {
      results[static_cast<size_t>(file)] = write_file(file, path, items, common, options);
    }
  };
  std::vector<std::thread> threads;
  const int wanted = std::min<int>(options.files, static_cast<int>(std::thread::hardware_concurrency()));
  for (int i = 1; i < wanted; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) {
    if (!result.ok()) return result;
  }

  const std::string common_file = (fs::path(path) / "common.pt").string();
  fs::remove(common_file, error);  // one of an earlier checkpoint would win over the object
  if (options.common_pt) {
    Result<std::unique_ptr<FileSink>> sink = FileSink::create(common_file);
    if (!sink.ok()) return sink.status();
    ZipWriter zip(**sink);
    head(zip, "common", common);
    tail(zip, "common");
    if (Status s = (*sink)->close(); !s.ok()) return s;
  }
  if (Status s = write_text(path + "/.metadata", metadata_pickle(items)); !s.ok()) return s;
  const std::string format = R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1})";
  if (Status s = write_text(path + "/metadata.json", format); !s.ok()) return s;
  return write_text((fs::path(folder) / "latest_checkpointed_iteration.txt").string(),
                    options.iteration < 0 ? "release" : std::to_string(options.iteration));
}

}  // namespace assay::model
