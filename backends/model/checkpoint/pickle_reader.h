// Python pickles (protocols 2 to 5) as plain data. A closed interpreter: it never imports and never calls anything.
// A global is a symbol, a call (REDUCE, NEWOBJ, BUILD) is a record of its class, arguments and state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::model {

using PickleId = uint32_t;
inline constexpr PickleId kNoPickle = 0xffffffffU;

enum class PickleKind : uint8_t {
  kNone,
  kBool,        // integer(): 0 or 1
  kInt,         // integer()
  kBigInt,      // text(): two's complement, little endian, more than 8 bytes
  kFloat,       // real()
  kString,      // text(): UTF-8
  kBytes,       // text()
  kList,        // items()
  kTuple,       // items(); torch.Size too
  kDict,        // items(): key, value, key, value, ...; collections.OrderedDict too
  kSet,         // items()
  kGlobal,      // module(), name()
  kObject,      // callee(), arguments(), state(); items(): what was appended or set on it
  kPersistent,  // callee(): the persistent id
};

struct PickleLimits {
  size_t max_bytes = size_t{512} << 20;  // of the pickle
  size_t max_nodes = size_t{1} << 24;    // values
  size_t max_depth = 256;                // of nesting, and of open MARKs
};

// Owns its nodes (indices, so cycles and deep nesting are harmless); texts point into the bytes that were read, which
// must outlive it. Immutable and thread-safe once read.
class Pickle {
 public:
  // `name` and `base` (file offset of data[0]) go into messages. kInvalid on malformed input, kUnsupported on opcodes
  // that torch does not write, kExhausted beyond a limit.
  static Result<Pickle> read(std::span<const std::byte> data, const std::string& name, uint64_t base,
                             const PickleLimits& limits = {});

  PickleId root() const { return root_; }
  PickleKind kind(PickleId id) const { return nodes_[id].kind; }
  bool is(PickleId id, PickleKind kind) const { return id != kNoPickle && nodes_[id].kind == kind; }

  int64_t integer(PickleId id) const { return nodes_[id].integer; }
  double real(PickleId id) const { return nodes_[id].real; }
  std::string_view text(PickleId id) const;  // empty for kinds without a text
  std::span<const PickleId> items(PickleId id) const;

  std::string_view module(PickleId id) const { return text(nodes_[id].a); }
  std::string_view name(PickleId id) const { return text(nodes_[id].b); }
  PickleId callee(PickleId id) const { return nodes_[id].a; }
  PickleId arguments(PickleId id) const { return nodes_[id].b; }
  PickleId state(PickleId id) const { return nodes_[id].state; }

  // Value of a string key in a kDict (the last one set, as in Python); kNoPickle when absent or `id` is no dict.
  PickleId find(PickleId id, std::string_view key) const;

  // "module.name" of a kGlobal or of a kObject's class; empty for everything else.
  std::string class_name(PickleId id) const;

 private:
  friend class PickleMachine;
  // 32 bytes. `a` is the text size, the module or the callee; `b` the name, the arguments or the index into lists_.
  struct Node {
    PickleKind kind = PickleKind::kNone;
    uint16_t depth = 0;
    uint32_t a = 0;
    uint32_t b = kNoPickle;
    uint32_t state = kNoPickle;
    uint32_t list = kNoPickle;
    union {
      int64_t integer = 0;
      double real;
      const char* text;
    };
  };

  std::vector<Node> nodes_;
  std::vector<std::vector<PickleId>> lists_;
  PickleId root_ = kNoPickle;
};

}  // namespace assay::model
