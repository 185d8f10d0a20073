#include "backends/model/checkpoint/pickle_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backends/model/checkpoint/utf8_check.h"

namespace assay::model {

Status PickleMachine::fail(const std::string& what) const {
  return invalid(fmt::format("{}: byte {}: pickle: {}; the file is damaged", name_, base_ + op_at_, what));
}

Status PickleMachine::take(size_t size, const std::byte*& bytes) {
  if (size > data_.size() - at_) return fail(fmt::format("needs {} bytes, {} are left", size, data_.size() - at_));
  bytes = data_.data() + at_;
  at_ += size;
  return {};
}

Status PickleMachine::take_line(std::string_view& line) {
  const std::string_view rest(reinterpret_cast<const char*>(data_.data()) + at_, data_.size() - at_);
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) return fail("a line without an end");
  line = rest.substr(0, end);
  at_ += end + 1;
  return {};
}

Status PickleMachine::push(Node node) {
  if (out_.nodes_.size() >= limits_.max_nodes) {
    return exhausted(fmt::format("{}: byte {}: pickle: more than {} values", name_, base_ + op_at_, limits_.max_nodes));
  }
  stack_.push_back(static_cast<PickleId>(out_.nodes_.size()));
  out_.nodes_.push_back(node);
  return {};
}

Status PickleMachine::push_text(PickleKind kind, std::string_view text) {
  if (kind == PickleKind::kString && !is_utf8(text)) return fail("text that is not UTF-8");
  Node node;
  node.kind = kind;
  node.a = static_cast<uint32_t>(text.size());  // max_bytes keeps it below 2^32
  node.text = text.data();
  return push(node);
}

Status PickleMachine::push_sized_text(PickleKind kind, size_t size_bytes) {
  const std::byte* bytes = nullptr;
  if (Status s = take(size_bytes, bytes); !s.ok()) return s;
  uint64_t size = 0;
  std::memcpy(&size, bytes, size_bytes);
  if (Status s = take(size, bytes); !s.ok()) return s;
  return push_text(kind, {reinterpret_cast<const char*>(bytes), size});
}

// LONG1, LONG4: little-endian two's complement.
Status PickleMachine::push_long(size_t size_bytes) {
  const std::byte* bytes = nullptr;
  if (Status s = take(size_bytes, bytes); !s.ok()) return s;
  uint32_t size = 0;
  std::memcpy(&size, bytes, size_bytes);
  if (Status s = take(size, bytes); !s.ok()) return s;
  if (size > 8) return push_text(PickleKind::kBigInt, {reinterpret_cast<const char*>(bytes), size});
  const bool negative = size > 0 && (static_cast<uint8_t>(bytes[size - 1]) & 0x80U) != 0;
  uint64_t value = negative ? ~uint64_t{0} : 0;
  std::memcpy(&value, bytes, size);
  Node node;
  node.kind = PickleKind::kInt;
  node.integer = static_cast<int64_t>(value);
  return push(node);
}

Status PickleMachine::raise_depth(Node& node, PickleId child) {
  const size_t depth = size_t{out_.nodes_[child].depth} + 1;
  if (depth > limits_.max_depth) {
    return exhausted(
        fmt::format("{}: byte {}: pickle: nested more than {} deep", name_, base_ + op_at_, limits_.max_depth));
  }
  node.depth = std::max(node.depth, static_cast<uint16_t>(depth));
  return {};
}

Status PickleMachine::push_items(PickleKind kind, std::vector<PickleId> items) {
  Node node;
  node.kind = kind;
  for (PickleId item : items) {
    if (Status s = raise_depth(node, item); !s.ok()) return s;
  }
  if (!items.empty()) {
    node.list = static_cast<uint32_t>(out_.lists_.size());
    out_.lists_.push_back(std::move(items));
  }
  return push(node);
}

Status PickleMachine::pop(PickleId& id) {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) return fail("the stack is empty");
  id = stack_.back();
  stack_.pop_back();
  return {};
}

Status PickleMachine::pop_mark(std::vector<PickleId>& items) {
  if (marks_.empty()) return fail("no mark is set");
  items.assign(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()), stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return {};
}

Status PickleMachine::pop_tuple(size_t size) {
  std::vector<PickleId> items(size);
  for (size_t i = size; i-- > 0;) {
    if (Status s = pop(items[i]); !s.ok()) return s;
  }
  return push_items(PickleKind::kTuple, std::move(items));
}

Status PickleMachine::append(PickleId target, std::span<const PickleId> items) {
  Node& node = out_.nodes_[target];
  if (items.empty()) return {};
  for (PickleId item : items) {
    if (Status s = raise_depth(node, item); !s.ok()) return s;
  }
  if (node.list == kNoPickle) {
    node.list = static_cast<uint32_t>(out_.lists_.size());
    out_.lists_.emplace_back();
  }
  std::vector<PickleId>& list = out_.lists_[node.list];
  list.insert(list.end(), items.begin(), items.end());
  return {};
}

Status PickleMachine::call(PickleId callee, PickleId arguments) {
  if (!out_.is(arguments, PickleKind::kTuple)) return fail("the arguments of a call are not a tuple");
  const std::span<const PickleId> args = out_.items(arguments);
  if (out_.is(callee, PickleKind::kGlobal)) {
    const std::string_view module = out_.module(callee);
    const std::string_view name = out_.name(callee);
    if (module == "torch" && name == "Size" && args.size() == 1 && out_.is(args[0], PickleKind::kTuple)) {
      stack_.push_back(args[0]);
      return {};
    }
    if (module == "collections" && name == "OrderedDict" && args.empty()) return push_items(PickleKind::kDict, {});
  }
  if (!out_.is(callee, PickleKind::kGlobal) && !out_.is(callee, PickleKind::kObject)) {
    return fail("a call of something that is no class or function");
  }
  Node node;
  node.kind = PickleKind::kObject;
  node.a = callee;
  node.b = arguments;
  if (Status s = raise_depth(node, callee); !s.ok()) return s;
  if (Status s = raise_depth(node, arguments); !s.ok()) return s;
  return push(node);
}

Status PickleMachine::build() {
  PickleId state = kNoPickle;
  if (Status s = pop(state); !s.ok()) return s;
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) return fail("the stack is empty");
  Node& target = out_.nodes_[stack_.back()];
  if (target.kind == PickleKind::kDict) return {};  // attributes of an OrderedDict: of no interest
  if (target.kind != PickleKind::kObject) return fail("a state for something that is no object");
  target.state = state;
  return raise_depth(target, state);
}

Status PickleMachine::put(uint64_t slot) {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) return fail("the stack is empty");
  if (slot > data_.size()) return fail(fmt::format("memo slot {} is too high", slot));  // writers number in order
  if (slot >= memo_.size()) memo_.resize(slot + 1, kNoPickle);
  memo_[slot] = stack_.back();
  return {};
}

Status PickleMachine::get(uint64_t slot) {
  if (slot >= memo_.size() || memo_[slot] == kNoPickle) return fail(fmt::format("memo slot {} is empty", slot));
  stack_.push_back(memo_[slot]);
  return {};
}

}  // namespace assay::model
