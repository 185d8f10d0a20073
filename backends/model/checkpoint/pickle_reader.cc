#include "backends/model/checkpoint/pickle_reader.h"

#include <fmt/format.h>

#include "backends/model/checkpoint/pickle_machine.h"
#include "backends/model/checkpoint/pickle_opcodes.h"

namespace assay::model {

using namespace pickle;  // NOLINT: the opcodes, in this file alone

namespace {

constexpr uint8_t kHighestProtocol = 5;

}  // namespace

Status PickleMachine::step(uint8_t opcode, bool& stopped) {
  PickleId id = kNoPickle;
  switch (opcode) {
    case kStop:
      stopped = true;
      return pop(out_.root_);
    case kProto: {
      uint8_t version = 0;
      if (Status s = take_number(version); !s.ok()) return s;
      return version <= kHighestProtocol ? Status() : fail(fmt::format("protocol {}, at most 5 is known", version));
    }
    case kFrame: {
      uint64_t size = 0;
      if (Status s = take_number(size); !s.ok()) return s;
      return size <= data_.size() - at_ ? Status() : fail(fmt::format("a frame of {} bytes exceeds the data", size));
    }
    case kPop:
      return pop(id);
    case kDup:
      if (Status s = pop(id); !s.ok()) return s;
      stack_.insert(stack_.end(), 2, id);
      return {};
    case kPopMark: {
      std::vector<PickleId> forgotten;
      return pop_mark(forgotten);
    }
    case kNone:
    case kNewTrue:
    case kNewFalse:
    case kBinInt:
    case kBinInt1:
    case kBinInt2:
    case kBinFloat:
    case kLong1:
    case kLong4:
    case kShortBinUnicode:
    case kBinUnicode:
    case kBinUnicode8:
    case kShortBinBytes:
    case kShortBinString:
    case kBinBytes:
    case kBinString:
    case kBinBytes8:
    case kByteArray8:
      return step_scalar(opcode);
    case kMark:
    case kEmptyTuple:
    case kEmptyList:
    case kEmptyDict:
    case kEmptySet:
    case kTuple:
    case kTuple1:
    case kTuple2:
    case kTuple3:
    case kList:
    case kDict:
    case kFrozenSet:
    case kAppend:
    case kAppends:
    case kSetItem:
    case kSetItems:
    case kAddItems:
      return step_container(opcode);
    case kGlobal:
    case kStackGlobal:
    case kReduce:
    case kNewObj:
    case kNewObjEx:
    case kBuild:
    case kBinPersId:
      return step_object(opcode);
    case kBinGet:
    case kLongBinGet:
    case kBinPut:
    case kLongBinPut:
    case kMemoize:
      return step_memo(opcode);
    default:
      return unsupported(fmt::format("{}: byte {}: pickle: opcode 0x{:02x} is not one that torch writes", name_,
                                     base_ + op_at_, opcode));
  }
}

Result<Pickle> PickleMachine::run() {
  if (data_.size() > limits_.max_bytes) {
    return exhausted(
        fmt::format("{}: a pickle of {} bytes; at most {} are read", name_, data_.size(), limits_.max_bytes));
  }
  bool stopped = false;
  while (!stopped) {
    op_at_ = at_;
    if (at_ == data_.size()) return fail("ends without STOP");
    const auto opcode = static_cast<uint8_t>(data_[at_++]);
    if (Status s = step(opcode, stopped); !s.ok()) return s;
  }
  return std::move(out_);
}

Result<Pickle> Pickle::read(std::span<const std::byte> data, const std::string& name, uint64_t base,
                            const PickleLimits& limits) {
  return PickleMachine(data, name, base, limits).run();
}

std::span<const PickleId> Pickle::items(PickleId id) const {
  const Node& node = nodes_[id];
  return node.list == kNoPickle ? std::span<const PickleId>() : std::span<const PickleId>(lists_[node.list]);
}

std::string_view Pickle::text(PickleId id) const {
  const Node& node = nodes_[id];
  const bool has_text =
      node.kind == PickleKind::kString || node.kind == PickleKind::kBytes || node.kind == PickleKind::kBigInt;
  return has_text ? std::string_view(node.text, node.a) : std::string_view();
}

PickleId Pickle::find(PickleId id, std::string_view key) const {
  if (!is(id, PickleKind::kDict)) return kNoPickle;
  const std::span<const PickleId> pairs = items(id);
  for (size_t i = pairs.size(); i >= 2; i -= 2) {
    if (is(pairs[i - 2], PickleKind::kString) && text(pairs[i - 2]) == key) return pairs[i - 1];
  }
  return kNoPickle;
}

std::string Pickle::class_name(PickleId id) const {
  if (is(id, PickleKind::kObject)) id = callee(id);
  if (!is(id, PickleKind::kGlobal)) return {};
  return std::string(module(id)) + "." + std::string(name(id));
}

}  // namespace assay::model
