#include "backends/model/checkpoint/args_import.h"

#include <fmt/format.h>

namespace assay::model {
namespace {

constexpr size_t kMaxDepth = 16;                // of lists in lists
constexpr size_t kMaxValues = size_t{1} << 20;  // a list may be shared, so depth alone does not bound the copy

class Importer {
 public:
  Importer(const Pickle& pickle, const std::string& name) : pickle_(pickle), name_(name) {}

  Status value(PickleId id, size_t depth, ArgValue& out);

 private:
  Status list(PickleId id, size_t depth, ArgValue& out);
  std::string opaque_text(PickleId id) const;

  const Pickle& pickle_;
  const std::string& name_;
  size_t values_ = 0;
};

std::string Importer::opaque_text(PickleId id) const {
  switch (pickle_.kind(id)) {
    case PickleKind::kDict:
      return "dict";
    case PickleKind::kSet:
      return "set";
    case PickleKind::kBytes:
      return "bytes";
    case PickleKind::kBigInt:
      return "int";
    case PickleKind::kPersistent:
      return "torch.storage";
    default:
      return pickle_.class_name(id);
  }
}

Status Importer::list(PickleId id, size_t depth, ArgValue& out) {
  if (depth >= kMaxDepth) return invalid(fmt::format("{}: args: lists nested more than {} deep", name_, kMaxDepth));
  ArgList items;
  for (PickleId item : pickle_.items(id)) {
    if (Status s = value(item, depth + 1, items.emplace_back()); !s.ok()) return s;
  }
  out.value = std::move(items);
  return {};
}

Status Importer::value(PickleId id, size_t depth, ArgValue& out) {
  if (++values_ > kMaxValues) return exhausted(fmt::format("{}: args: more than {} values", name_, kMaxValues));
  switch (pickle_.kind(id)) {
    case PickleKind::kNone:
      out.value = std::monostate();
      return {};
    case PickleKind::kBool:
      out.value = pickle_.integer(id) != 0;
      return {};
    case PickleKind::kInt:
      out.value = pickle_.integer(id);
      return {};
    case PickleKind::kFloat:
      out.value = pickle_.real(id);
      return {};
    case PickleKind::kString:
      out.value = std::string(pickle_.text(id));
      return {};
    case PickleKind::kList:
    case PickleKind::kTuple:
      return list(id, depth, out);
    default:
      out.value = Opaque{opaque_text(id)};
      return {};
  }
}

}  // namespace

Result<ArgRecord> import_args(const Pickle& pickle, const std::string& name) {
  PickleId common = pickle.root();
  if (pickle.is(common, PickleKind::kList) && pickle.items(common).size() == 1) common = pickle.items(common)[0];
  if (!pickle.is(common, PickleKind::kDict)) {
    return invalid(fmt::format("{}: the common state is no dict; expected one with the key 'args'", name));
  }
  ArgRecord record;
  PickleId args = pickle.find(common, "args");
  if (args == kNoPickle || pickle.is(args, PickleKind::kNone)) return record;
  if (pickle.is(args, PickleKind::kObject)) args = pickle.state(args);  // argparse.Namespace: its state is its dict
  if (!pickle.is(args, PickleKind::kDict)) {
    return invalid(fmt::format("{}: 'args' is no namespace; expected an argparse.Namespace", name));
  }
  Importer importer(pickle, name);
  const std::span<const PickleId> pairs = pickle.items(args);
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (!pickle.is(pairs[i], PickleKind::kString)) return invalid(fmt::format("{}: an argument without a name", name));
    ArgValue value;
    if (Status s = importer.value(pairs[i + 1], 0, value); !s.ok()) return s;
    record[std::string(pickle.text(pairs[i]))] = std::move(value);
  }
  return record;
}

}  // namespace assay::model
