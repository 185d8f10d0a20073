// The character classes that the pre-tokenizer patterns tell apart, one symbol each. Together they cover every code
// point, and no code point is in two. The Unicode version is that of tiktoken's regex engine (char_class_ranges.inc,
// written by generate_char_classes.py); neither the C library nor PCRE2 is asked.
//   e  CR, LF                      s  U+0020                    w  every other White_Space
//   U  Lu, Lt                      l  Ll                        o  Lm, Lo
//   m  Mn, Mc, Me                  n  Nd, Nl, No                /  U+002F
//   x  all the rest
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::model {

// Immutable once made: safe from any thread.
class CharClasses {
 public:
  CharClasses();

  // Symbols of the code points of `valid` (well-formed UTF-8), in order.
  std::string symbols(std::string_view valid) const;

 private:
  std::vector<char> symbol_;  // [code point]
};

}  // namespace assay::model
