// What each opcode does to the stack.
#include <fmt/format.h>

#include <bit>

#include "backends/model/checkpoint/pickle_machine.h"
#include "backends/model/checkpoint/pickle_opcodes.h"

namespace assay::model {

using namespace pickle;  // NOLINT: the opcodes, in this file alone

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

}  // namespace assay::model
