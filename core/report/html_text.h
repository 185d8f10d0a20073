// Text made safe and visible for HTML. Whatever a case, an engine or a log says is shown as text and never as markup;
// what a reader could not see or what would reorder a line is spelled out: control characters and ill-formed bytes as
// \x1b, invisible and bidirectional controls as \u202e. Pure functions, safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay::report {

// For element content and quoted attributes, on one line: newlines and tabs become \n, \r and \t.
std::string html(std::string_view text);

// For <pre>: newlines and tabs stay.
std::string html_block(std::string_view text);

// A token: blanks, tabs and newlines become marks in <em>; never empty. For element content alone.
std::string html_token(std::string_view text);

// For the path of a link, percent-encoded but for '/'.
std::string url_path(std::string_view path);

// "1.2e-05", "0.031", "inf": at most three digits.
std::string figure(double value);

// "1.2 ms", "3.4 s", "2 min 5 s".
std::string duration(double seconds);

// "1 request", "2 requests".
std::string plural(uint64_t count, std::string_view noun);

}  // namespace assay::report
