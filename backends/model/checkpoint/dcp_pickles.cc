#include "backends/model/checkpoint/dcp_pickles.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "backends/model/checkpoint/box_copy.h"
#include "backends/model/checkpoint/pickle_writer.h"

namespace assay::model {
namespace {

constexpr const char* kCommonKey = "common_state/shard_0_1";

std::vector<int64_t> column_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    strides[d] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

void dcp_object(PickleWriter& out, std::string_view name) {
  out.global("torch.distributed.checkpoint.metadata", name);
  out.empty_tuple();
  out.new_object();
}

void torch_size(PickleWriter& out, const std::vector<int64_t>& sizes) {
  out.global("torch", "Size");
  out.ints(sizes);
  out.tuple1();
  out.reduce();
}

// The state of TensorProperties: dtype, layout, requires_grad, memory format, pin_memory.
void tensor_properties(PickleWriter& out, Dtype dtype) {
  dcp_object(out, "TensorProperties");
  out.mark();
  out.global("torch", dtype_name(dtype));
  out.global("torch.serialization", "_get_layout");
  out.text("torch.strided");
  out.tuple1();
  out.reduce();
  out.boolean(false);
  out.global("torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING");
  out.integer(0);
  out.tuple1();
  out.reduce();
  out.boolean(false);
  out.tuple();
  out.build();
}

void tensor_entry(PickleWriter& out, const TensorToWrite& tensor, std::span<const WrittenItem> items) {
  dcp_object(out, "TensorStorageMetadata");
  out.empty_dict();
  out.mark();
  out.text("properties");
  tensor_properties(out, tensor.dtype);
  out.text("size");
  torch_size(out, tensor.shape);
  out.text("chunks");
  out.empty_list();
  out.mark();
  for (const WrittenItem& item : items) {
    dcp_object(out, "ChunkStorageMetadata");
    out.empty_dict();
    out.mark();
    out.text("offsets");
    torch_size(out, item.box.offsets);
    out.text("sizes");
    torch_size(out, item.box.sizes);
    out.set_items();
    out.build();
  }
  out.appends();
  out.set_items();
  out.build();
}

void storage_entry(PickleWriter& out, const WrittenItem& item) {
  dcp_object(out, "MetadataIndex");
  out.empty_dict();
  out.mark();
  out.text("fqn");
  out.text(item.tensor != nullptr ? item.tensor->key : kCommonKey);
  if (item.tensor != nullptr) {
    out.text("offset");
    torch_size(out, item.box.offsets);
  }
  out.text("index");
  out.none();
  out.set_items();
  out.build();
  out.global("torch.distributed.checkpoint.filesystem", "_StorageInfo");
  out.empty_tuple();
  out.new_object();
  out.empty_dict();
  out.mark();
  out.text("relative_path");
  out.text(data_file_name(item.file));
  out.text("offset");
  out.integer(static_cast<int64_t>(item.offset));
  out.text("length");
  out.integer(static_cast<int64_t>(item.length));
  out.set_items();
  out.build();
}

}  // namespace

std::string data_file_name(int file) { return fmt::format("__{}_0.distcp", file); }

std::string tensor_pickle(Dtype dtype, const std::vector<int64_t>& shape, bool reversed) {
  PickleWriter out;
  out.global("torch._utils", "_rebuild_tensor_v2");
  out.mark();
  out.mark();
  out.text("storage");
  out.global("torch", storage_class_of(dtype));
  out.text("0");
  out.text("cpu");
  out.integer(element_count(shape));
  out.tuple();
  out.persistent_id();
  out.integer(0);
  out.ints(shape);
  out.ints(reversed ? column_major_strides(shape) : row_major_strides(shape));
  out.boolean(false);
  out.global("collections", "OrderedDict");
  out.empty_tuple();
  out.reduce();
  out.tuple();
  out.reduce();
  return out.finish();
}

std::string common_pickle(const ArgRecord& args, const WriteOptions& options) {
  PickleWriter out;
  if (!options.common_pt) out.empty_list();
  if (!options.common_pt) out.mark();
  out.empty_dict();
  out.mark();
  out.text("args");
  out.global("argparse", "Namespace");
  out.empty_tuple();
  out.new_object();
  out.empty_dict();
  out.mark();
  for (const auto& [name, value] : args) {
    out.text(name);
    out.value(value);
  }
  out.set_items();
  out.build();
  out.text("checkpoint_version");
  out.real(3.0);
  out.text("iteration");
  out.integer(std::max<int64_t>(options.iteration, 0));
  out.set_items();
  if (!options.common_pt) out.appends();
  return out.finish();
}

std::string metadata_pickle(const std::vector<WrittenItem>& items) {
  PickleWriter out;
  dcp_object(out, "Metadata");
  out.empty_dict();
  out.mark();
  out.text("state_dict_metadata");
  out.empty_dict();
  out.mark();
  for (size_t i = 0; i < items.size();) {
    size_t end = i + 1;
    while (end < items.size() && items[end].tensor == items[i].tensor) ++end;
    out.text(items[i].tensor != nullptr ? items[i].tensor->key : kCommonKey);
    if (items[i].tensor != nullptr) {
      tensor_entry(out, *items[i].tensor, std::span(items).subspan(i, end - i));
    } else {
      dcp_object(out, "BytesStorageMetadata");
    }
    i = end;
  }
  out.set_items();
  out.text("planner_data");
  out.none();
  out.text("storage_data");
  out.empty_dict();
  out.mark();
  for (const WrittenItem& item : items) storage_entry(out, item);
  out.set_items();
  out.text("storage_meta");
  out.none();
  out.text("version");
  out.text("1.0.0");
  out.set_items();
  out.build();
  return out.finish();
}

}  // namespace assay::model
