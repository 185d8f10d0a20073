// Where two sides part, and what re-anchoring says of it. Pure functions, safe from any thread. `word`: what the
// golden's side is called (wording.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "assay/evidence.h"

namespace assay::report {

// A token in a table or box, by its text where that is known; a dash where there is none.
std::string token_cell(const std::optional<TokenView>& token);

// The split in plain words, as text: who says what, the gap and the rank.
std::string split_text(const Split& split, std::string_view word = "golden");

// The engine's candidates at that token, as a table; "" where it gave none.
std::string top_table(const Split& split, std::string_view word);

// What re-anchoring says, in plain words, as text.
std::string reanchoring_text(const Reanchoring& again, std::string_view word = "golden");

// The same as HTML, with a table of the positions where the engine prefers another token.
std::string reanchoring_html(const Reanchoring& again, std::string_view word);

}  // namespace assay::report
