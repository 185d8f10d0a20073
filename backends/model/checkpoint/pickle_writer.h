// A small pickle emitter (protocol 2), enough for what torch.save and torch.distributed.checkpoint write.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/model/args_record.h"

namespace assay::model {

// Calls append opcodes in order; the caller keeps them balanced, as in the Python sources. Equal texts and globals are
// written once and referred to by memo. Not thread-safe.
class PickleWriter {
 public:
  PickleWriter() : out_("\x80\x02") {}

  void none() { out_ += 'N'; }
  void boolean(bool value) { out_ += value ? '\x88' : '\x89'; }
  void integer(int64_t value);
  void real(double value);
  void text(std::string_view value);                            // UTF-8
  void global(std::string_view module, std::string_view name);  // a class or function symbol
  void ints(const std::vector<int64_t>& values);                // a tuple
  void value(const ArgValue& value);                            // opaque values become the symbol they name

  void mark() { out_ += '('; }
  void tuple() { out_ += 't'; }  // from the mark
  void tuple1() { out_ += '\x85'; }
  void empty_tuple() { out_ += ')'; }
  void empty_list() { out_ += ']'; }
  void appends() { out_ += 'e'; }  // mark ... : items of the list below the mark
  void empty_dict() { out_ += '}'; }
  void set_items() { out_ += 'u'; }      // mark key value ... : items of the dict below the mark
  void reduce() { out_ += 'R'; }         // callable, tuple
  void new_object() { out_ += '\x81'; }  // class, tuple
  void build() { out_ += 'b'; }          // object, state
  void persistent_id() { out_ += 'Q'; }

  // Ends the pickle and returns it; the writer is used up.
  std::string finish();

 private:
  bool recall(const std::string& key);
  void number(uint64_t value, size_t size);

  std::string out_;
  std::unordered_map<std::string, uint32_t> memo_;
};

}  // namespace assay::model
