// YAML read into a tree of our own that keeps what yaml-cpp's nodes lose: the text of every scalar, its place, the last
// of duplicate keys and `<<` merges, with PyYAML's (safe_load, YAML 1.1) reading of structure. One document a file.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::discover {

struct YamlNode;

struct YamlEntry {
  std::string key;
  const YamlNode* value = nullptr;
  int line = 0;  // of the key, from 1
  int column = 0;
};

// An entry as it stands in the file.
struct YamlWritten {
  YamlEntry entry;
  bool merge = false;  // the key is a plain <<
  bool alias = false;  // the value is an alias
};

// Line and column count from 1, columns in bytes; those of an empty value are where the parser noticed that it is
// empty.
struct YamlNode {
  enum class Kind { kScalar, kSequence, kMap };
  Kind kind = Kind::kScalar;
  bool plain = true;                   // scalar: neither quoted, nor a block, nor tagged as a string
  char quote = '\0';                   // scalar: ' or " where it is quoted
  std::string text;                    // scalar: after unquoting and folding; an empty plain value is ""
  std::vector<const YamlNode*> items;  // sequence
  bool flow = false;                   // sequence: written with brackets
  std::vector<YamlEntry> entries;      // map: merged keys first, then own ones; each key once
  std::vector<YamlWritten> written;    // map with << or repeated keys: all entries, in order; else empty
  int line = 0;
  int column = 0;

  bool is_null() const;  // plain and one of "", ~, null, Null, NULL
  bool is_scalar() const { return kind == Kind::kScalar; }
  const YamlNode* find(std::string_view key) const;  // nullptr: not a map, or no such key
};

// A key that was given again in the same mapping.
struct YamlDuplicate {
  std::string key;
  int line = 0;        // of the later one, which wins
  int first_line = 0;  // of the earlier one
};

// Owns its nodes; movable. Aliases share nodes, so the tree is a graph without cycles.
struct YamlTree {
  std::deque<YamlNode> nodes;
  const YamlNode* root = nullptr;  // nullptr: an empty document
  std::vector<YamlDuplicate> duplicates;
};

struct YamlLimits {
  size_t bytes = 4u << 20;            // of the file
  size_t depth = 64;                  // nesting, through aliases too
  size_t expanded_nodes = 100000;     // nodes as if every alias were written out
  size_t expanded_bytes = 16u << 20;  // of all scalars, keys among them, as if every alias and merge were written out
  bool simple_first = true;           // try read_simple_yaml() before the full parser; the tree is the same
};

// `file` appears in messages: "file:line:column: what". Fails with kInvalid on broken YAML, more than one document, a
// non-scalar key, a cyclic or unknown alias, a passed limit, invalid UTF-8, a control character or an unknown tag.
Result<YamlTree> parse_yaml(std::string text, const std::string& file, const YamlLimits& limits = {});

// Reads a whole regular file of at most `limit` bytes. kNotFound, kInvalid (too big, not a regular file) or kInfra.
Result<std::string> read_file(const std::string& path, size_t limit);

}  // namespace assay::discover
