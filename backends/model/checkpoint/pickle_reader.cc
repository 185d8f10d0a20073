#include "backends/model/checkpoint/pickle_reader.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "backends/model/checkpoint/pickle_machine.h"

namespace assay::model {
namespace {

// Opcode bytes of Python's pickle format (pickletools documents each).
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kEmptyDict = '}',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kEmptyList = ']',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kBinFloat = 'G',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjEx = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

constexpr uint8_t kHighestProtocol = 5;

}  // namespace

template <class T>
Status PickleMachine::take_number(T& value) {
  const std::byte* bytes = nullptr;
  if (Status s = take(sizeof(T), bytes); !s.ok()) return s;
  std::memcpy(&value, bytes, sizeof(T));
  return {};
}

Status PickleMachine::step_scalar(uint8_t opcode) {
  Node node;
  node.kind = PickleKind::kInt;
  switch (opcode) {
    case kNone:
      node.kind = PickleKind::kNone;
      return push(node);
    case kNewTrue:
    case kNewFalse:
      node.kind = PickleKind::kBool;
      node.integer = opcode == kNewTrue ? 1 : 0;
      return push(node);
    case kBinInt: {
      int32_t value = 0;
      if (Status s = take_number(value); !s.ok()) return s;
      node.integer = value;
      return push(node);
    }
    case kBinInt1: {
      uint8_t value = 0;
      if (Status s = take_number(value); !s.ok()) return s;
      node.integer = value;
      return push(node);
    }
    case kBinInt2: {
      uint16_t value = 0;
      if (Status s = take_number(value); !s.ok()) return s;
      node.integer = value;
      return push(node);
    }
    case kBinFloat: {  // big endian, alone among the opcodes
      uint64_t bits = 0;
      if (Status s = take_number(bits); !s.ok()) return s;
      node.kind = PickleKind::kFloat;
      node.real = std::bit_cast<double>(__builtin_bswap64(bits));
      return push(node);
    }
    case kLong1:
      return push_long(1);
    case kLong4:
      return push_long(4);
    case kShortBinUnicode:
      return push_sized_text(PickleKind::kString, 1);
    case kBinUnicode:
      return push_sized_text(PickleKind::kString, 4);
    case kBinUnicode8:
      return push_sized_text(PickleKind::kString, 8);
    case kShortBinBytes:
    case kShortBinString:
      return push_sized_text(PickleKind::kBytes, 1);
    case kBinBytes:
    case kBinString:
      return push_sized_text(PickleKind::kBytes, 4);
    default:  // kBinBytes8, kByteArray8
      return push_sized_text(PickleKind::kBytes, 8);
  }
}

Status PickleMachine::step_container(uint8_t opcode) {
  std::vector<PickleId> items;
  switch (opcode) {
    case kEmptyTuple:
      return push_items(PickleKind::kTuple, {});
    case kEmptyList:
      return push_items(PickleKind::kList, {});
    case kEmptyDict:
      return push_items(PickleKind::kDict, {});
    case kEmptySet:
      return push_items(PickleKind::kSet, {});
    case kTuple1:
    case kTuple2:
    case kTuple3:
      return pop_tuple(size_t{opcode} - kTuple1 + 1);
    case kMark:
      if (marks_.size() >= limits_.max_depth) return fail(fmt::format("more than {} open marks", limits_.max_depth));
      marks_.push_back(stack_.size());
      return {};
    case kAppend:
    case kSetItem:
      items.resize(opcode == kAppend ? 1 : 2);
      for (size_t i = items.size(); i-- > 0;) {
        if (Status s = pop(items[i]); !s.ok()) return s;
      }
      break;
    default:
      if (Status s = pop_mark(items); !s.ok()) return s;
  }
  const bool pairs = opcode == kDict || opcode == kSetItem || opcode == kSetItems;
  if (pairs && items.size() % 2 != 0) return fail("a key without a value");
  if (opcode == kTuple) return push_items(PickleKind::kTuple, std::move(items));
  if (opcode == kList) return push_items(PickleKind::kList, std::move(items));
  if (opcode == kDict) return push_items(PickleKind::kDict, std::move(items));
  if (opcode == kFrozenSet) return push_items(PickleKind::kSet, std::move(items));
  PickleId target = kNoPickle;
  if (Status s = pop(target); !s.ok()) return s;
  stack_.push_back(target);
  const PickleKind wanted = pairs ? PickleKind::kDict : opcode == kAddItems ? PickleKind::kSet : PickleKind::kList;
  if (!out_.is(target, wanted) && !out_.is(target, PickleKind::kObject)) return fail("items for the wrong container");
  return append(target, items);
}

Status PickleMachine::step_object(uint8_t opcode) {
  PickleId second = kNoPickle;
  PickleId first = kNoPickle;
  Node node;
  switch (opcode) {
    case kGlobal: {
      std::string_view module;
      std::string_view name;
      if (Status s = take_line(module); !s.ok()) return s;
      if (Status s = take_line(name); !s.ok()) return s;
      if (Status s = push_text(PickleKind::kString, module); !s.ok()) return s;
      if (Status s = push_text(PickleKind::kString, name); !s.ok()) return s;
      [[fallthrough]];
    }
    case kStackGlobal:
      if (Status s = pop(second); !s.ok()) return s;
      if (Status s = pop(first); !s.ok()) return s;
      if (!out_.is(first, PickleKind::kString) || !out_.is(second, PickleKind::kString)) {
        return fail("a global whose name is no text");
      }
      node.kind = PickleKind::kGlobal;
      node.a = first;
      node.b = second;
      return push(node);
    case kBinPersId:
      if (Status s = pop(first); !s.ok()) return s;
      node.kind = PickleKind::kPersistent;
      node.a = first;
      if (Status s = raise_depth(node, first); !s.ok()) return s;
      return push(node);
    case kBuild:
      return build();
    case kNewObjEx: {
      PickleId keywords = kNoPickle;  // checked and forgotten: no class that we read has any
      if (Status s = pop(keywords); !s.ok()) return s;
      if (!out_.is(keywords, PickleKind::kDict)) return fail("keyword arguments that are no dict");
      [[fallthrough]];
    }
    default:  // kReduce, kNewObj
      if (Status s = pop(second); !s.ok()) return s;
      if (Status s = pop(first); !s.ok()) return s;
      return call(first, second);
  }
}

Status PickleMachine::step_memo(uint8_t opcode) {
  if (opcode == kMemoize) {
    // The slot is the number of slots in use: they are filled in order by every writer of protocol 4 and above.
    memo_.push_back(kNoPickle);
    return put(memo_.size() - 1);
  }
  uint32_t slot = 0;
  if (opcode == kBinGet || opcode == kBinPut) {
    uint8_t byte = 0;
    if (Status s = take_number(byte); !s.ok()) return s;
    slot = byte;
  } else if (Status s = take_number(slot); !s.ok()) {
    return s;
  }
  return opcode == kBinPut || opcode == kLongBinPut ? put(slot) : get(slot);
}

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
