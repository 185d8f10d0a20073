// The stack machine behind Pickle::read; internal to the pickle reader.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "backends/model/checkpoint/pickle_reader.h"

namespace assay::model {

// One use: construct, run(). Every method returns a failed Status that names file and byte on malformed input.
class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> data, const std::string& name, uint64_t base, const PickleLimits& limits)
      : data_(data), name_(name), base_(base), limits_(limits) {}

  Result<Pickle> run();

 private:
  using Node = Pickle::Node;

  Status step(uint8_t opcode, bool& stopped);  // pickle_reader.cc

  // pickle_steps.cc: groups of opcodes
  Status step_scalar(uint8_t opcode);
  Status step_container(uint8_t opcode);
  Status step_object(uint8_t opcode);
  Status step_memo(uint8_t opcode);

  // pickle_machine.cc: the parts opcodes are made of
  Status fail(const std::string& what) const;
  Status take(size_t size, const std::byte*& bytes);
  template <class T>
  Status take_number(T& value) {
    const std::byte* bytes = nullptr;
    if (Status s = take(sizeof(T), bytes); !s.ok()) return s;
    std::memcpy(&value, bytes, sizeof(T));
    return {};
  }
  Status take_line(std::string_view& line);
  Status push(Node node);
  Status push_text(PickleKind kind, std::string_view text);
  Status push_sized_text(PickleKind kind, size_t size_bytes);
  Status push_long(size_t size_bytes);
  Status push_items(PickleKind kind, std::vector<PickleId> items);
  Status pop(PickleId& id);
  Status pop_mark(std::vector<PickleId>& items);
  Status pop_tuple(size_t size);
  Status append(PickleId target, std::span<const PickleId> items);
  Status call(PickleId callee, PickleId arguments);
  Status build();
  Status put(uint64_t slot);
  Status get(uint64_t slot);
  Status raise_depth(Node& node, PickleId child);

  std::span<const std::byte> data_;
  const std::string& name_;
  uint64_t base_;
  const PickleLimits& limits_;
  size_t at_ = 0;     // next byte
  size_t op_at_ = 0;  // byte of the opcode being run
  Pickle out_;
  std::vector<PickleId> stack_;
  std::vector<size_t> marks_;  // stack heights
  std::vector<PickleId> memo_;
};

}  // namespace assay::model
