// terminal: abilities of an output: its width and colours, and text in lines of that width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::files {

/// An output for people.
struct Terminal {
  std::size_t width = 0;  ///< columns; 0: not a terminal, so lines have no end
  bool colour = false;    ///< whether colours are wanted
};

/// Abilities of the terminal of the open file `file`. Colours only on a terminal, without NO_COLOR in the environment
/// and with a TERM other than dumb. A terminal without a known width has 80 columns.
Terminal terminal_of(int file);

/// The columns of `text`, which is UTF-8 without control characters.
std::size_t columns_of(std::string_view text);

/// `text` in lines of at most `width` columns, each ended by a newline, the first with `first` in front and the others
/// with as many blanks; a word that is longer has a line of its own. With a width of 0 one line.
std::string wrapped(std::string_view text, std::size_t width, std::string_view first);

}  // namespace assay::files
